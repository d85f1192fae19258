"""Detect the heartbeats of nodes without decoding them.

A kubelet updates its node's status every few minutes. Most updates are heartbeats: they change only the resource
version and times, which scheduling does not read. In a large cluster, a watch of nodes consists mostly of heartbeats of
13 kB.
"""

import re
from functools import lru_cache
from struct import Struct
from typing import Final

from extender.api.resource_versions import make_version_key

_MODIFIED: Final = b'{"type":"MODIFIED"'
_VERSION: Final = b'"resourceVersion":"'
_TIMES: Final = re.compile(rb'"(?:lastHeartbeatTime|time(?=":"[^"]{20}","fieldsType"))":"([^"]{20})"')
"""The times of heartbeats and of field managers, as `2026-01-01T00:00:00Z`."""


class HeartbeatDetector:
    """Compares each event of a watch with the last state of its object.

    A state has the positions of the object's times in the JSON, and a hash of the rest. The times mostly stay at the
    same positions, so the next state is compared without a search. States with equal 64-bit hashes count as equal; the
    probability of a collision is 2**-64 per change.
    """

    def __init__(self) -> None:
        self._states: dict[int, tuple[Struct, int]] = {}  # by the hash of the text before the version
        self._prefix_hashes: dict[str, int] = {}
        self._last_line: bytes | None = None
        self._newest_version = 0, ""

    def find_heartbeat_version(self, line: bytes) -> str:
        """Return the resource version of *line* if it is a heartbeat; empty if it must be decoded."""
        self._last_line = line
        start, end = _find_version(line)
        # The event's type, the object's name and its uid precede the version.
        state = self._states.get(hash(line[:start]))
        if state is None:
            return ""
        layout, rest_hash = state
        if layout.size != len(line) - end or hash(layout.unpack_from(line, end)) != rest_hash:
            return ""
        version = line[start:end]
        return version.decode() if version.isdigit() else ""

    def set_state(self, key: str, version: str) -> None:
        """Set the state of the object *key* at *version* to the last line passed to `find_heartbeat_version`.

        The line is ignored if a newer version was seen, because a server may repeat events.
        """
        self.remove_state(key)
        line, self._last_line = self._last_line, None
        version_key = make_version_key(version)
        if line is None or not line.startswith(_MODIFIED) or version_key is None or version_key <= self._newest_version:
            return
        if line.count(_VERSION) != 1:  # there is none, or a label or annotation has the same key
            return
        start, end = _find_version(line)
        layout = _new_layout(_make_struct_format(line[end:]))
        self._newest_version = version_key
        self._prefix_hashes[key] = prefix_hash = hash(line[:start])
        self._states[prefix_hash] = layout, hash(layout.unpack_from(line, end))

    def remove_state(self, key: str) -> None:
        """Remove the state of the object *key*."""
        prefix_hash = self._prefix_hashes.pop(key, None)
        if prefix_hash is not None:
            self._states.pop(prefix_hash, None)

    def clear(self) -> None:
        """Remove all states; call it when events may have been missed."""
        self._states.clear()
        self._prefix_hashes.clear()
        self._newest_version = 0, ""


def _find_version(line: bytes) -> tuple[int, int]:
    """Return the start and end of the resource version; arbitrary positions if there is none."""
    start = line.find(_VERSION) + len(_VERSION)
    return start, line.find(b'"', start)


def _make_struct_format(text: bytes) -> str:
    """Return a `struct` format that reads *text* without its times."""
    position, formats = 0, ""
    for match in _TIMES.finditer(text):
        start, end = match.span(1)
        formats += f"{start - position}s{end - start}x"
        position = end
    return f"{formats}{len(text) - position}s"


# Similar nodes have the same layout unless their names differ in length.
_new_layout: Final = lru_cache(2**12)(Struct)
