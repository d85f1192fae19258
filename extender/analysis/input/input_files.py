"""Read input files, gzipped files and standard input as UTF-8 bytes."""

import codecs
import itertools
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from extender.analysis.input.input_errors import UnreadableError
from extender.basics.input_limits import MAX_RECORDING_BYTES, InputLimitError, collect_limited, iterate_file

STDIN: Final = "-"
_GZIP: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_NULL: Final = b"\0"
_GZIP_BITS: Final = zlib.MAX_WBITS | 16
_CHUNK_BYTES: Final = 1024**2
_MAX_DIRECTORY_FILES: Final = 10_000
_EXTENSIONS: Final = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")
"""Source: cli-runtime/pkg/resource/builder.go, FileExtensions (1.36), which has the first three."""


def list_files(path: str) -> list[str]:
    """Return *path*, or the files with JSON or YAML in it by name if it is a directory. Subdirectories are not read.

    Raises:
        UnreadableError: the directory cannot be read, has no such file or more than 10,000.

    Source: cli-runtime/pkg/resource/visitor.go, ExpandPathsToFileVisitors (1.36).
    """
    try:
        if path == STDIN or not Path(path).is_dir():
            return [path]
        with os.scandir(path) as entries:
            found = (entry.path for entry in entries if entry.name.endswith(_EXTENSIONS) and not entry.is_dir())
            files = sorted(itertools.islice(found, _MAX_DIRECTORY_FILES + 1))
    except OSError as error:
        raise UnreadableError(path, _describe_os_error(error)) from error
    if not files:
        raise UnreadableError(path, f"is a directory without a file whose name ends in {', '.join(_EXTENSIONS)}")
    if len(files) > _MAX_DIRECTORY_FILES:
        message = f"has more than {_MAX_DIRECTORY_FILES} files; merge them, or name smaller directories one by one"
        raise UnreadableError(path, message)
    return files


def read_file(file: str, read_stdin: Callable[[int], bytes], max_bytes: int = MAX_RECORDING_BYTES) -> tuple[str, bytes]:
    """Read a file and return its display name and its text.

    Args:
        file: the file's path, or `-` for standard input. Gzip is detected by the first bytes.
        read_stdin: reads at most the given number of bytes of standard input; returns no bytes at the end of the input.
        max_bytes: the maximum size of the file and of its decompressed text, in bytes.

    Returns:
        The name for messages, and the UTF-8 text, which is not empty and has no byte order mark.

    Raises:
        UnreadableError: the file cannot be read, is too large, is truncated, is empty or is not text.
    """
    name = get_display_name(file)
    try:
        chunks = iter(lambda: read_stdin(_CHUNK_BYTES), b"") if file == STDIN else iterate_file(file)
        first_chunk = next(chunks, b"")
        chunks = itertools.chain((first_chunk,), chunks)
        if first_chunk.startswith(_GZIP):
            chunks = _decompress(name, chunks)
        data = collect_limited(chunks, max_bytes, is_invalid=lambda chunk: _NULL in chunk)
    except InputLimitError as error:
        raise UnreadableError(name, str(error)) from error
    except OSError as error:
        raise UnreadableError(name, _describe_os_error(error)) from error
    except ValueError as error:  # the name has a null character
        raise UnreadableError(repr(name), "no file can have this name") from error
    data = data.removeprefix(_BYTE_ORDER_MARK)
    _check_text(name, data)
    return name, data


def get_display_name(file: str) -> str:
    """Return the name of a file in messages. A file with the name that stands for standard input has its directory."""
    return "stdin" if file == STDIN else "./stdin" if file == "stdin" else file


def _describe_os_error(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "no such file; check the path, or write - to read standard input"
        case IsADirectoryError():
            return "is a directory; name a file"
        case PermissionError():
            return "may not be read; check its permissions"
    return f"cannot be read: {error.strerror or error}"


def _decompress(name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text of gzip data in chunks of at most 1 MiB. The data may have several members, as in `gzip`."""
    decompressor, at_end = zlib.decompressobj(wbits=_GZIP_BITS), False
    try:
        for compressed_chunk in chunks:
            data = compressed_chunk
            while data:
                if at_end:
                    data = data.lstrip(_NULL)  # padding between members
                    if not data:
                        break
                    decompressor = zlib.decompressobj(wbits=_GZIP_BITS)
                yield decompressor.decompress(data, _CHUNK_BYTES)
                at_end = decompressor.eof
                data = decompressor.unused_data if at_end else decompressor.unconsumed_tail
    except zlib.error as error:
        raise UnreadableError(name, f"the gzip data is damaged ({error}); copy the file again") from error
    if not at_end:
        raise UnreadableError(name, "the gzip data ends too early; copy the complete file again")


def _check_text(name: str, data: bytes) -> None:
    if not data or data.isspace():
        raise _make_empty_error(name)
    position = _find_invalid_byte(data)
    if position is not None:
        line = data.count(b"\n", 0, position) + 1
        problem = "not text" if data[position : position + 1] == _NULL else "not UTF-8"
        message = f"byte 0x{data[position]:02x} is {problem}; save the file as UTF-8 text, plain or gzipped"
        raise UnreadableError(name, message, f"line {line}")


def _find_invalid_byte(data: bytes) -> int | None:
    """Return the position of the first byte that is null or not UTF-8. The text is not decoded as a whole."""
    null_position = data.find(_NULL)
    view = memoryview(data)
    position = 0
    while position < len(data):
        try:
            _, length = codecs.utf_8_decode(view[position : position + _CHUNK_BYTES], "strict", False)
        except UnicodeDecodeError as error:
            invalid_position = position + error.start
            return invalid_position if null_position < 0 else min(invalid_position, null_position)
        if not length:  # a character that is cut off at the end
            return position
        position += length
    return None if null_position < 0 else null_position


def _make_empty_error(name: str) -> UnreadableError:
    reason = "is empty, or another option has read it" if name == get_display_name(STDIN) else "is empty"
    return UnreadableError(name, f"{reason}; want YAML or JSON")
