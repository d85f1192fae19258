"""Tells an object that is as it was, but for its version and the times of its reports, before anything is decoded.

A kubelet reports every few minutes that its node is well. In a large cluster those reports are most of what a watch
of nodes tells, 13 kB each, and nothing that scheduling reads changes by them.
"""

from typing import Final

_MODIFIED: Final = b'{"type":"MODIFIED"'
_VERSION: Final = b'"resourceVersion":"'
_HEARTBEAT: Final = b'"lastHeartbeatTime":"'
_MANAGED: Final = b'"time":"'
_TIME: Final = len("2026-01-01T00:00:00Z")


class Heartbeats:
    """The last state of each object of one watch, as a number of 64 bits made from its text.

    Two states of an object count as one if that number is the same by chance: once in 2**64 changes.
    """

    __slots__ = ("_last", "_marks", "_newest", "_pending")

    def __init__(self) -> None:
        self._last: set[int] = set()
        self._marks: dict[str, int] = {}
        self._pending: int | None = None
        self._newest = 0

    def version(self, line: bytes) -> str:
        """The version that *line* tells, if all it tells is that; empty if it must be read."""
        self._pending = None
        if not line.startswith(_MODIFIED):
            return ""
        parts = line.split(_VERSION)
        if len(parts) != 2:  # part of an annotation, or none
            return ""
        version, quote, rest = parts[1].partition(b'"')
        if not quote or not version.isdigit():
            return ""
        self._pending = hash((parts[0], _timeless(rest)))
        return version.decode() if self._pending in self._last else ""

    def read(self, key: str, version: str) -> None:
        """The line that was last asked about has been read: the state of the object *key* at *version*.

        It is not taken for the last one if something newer was read before: a server may repeat itself.
        """
        self.forget(key)
        if self._pending is not None and version.isdigit() and int(version) > self._newest:
            self._newest = int(version)
            self._marks[key] = self._pending
            self._last.add(self._pending)

    def forget(self, key: str) -> None:
        """The state of *key* is not known any more."""
        mark = self._marks.pop(key, None)
        if mark is not None:
            self._last.discard(mark)

    def forget_all(self) -> None:
        """Objects may have changed without a word."""
        self._last.clear()
        self._marks.clear()
        self._newest = 0


def _timeless(text: bytes) -> tuple[bytes, ...]:
    """*text* in pieces, without the times of heartbeats and of field managers."""
    first, *others = text.split(_HEARTBEAT)
    found = [first, *(each[_TIME:] if each[_TIME : _TIME + 1] == b'"' else each for each in others)]
    pieces: list[bytes] = []
    for part in found:
        first, *others = part.split(_MANAGED)
        pieces.append(first)
        pieces += (each[_TIME:] if each.startswith(b'","fieldsType"', _TIME) else each for each in others)
    return tuple(pieces)
