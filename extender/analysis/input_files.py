"""Read input files as UTF-8 bytes: plain, gzipped, or standard input."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from extender.analysis.input_errors import UnreadableError

STDIN: Final = "-"
_GZIP: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def read_file(file: str, stdin: Callable[[], bytes]) -> tuple[str, bytes]:
    """Read a file and return its display name and its text.

    Args:
        file: the file's path, or `-` for standard input. Gzip is detected by the first bytes.
        stdin: the function that reads all of standard input.

    Returns:
        The name for messages, and the UTF-8 text, which is not empty and has no byte order mark.

    Raises:
        UnreadableError: the file cannot be read, is truncated, is empty or is not text.
    """
    name = get_display_name(file)
    try:
        data = stdin() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise UnreadableError(name, _describe_os_error(error)) from error
    except ValueError as error:  # the name has a null character
        raise UnreadableError(repr(name), "no file can have this name") from error
    if data.startswith(_GZIP):
        data = _decompress(name, data)
    data = data.removeprefix(_BYTE_ORDER_MARK)
    _check_text(name, data)
    return name, data


def get_display_name(file: str) -> str:
    """Return the name of a file in messages."""
    return "stdin" if file == STDIN else file


def _describe_os_error(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "no such file; check the path, or write - to read standard input"
        case IsADirectoryError():
            return "is a directory; name the files in it one by one"
        case PermissionError():
            return "may not be read; check its permissions"
    return f"cannot be read: {error.strerror or error}"


def _decompress(name: str, data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except EOFError as error:
        raise UnreadableError(name, "the gzip data ends too early; the file was cut short, copy it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UnreadableError(name, f"the gzip data is damaged ({error}); copy the file again") from error


def _check_text(name: str, data: bytes) -> None:
    if not data.strip():
        raise _make_empty_error(name)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8 text, or gzipped"
        raise UnreadableError(name, message, f"line {line}") from error


def _make_empty_error(name: str) -> UnreadableError:
    return UnreadableError(name, "is empty; want YAML or JSON")
