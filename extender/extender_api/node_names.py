"""Lists of node names from requests, with cached snapshot rows and JSON strings.

A scheduler sends the same names again: the prioritize request has the nodes that filter returned, and the filter
requests of the next pods have other parts of one sequence of all nodes. So values that depend only on a list, or on the
list and the snapshot's row map, are cached with the list, and a new list is joined from parts of recent lists.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cache.tables.node_table import RowMapVersion

_encoder = msgspec.json.Encoder()

_POD_OPENING, _POD_OBJECT_OPENING, _NAMES_OPENING = b'{"Pod":', b'{"Pod":{', b',"Nodes":null,"NodeNames":'
"""Source: kube-scheduler/extender/v1/types.go, ExtenderArgs; pkg/scheduler/extender.go, HTTPExtender.Filter (1.36)."""

_MAX_RECENT_LISTS = 64
"""Limit of the number of recent lists. kube-scheduler sends 10 % of 5,000 nodes, so ten lists have all names."""

_MAX_RECENT_BYTES = 32 << 20
"""Limit of the memory of all recent lists: 16 lists with 5,000 names each."""

_BYTES_PER_JSON_BYTE, _BYTES_PER_NAME = 5, 300
"""Estimated memory of a list, from its JSON and the number of its names: strings, JSON strings, positions and rows."""

_STRING_OVERHEAD = 64
"""Bytes of a str or bytes object without its characters, which are nearly always ASCII."""

_MAX_PARTS = 16
"""Limit of the parts of a joined list. More parts take as much time as decoding the list."""

_SHORT_PART = 256
"""Bytes that are compared before all bytes are."""

_REPLACED_SHARE = 8
"""One of so many lists with a known first name is added to the recent lists, because adding a list takes several times
as long as decoding it.

On a machine with many idle CPUs, kube-scheduler's workers run at the same time and mix the nodes of many parts.
"""

_QUOTE, _COMMA = b'",'


@dataclass(frozen=True, slots=True, eq=False)
class NodeRows:
    """The rows of requested nodes in a snapshot; read-only.

    Attributes:
        rows: the row of each name, -1 if it is unknown; int64.
        known_mask: whether each name is known; bool.
        unknown_count: number of unknown names.
    """

    rows: IntArray
    known_mask: BoolArray
    unknown_count: int


class NodeNames:
    """The names of nodes in the order of a request. Not thread-safe.

    Attributes:
        raw: their JSON in the request; empty if it is not known.
    """

    def __init__(self, names: list[str], raw: bytes = b"") -> None:
        """Create a list of *names*, which is not copied; *raw* is its JSON."""
        self.raw = raw
        self._names: list[str] | None = names
        self._parts: Sequence[_ListPart] = ()
        self._count = len(names)
        self._row_map_version: RowMapVersion | None = None
        self._node_rows: NodeRows | None = None

    @classmethod
    def join(cls, parts: "Sequence[_ListPart]", raw: bytes) -> "NodeNames":
        """Create a list of *parts* of other lists; *raw* is its JSON."""
        joined = cls([], raw)
        joined._names, joined._parts = None, parts
        joined._count = sum([part.end - part.start for part in parts])
        return joined

    def __len__(self) -> int:
        return self._count

    @property
    def names(self) -> list[str]:
        """The names; read-only."""
        if self._names is None:
            self._names = [name for part in self._parts for name in part.node_names.names[part.start : part.end]]
        return self._names

    def is_list(self, names: object) -> bool:
        """Return whether *names* is the list `self.names`."""
        return self._names is not None and names is self._names

    def find_rows(self, snapshot: Snapshot) -> NodeRows:
        """Return the nodes' rows in *snapshot*; they are looked up again only after nodes were added or removed."""
        if self._node_rows is None or self._row_map_version is not snapshot.row_map_version:
            rows = self._look_up_rows(snapshot)
            known_mask = rows >= 0
            self._row_map_version, self._node_rows = (
                snapshot.row_map_version,
                NodeRows(rows, known_mask, len(rows) - int(np.count_nonzero(known_mask))),
            )
        return self._node_rows

    def _look_up_rows(self, snapshot: Snapshot) -> IntArray:
        if not self._parts:
            return snapshot.rows(self.names)
        return np.concatenate([part.node_names.find_rows(snapshot).rows[part.start : part.end] for part in self._parts])

    @cached_property
    def json(self) -> bytes:
        """The names as a JSON list."""
        return self.raw or _encoder.encode(self.names)

    @cached_property
    def json_strings(self) -> NDArray[Any]:
        """Each name as a JSON string: an object array of bytes, shape (number of names,)."""
        if self._parts:
            return np.concatenate([part.node_names.json_strings[part.start : part.end] for part in self._parts])
        lines = _encoder.encode_lines(self.names)  # a line break in a name would be escaped
        return np.array(lines.split(b"\n")[:-1], dtype=np.object_)

    @cached_property
    def memory_bytes(self) -> int:
        """Memory of the names, their JSON list and their JSON strings in bytes."""
        return 3 * len("".join(self.names)) + 2 * _STRING_OVERHEAD * len(self.names)


class _ListPart(NamedTuple):
    """The names from position `start` until before position `end` of a list."""

    node_names: NodeNames
    start: int
    end: int


