"""The results of a sweep or an experiment in a file of JSON lines, from which an interrupted command can be resumed."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from extender import __version__
from extender.analysis.input.input_errors import InputError, make_input_error
from extender.plugins.registry import find_installed_entry_points

T = TypeVar("T")


class ResultFile(Generic[T]):
    """A file with one line about the inputs of a command and one line for each finished task.

    From `open` to `close`, or to the end of the process, no other command can open it.

    Args:
        path: the path of the file; an empty path means that the lines are kept in memory.
        inputs: the name and the digest of each input on which all results depend, in addition to the version.
        decode: returns what `open` returns of a line; it raises a DecodeError, KeyError or TypeError for other lines.
    """

    def __init__(self, path: str, inputs: Mapping[str, str], decode: Callable[[bytes], T]) -> None:
        self._path = Path(path) if path else None
        self._inputs = {**inputs, "version": __version__}
        self._decode = decode
        self._lines: list[bytes] = []
        self._lock = -1

    def open(self) -> list[T]:
        """Return the decoded lines of the finished tasks. A line that was cut off is removed.

        Raises:
            InputError: the file has the results of other inputs or other content, it cannot be read or written, or
                another command has it open.
        """
        if self._path is None:
            return []
        if self._path.exists() and not self._path.is_file():
            raise self._make_error("is no regular file")
        try:
            self._lock = self._make_lock(self._path)
            return self._read_finished(self._path)
        except OSError as error:
            raise self._make_error(f"cannot be read or written: {error.strerror}") from error

    def _read_finished(self, path: Path) -> list[T]:
        data = path.read_bytes()
        if not data:
            path.write_bytes(msgspec.json.encode(self._inputs) + b"\n")
            return []
        complete_size = data.rfind(b"\n") + 1
        head, *lines = data[:complete_size].splitlines() or [b""]
        try:
            inputs = msgspec.json.decode(head, type=dict[str, str])
        except msgspec.DecodeError as error:
            raise self._make_error("holds no results of this command; name another file") from error
        if inputs != self._inputs:
            if inputs.keys() != self._inputs.keys():
                raise self._make_error("holds no results of this command; name another file")
            names = ", ".join(name for name, digest in self._inputs.items() if inputs[name] != digest)
            raise self._make_error(f"holds the results of other inputs: {names}; delete it, or name another file")
        try:
            finished = [self._decode(line) for line in lines]
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise self._make_error("holds no results of this command; name another file") from error
        if complete_size < len(data):
            os.truncate(path, complete_size)
        return finished

    def _make_lock(self, path: Path) -> int:
        """Return a descriptor that holds the lock of the file, which is created."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise self._make_error("is in use by another command; wait for its end, or name another file") from error
        except OSError:
            pass  # some network file systems have no locks
        return descriptor

    def close(self) -> None:
        """Let other commands open the file."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _make_error(self, message: str) -> InputError:
        return make_input_error(str(self._path), message)

    def append(self, line: bytes) -> None:
        """Add the line of a finished task.

        Raises:
            OSError: the file cannot be written. The error names the file.
        """
        if self._path is None:
            self._lines.append(line)
            return
        try:
            with self._path.open("ab") as file:
                file.write(line)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def read_lines(self) -> Iterator[bytes]:
        """Yield the lines of all finished tasks."""
        if self._path is None:
            yield from self._lines
            return
        with self._path.open("rb") as file:
            next(file, None)
            yield from file

    def read_values(self) -> Iterator[dict[str, Any]]:
        """Yield the decoded lines as plain values."""
        for line in self.read_lines():
            yield msgspec.json.decode(line)


def make_digest(values: object) -> str:
    """Return a digest of plain values and API objects."""
    return hashlib.sha256(msgspec.json.encode(values)).hexdigest()[:16]


def make_file_digest(path: Path) -> str:
    """Return a digest of the content of a file.

    Raises:
        OSError: the file cannot be read.
    """
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_plugin_digest() -> str:
    """Return a digest of the Python files of all packages with installed plugins; without any, of nothing.

    Raises:
        OSError: a file cannot be read.
    """
    modules = {entry_point.module.partition(".")[0] for entry_point in find_installed_entry_points()}
    specs = [spec for module in sorted(modules) if (spec := find_spec(module)) is not None]
    files = [Path(spec.origin) for spec in specs if spec.origin and not spec.submodule_search_locations]
    folders = [Path(folder) for spec in specs for folder in spec.submodule_search_locations or ()]
    files += [file for folder in folders for file in sorted(folder.rglob("*.py"))]
    return make_digest([make_file_digest(file) for file in files])
