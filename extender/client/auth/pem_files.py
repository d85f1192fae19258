"""Private files for certificates and keys that a kubeconfig or an exec plugin contains."""

import atexit
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

_MAX_FILES: Final = 64
_FILES: Final[dict[bytes, Path]] = {}


def write_pem_file(pem: bytes) -> str:
    """Return the path of a private file with *pem*. The ssl module reads certificates only from files.

    The 64 files that were used last stay until the process ends, because an exec plugin returns a new key each time.
    A file that a cleaner of old files removed is written again.

    Raises:
        OSError: the file cannot be written.
    """
    file = _FILES.pop(pem, None)
    if file is None or not file.exists():
        with NamedTemporaryFile(suffix=".pem", delete=False) as stream:
            file = Path(stream.name)
            stream.write(pem)
    _FILES[pem] = file
    if len(_FILES) > _MAX_FILES:
        _remove(next(iter(_FILES)))
    return str(file)


def _remove(pem: bytes) -> None:
    _FILES.pop(pem).unlink(missing_ok=True)


@atexit.register
def _remove_all() -> None:
    for pem in list(_FILES):
        _remove(pem)