@dataclass(eq=False, slots=True)
class _RecentList:
    """A list of names of a recent request.

    Attributes:
        node_names: the list.
        ends: the position after each JSON string in the JSON of the list, int64.
        memory_bytes: its estimated memory.
    """

    node_names: NodeNames
    ends: IntArray
    memory_bytes: int

    def list_json_strings(self) -> list[bytes]:
        """Return the JSON string of each name."""
        return self.node_names.raw[1:-1].split(b",")

    def measure_equal_bytes(self, start: int, raw: bytes, raw_start: int) -> int:
        """Return how many bytes from *start* on are equal to those of *raw* from *raw_start* on."""
        own = self.node_names.raw
        size = min(len(own) - 1 - start, len(raw) - 1 - raw_start)
        if own[start : start + size] == raw[raw_start : raw_start + size]:
            return size
        if own[start : start + _SHORT_PART] != raw[raw_start : raw_start + _SHORT_PART]:
            size = min(size, _SHORT_PART)
        own_bytes = np.frombuffer(own, dtype=np.uint8, count=size, offset=start)
        return int((own_bytes != np.frombuffer(raw, dtype=np.uint8, count=size, offset=raw_start)).argmax())


@dataclass(eq=False, slots=True)
class RecentNameLists:
    """The lists of names of recent requests, of which new lists are joined.

    kube-scheduler evaluates its nodes in a sequence that changes only with the nodes. It starts at another node for
    each pod, and a few of its workers run at the same time. So a list is most often one or two parts of this sequence,
    and comparing the JSON of a part takes less time than decoding and looking up its names.
    """

    _lists: deque[_RecentList] = field(default_factory=deque)  # oldest first
    _memory_bytes: int = 0
    _places: dict[bytes, tuple[_RecentList, int]] = field(default_factory=dict)
    _last: NodeNames | None = None
    _known_count: int = 0

    def get_or_create(self, raw_names: bytes, create: Callable[[bytes], NodeNames]) -> NodeNames:
        """Return the names with the JSON *raw_names*, or create them. If *create* raises, nothing changes."""
        if self._last is not None and self._last.raw == raw_names:
            return self._last
        node_names = self._join(raw_names)
        if node_names is None:
            node_names = create(raw_names)
            self._add(node_names)
        self._last = node_names
        return node_names

    def _join(self, raw: bytes) -> NodeNames | None:
        """Return the list with the JSON *raw*, joined from parts of recent lists; None if a part is missing."""
        if not raw.startswith(b"[") or not raw.endswith(b"]"):
            return None
        parts: list[_ListPart] = []
        position, end = 1, len(raw) - 1
        while position < end and len(parts) < _MAX_PARTS:
            if (len(parts) - 2) * end > 2 * _MAX_PARTS * position:  # the parts so far are too short
                return None
            string = raw[position : raw.find(b'"', position + 1) + 1]
            place = self._places.get(string)
            if place is None:
                return None
            recent_list, index = place
            start = recent_list.ends.item(index) - len(string)
            equal_end = start + recent_list.measure_equal_bytes(start, raw, position)
            next_index = int(recent_list.ends.searchsorted(equal_end, "right"))
            parts.append(_ListPart(recent_list.node_names, index, next_index))
            position += recent_list.ends.item(next_index - 1) - start
            if position == end:
                is_same_list = len(parts) == 1 and len(recent_list.node_names) == next_index - index
                return recent_list.node_names if is_same_list else NodeNames.join(parts, raw)
            if raw[position] != _COMMA:
                return None
            position += 1
        return None

    def _add(self, node_names: NodeNames) -> None:
        """Add a list with its JSON, unless it is too large or its JSON has another form than Go's."""
        if node_names.raw[1 : node_names.raw.find(b'"', 2) + 1] in self._places:
            self._known_count += 1
            if self._known_count % _REPLACED_SHARE:
                return
        memory_bytes = _BYTES_PER_JSON_BYTE * len(node_names.raw) + _BYTES_PER_NAME * len(node_names)
        ends = _find_string_ends(node_names)
        if memory_bytes > _MAX_RECENT_BYTES or ends is None:
            return
        recent_list = _RecentList(node_names, ends, memory_bytes)
        self._lists.append(recent_list)
        self._memory_bytes += memory_bytes
        places = zip(repeat(recent_list), range(len(node_names)))
        self._places.update(zip(recent_list.list_json_strings(), places, strict=True))
        while len(self._lists) > _MAX_RECENT_LISTS or self._memory_bytes > _MAX_RECENT_BYTES:
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        oldest_list = self._lists.popleft()
        self._memory_bytes -= oldest_list.memory_bytes
        for string in oldest_list.list_json_strings():
            place = self._places.get(string)  # None: the list has a name twice
            if place is not None and place[0] is oldest_list:
                del self._places[string]


def _find_string_ends(node_names: NodeNames) -> IntArray | None:
    """Return the position after each JSON string in the JSON of a list, int64.

    Return None if the JSON has whitespace, or a name has a comma, a quote or an escaped character.
    """
    raw, size = node_names.raw, len(node_names)
    quotes = (np.frombuffer(raw, dtype=np.uint8) == _QUOTE).nonzero()[0]
    has_simple_form = (
        raw.startswith(b'["')
        and raw.endswith(b'"]')
        and len(quotes) == 2 * size
        and raw.count(b",") == size - 1 == raw.count(b'","')
        and b"\\" not in raw
    )
    ends: IntArray = quotes[1::2] + 1
    return ends if has_simple_form else None


def cut_names_request(body: bytes | bytearray) -> tuple[bytes, bytes] | None:
    """Return the JSON of the pod and of the names of a body that Go has encoded; None if it has another form.

    No JSON string can contain the text at which the body is cut. If both parts are valid JSON, the body is valid, too.
    Otherwise it does not have this form.
    """
    if not body.startswith(_POD_OBJECT_OPENING) or not body.endswith(b"]}"):
        return None
    end = body.find(_NAMES_OPENING)
    return None if end < 0 else (bytes(body[len(_POD_OPENING) : end]), bytes(body[end + len(_NAMES_OPENING) : -1]))
