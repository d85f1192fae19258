"""Files as bytes: plain or gzipped, or standard input; always UTF-8."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from extender.offline.faults import UnreadableError

STDIN: Final = "-"
_GZIP: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def read(file: str, stdin: Callable[[], bytes]) -> tuple[str, bytes]:
    """The name to call *file* by, and its text.

    Args:
        file: a path, or `-` for standard input. Gzip is recognised by its first bytes, whatever the name.
        stdin: reads all of standard input.

    Returns:
        The name for messages and the text in UTF-8, not empty, without a byte order mark.

    Raises:
        UnreadableError: it cannot be read, is cut short, is empty or is no text.
    """
    name = named(file)
    try:
        data = stdin() if file == STDIN else Path(file).read_bytes()
    except OSError as fault:
        raise UnreadableError(name, _why(fault)) from fault
    except ValueError as fault:  # a name with a null character
        raise UnreadableError(repr(name), "no file can have this name") from fault
    if data.startswith(_GZIP):
        data = _unpacked(name, data)
    data = data.removeprefix(_BYTE_ORDER_MARK)
    _check_text(name, data)
    return name, data


def named(file: str) -> str:
    """What to call *file* in messages."""
    return "stdin" if file == STDIN else file


def _why(fault: OSError) -> str:
    match fault:
        case FileNotFoundError():
            return "no such file; check the path, or write - to read standard input"
        case IsADirectoryError():
            return "is a directory; name the files in it one by one"
        case PermissionError():
            return "may not be read; check its permissions"
    return f"cannot be read: {fault.strerror or fault}"


def _unpacked(name: str, data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except EOFError as fault:
        raise UnreadableError(name, "the gzip data ends too early; the file was cut short, copy it again") from fault
    except (gzip.BadGzipFile, zlib.error) as fault:
        raise UnreadableError(name, f"the gzip data is damaged ({fault}); copy the file again") from fault


def _check_text(name: str, data: bytes) -> None:
    if not data.strip():
        raise _empty(name)
    try:
        data.decode()
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        message = f"byte 0x{data[fault.start]:02x} is not UTF-8; save the file as UTF-8 text, or gzipped"
        raise UnreadableError(name, message, f"line {line}") from fault


def _empty(name: str) -> UnreadableError:
    return UnreadableError(name, "is empty; want YAML or JSON")
