"""Lists of node names from requests, with cached snapshot rows and JSON strings.

A scheduler sends the same list more than once: the prioritize request has the nodes that filter returned. So values
that depend only on the list, or on the list and the snapshot's row map, are cached with the list.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cache.tables.node_table import RowMapVersion

_encoder = msgspec.json.Encoder()

_POD_OPENING, _POD_OBJECT_OPENING, _NAMES_OPENING = b'{"Pod":', b'{"Pod":{', b',"Nodes":null,"NodeNames":'
"""Source: kube-scheduler/extender/v1/types.go, ExtenderArgs; pkg/scheduler/extender.go, HTTPExtender.Filter (1.36)."""

_MAX_RECENT_LISTS = 16
"""kube-scheduler sends a rotating part of the nodes to filter. Prioritize has the nodes that filter has returned."""

_MAX_RECENT_BYTES = 32 << 20
"""Limit of the memory of all recent lists: 16 lists with 5,000 names each."""

_BYTES_PER_JSON_BYTE, _BYTES_PER_NAME = 5, 200
"""Estimated memory of a list, from its JSON and the number of its names: strings, JSON strings and rows."""

_STRING_OVERHEAD = 64
"""Bytes of a str or bytes object without its characters, which are nearly always ASCII."""


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


@dataclass(eq=False)
class NodeNames:
    """The names of nodes in the order of a request. Not thread-safe.

    Attributes:
        names: the names; read-only.
        raw: their JSON in the request; empty if it is not known.
    """

    names: list[str]
    raw: bytes = b""
    _row_map_version: RowMapVersion | None = field(init=False, default=None, repr=False)
    _node_rows: NodeRows | None = field(init=False, default=None, repr=False)

    def __len__(self) -> int:
        return len(self.names)

    def find_rows(self, snapshot: Snapshot) -> NodeRows:
        """Return the nodes' rows in *snapshot*; they are looked up again only after nodes were added or removed."""
        if self._node_rows is None or self._row_map_version is not snapshot.row_map_version:
            rows = snapshot.rows(self.names)
            known_mask = rows >= 0
            self._row_map_version, self._node_rows = (
                snapshot.row_map_version,
                NodeRows(rows, known_mask, len(rows) - int(np.count_nonzero(known_mask))),
            )
        return self._node_rows

    @cached_property
    def json(self) -> bytes:
        """The names as a JSON list."""
        return self.raw or _encoder.encode(self.names)

    @cached_property
    def json_strings(self) -> NDArray[Any]:
        """Each name as a JSON string: an object array of bytes, shape (number of names,)."""
        lines = _encoder.encode_lines(self.names)  # a line break in a name would be escaped
        return np.array(lines.split(b"\n")[:-1], dtype=np.object_)

    @cached_property
    def memory_bytes(self) -> int:
        """Memory of the names, their JSON list and their JSON strings in bytes."""
        return 3 * len("".join(self.names)) + 2 * _STRING_OVERHEAD * len(self.names)


@dataclass(eq=False, slots=True)
class RecentNameLists:
    """The lists of names of recent requests by their JSON, most recent first.

    A comparison with each of the few lists takes less time than a hash of the JSON.
    """

    _entries: list[tuple[bytes, NodeNames, int]] = field(default_factory=list)

    def get_or_create(self, raw_names: bytes, create: Callable[[bytes], NodeNames]) -> NodeNames:
        """Return the names with the JSON *raw_names*, or create them. If *create* raises, nothing is added.

        A list that is larger than the limit is not cached.
        """
        for index, entry in enumerate(self._entries):
            if entry[0] == raw_names:
                if index:
                    self._entries.insert(0, self._entries.pop(index))
                return entry[1]
        names = create(raw_names)
        memory_bytes = _BYTES_PER_JSON_BYTE * len(raw_names) + _BYTES_PER_NAME * len(names)
        if memory_bytes > _MAX_RECENT_BYTES:
            return names
        self._entries.insert(0, (raw_names, names, memory_bytes))
        del self._entries[_MAX_RECENT_LISTS:]
        while sum([entry[2] for entry in self._entries]) > _MAX_RECENT_BYTES:
            self._entries.pop()
        return names


def cut_names_request(body: bytes | bytearray) -> tuple[bytes, bytes] | None:
    """Return the JSON of the pod and of the names of a body that Go has encoded; None if it has another form.

    No JSON string can contain the text at which the body is cut. If both parts are valid JSON, the body is valid, too.
    Otherwise it does not have this form.
    """
    if not body.startswith(_POD_OBJECT_OPENING) or not body.endswith(b"]}"):
        return None
    end = body.find(_NAMES_OPENING)
    return None if end < 0 else (bytes(body[len(_POD_OPENING) : end]), bytes(body[end + len(_NAMES_OPENING) : -1]))
