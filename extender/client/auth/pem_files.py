"""Private files for certificates and keys that a kubeconfig or an exec plugin contains."""

import atexit
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from extender.basics.private_keys import open_private_file

_MAX_FILES: Final = 64
_FILES: Final[dict[bytes, tuple[str, ExitStack]]] = {}


def write_pem_file(pem: bytes) -> str:
    """Return the path of a private file with *pem*. The ssl module reads certificates only from files.

    The 64 files that were used last stay until the process ends, because an exec plugin returns a new key each time.
    A file that a cleaner of old files removed is written again.

    Raises:
        OSError: the file cannot be written.
    """
    path, file = _FILES.pop(pem, ("", ExitStack()))
    if not path or not Path(path).exists():
        file.close()
        path = file.enter_context(open_private_file(pem))
    _FILES[pem] = path, file
    if len(_FILES) > _MAX_FILES:
        _remove(next(iter(_FILES)))
    return path


def _remove(pem: bytes) -> None:
    _, file = _FILES.pop(pem)
    file.close()


@atexit.register
def _remove_all() -> None:
    for pem in list(_FILES):
        _remove(pem)
