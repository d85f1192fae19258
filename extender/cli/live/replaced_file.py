"""Write a file of a command: it is replaced only if all of it was written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_replaced_file(file: str, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file next to *file*, which replaces it at the end. After an exception *file* is as before.

    A device, a pipe and what a link in /dev names, such as /dev/stdout, are written to. Any other link is replaced.

    *mode* has the permissions of the file, without those of the process's umask.

    Raises:
        OSError: the file cannot be written.
    """
    path = Path(file)
    if path.is_char_device() or path.is_fifo() or (path.is_symlink() and str(path.parent) in {"/dev", "/dev/fd"}):
        with path.open("wb") as stream:
            yield stream
        return
    if path.is_dir() and not path.is_symlink():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), file)
    partial_path = path.with_name(f".{path.name}.partial")
    partial_path.unlink(missing_ok=True)  # another user may have made it, or a link to another file
    descriptor = os.open(partial_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
        partial_path.replace(path)
    except BaseException:
        partial_path.unlink(missing_ok=True)
        raise
