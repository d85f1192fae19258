"""The results of a sweep in a file of JSON lines, from which an interrupted sweep can be resumed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from extender.analysis.input.input_errors import InputError, make_input_error


class ResultFile:
    """A file with one line about the sweep and one line for each finished scenario.

    Args:
        path: the path of the file; an empty path means that the lines are kept in memory.
        sweep_id: identifies the sweep and its input.
    """

    __slots__ = ("_lines", "_path", "_sweep_id")

    def __init__(self, path: str, sweep_id: str) -> None:
        self._path = Path(path) if path else None
        self._sweep_id = sweep_id
        self._lines: list[bytes] = []

    def open(self) -> set[tuple[str, str | None]]:
        """Return the names and configurations of the finished scenarios. A line that was cut off is removed.

        Raises:
            InputError: the file has the results of another sweep or other content, or it cannot be read or written.
        """
        if self._path is None:
            return set()
        try:
            data = self._path.read_bytes() if self._path.exists() else b""
            if not data:
                self._path.write_bytes(msgspec.json.encode({"sweep": self._sweep_id}) + b"\n")
                return set()
        except OSError as error:
            raise self._make_error(f"cannot be read or written: {error.strerror}") from error
        complete_size = data.rfind(b"\n") + 1
        head, *lines = data[:complete_size].splitlines() or [b""]
        try:
            sweep_id = msgspec.json.decode(head).get("sweep")
            finished_lines = [msgspec.json.decode(line) for line in lines]
            names = {(str(values["scenario"]), values["config"]) for values in finished_lines}
        except (msgspec.DecodeError, AttributeError, KeyError, TypeError) as error:
            raise self._make_error("holds no results of a sweep; name another file") from error
        if sweep_id != self._sweep_id:
            raise self._make_error("holds the results of another sweep or cluster; delete it, or name another file")
        if complete_size < len(data):
            with self._path.open("r+b") as file:
                file.truncate(complete_size)
        return names

    def _make_error(self, message: str) -> InputError:
        return make_input_error(str(self._path), message)

    def append(self, line: bytes) -> None:
        """Add the line of a finished scenario."""
        if self._path is None:
            self._lines.append(line)
            return
        with self._path.open("ab") as file:
            file.write(line)

    def read_lines(self) -> Iterator[bytes]:
        """Yield the lines of all finished scenarios."""
        if self._path is None:
            yield from self._lines
            return
        with self._path.open("rb") as file:
            next(file, None)
            yield from file

    def read_values(self) -> Iterator[dict[str, Any]]:
        """Yield the decoded lines."""
        for line in self.read_lines():
            yield msgspec.json.decode(line)
