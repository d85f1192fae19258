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

_encoder = msgspec.json.Encoder()

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
    _row_map_version: object = field(init=False, default=None, repr=False)
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
    def json_strings(self) -> NDArray[Any]:
        """Each name as a JSON string: an object array of bytes, shape (number of names,)."""
        lines = _encoder.encode_lines(self.names)  # a JSON string has no line break, it would be escaped
        return np.array(lines.split(b"\n")[:-1], dtype=np.object_)

    @cached_property
    def memory_bytes(self) -> int:
        """Memory of the names and their JSON strings in bytes."""
        return 2 * (len("".join(self.names)) + _STRING_OVERHEAD * len(self.names))
