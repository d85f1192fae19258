"""Lists of node names from requests, with cached snapshot rows and JSON strings.

A scheduler sends the same list more than once: the prioritize request has the nodes that filter returned. So values
that depend only on the list, or on the list and the snapshot's row map, are cached with the list.
"""

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
"""kube-scheduler sends a rotating part of the nodes: with 10 % of them, ten lists follow each other."""

_MAX_ENDING_BYTES = 1 << 20
"""Longer lists are found by their hash; so 16 recent lists take at most 16 MiB."""

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
    """

    names: list[str]
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
        return _encoder.encode(self.names)

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
    """The lists of names of recent requests, found by the end of a body in Go's form.

    A body that differs only by its pod ends like an earlier one. A comparison of the end takes a tenth of the time of a
    search for the list and its hash.
    """

    _entries: list[tuple[bytes, NodeNames]] = field(default_factory=list)  # most recent first

    def find(self, body: bytes | bytearray) -> tuple[bytes, NodeNames] | None:
        """Return the JSON of the pod and the names of *body*; None if no earlier body ended like it.

        The JSON of the pod is not checked: if it is not one JSON value, the body does not have this form.
        """
        for index, (ending, names) in enumerate(self._entries):
            if body.endswith(ending) and body.startswith(_POD_OBJECT_OPENING):
                if index:
                    self._entries.insert(0, self._entries.pop(index))
                return bytes(body[len(_POD_OPENING) : -len(ending)]), names
        return None

    def add(self, body: bytes | bytearray, raw_pod: bytes, raw_names: bytes, names: NodeNames) -> None:
        """Add the decoded names of *body* if it is `{"Pod":...,"Nodes":null,"NodeNames":[...]}` without whitespace."""
        ending = _NAMES_OPENING + raw_names + b"}"
        if (
            len(ending) <= _MAX_ENDING_BYTES
            and len(body) == len(_POD_OPENING) + len(raw_pod) + len(ending)
            and body.startswith(_POD_OPENING)
            and body.endswith(ending)
        ):
            self._entries.insert(0, (ending, names))
            del self._entries[_MAX_RECENT_LISTS:]
