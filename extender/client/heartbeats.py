"""Tells an object that is as it was, but for its version and the times of its reports, before anything is decoded.

A kubelet reports every few minutes that its node is well. In a large cluster those reports are most of what a watch
of nodes tells, 13 kB each, and nothing that scheduling reads changes by them.
"""

import re
from functools import lru_cache
from struct import Struct
from typing import Final

_MODIFIED: Final = b'{"type":"MODIFIED"'
_VERSION: Final = b'"resourceVersion":"'
_TIMES: Final = re.compile(rb'"(?:lastHeartbeatTime|time(?=":"[^"]{20}","fieldsType"))":"([^"]{20})"')
"""The times of heartbeats and of field managers, as `2026-01-01T00:00:00Z`."""


class Heartbeats:
    """The last state of each object of one watch: where its times stand in its text, and a number made from the rest.

    In the next text of an object they mostly stand where they did: then it is compared without a search. Two states
    of an object count as one if their numbers, of 64 bits, are the same by chance: once in 2**64 changes.
    """

    __slots__ = ("_asked", "_heads", "_known", "_newest")

    def __init__(self) -> None:
        self._known: dict[int, tuple[Struct, int]] = {}  # by a number made from what stands before the version
        self._heads: dict[str, int] = {}
        self._asked: bytes | None = None
        self._newest = 0

    def version(self, line: bytes) -> str:
        """The version that *line* tells, if all it tells is that; empty if it must be read."""
        self._asked = line
        start, end = _version_in(line)
        # Before its version stand the type of the event, the object's name and its uid.
        known = self._known.get(hash(line[:start]))
        if known is None:
            return ""
        layout, rest = known
        if layout.size != len(line) - end or hash(layout.unpack_from(line, end)) != rest:
            return ""
        version = line[start:end]
        return version.decode() if version.isdigit() else ""

    def read(self, key: str, version: str) -> None:
        """The line that was last asked about has been read: the state of the object *key* at *version*.

        It is not taken for the last one if something newer was read before: a server may repeat itself.
        """
        self.forget(key)
        line, self._asked = self._asked, None
        if line is None or not line.startswith(_MODIFIED) or not version.isdigit() or int(version) <= self._newest:
            return
        if line.count(_VERSION) != 1:  # part of an annotation, or none
            return
        start, end = _version_in(line)
        layout = _layout(_without_times(line[end:]))
        self._newest = int(version)
        self._heads[key] = head = hash(line[:start])
        self._known[head] = layout, hash(layout.unpack_from(line, end))

    def forget(self, key: str) -> None:
        """The state of *key* is not known any more."""
        head = self._heads.pop(key, None)
        if head is not None:
            self._known.pop(head, None)

    def forget_all(self) -> None:
        """Objects may have changed without a word."""
        self._known.clear()
        self._heads.clear()
        self._newest = 0


def _version_in(line: bytes) -> tuple[int, int]:
    """Where the version begins and ends; anywhere if there is none."""
    start = line.find(_VERSION) + len(_VERSION)
    return start, line.find(b'"', start)


def _without_times(text: bytes) -> str:
    """The layout of *text*, without the times in it, in the language of `struct`."""
    at, spans = 0, ""
    for found in _TIMES.finditer(text):
        start, end = found.span(1)
        spans += f"{start - at}s{end - start}x"
        at = end
    return f"{spans}{len(text) - at}s"


# Nodes of one kind are laid out alike, but for the lengths of their names.
_layout: Final = lru_cache(2**12)(Struct)
