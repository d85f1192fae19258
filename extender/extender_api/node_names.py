"""The node names of a request, with their snapshot rows and JSON strings."""

from collections.abc import Sequence
from functools import cached_property
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

_STRING_OVERHEAD = 64
"""Bytes of a str or bytes object without its characters, which are nearly always ASCII."""


class NodeRows(NamedTuple):
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

    Values that depend only on the names, or on the names and the snapshot's row map, are cached, because a prioritize
    request has the names that filter returned.

    Attributes:
        names: the names; read-only.
        raw: their JSON in the request; empty if it is not known.
    """

    def __init__(self, names: list[str], raw: bytes = b"") -> None:
        """Create a list of *names*, which is not copied; *raw* is its JSON."""
        self.names = names
        self.raw = raw
        self._row_map_version: RowMapVersion | None = None
        self._node_rows: NodeRows | None = None
        self._has_strings_of_snapshot = False

    def __len__(self) -> int:
        return len(self.names)

    def find_rows(self, snapshot: Snapshot) -> NodeRows:
        """Return the nodes' rows in *snapshot*; they are looked up again only after nodes were added or removed."""
        if self._node_rows is None or self._row_map_version is not snapshot.row_map_version:
            rows = snapshot.rows(self.names)
            known_mask = rows >= 0
            unknown_count = len(rows) - int(np.count_nonzero(known_mask))
            self._row_map_version = snapshot.row_map_version
            self._node_rows = NodeRows(rows, known_mask, unknown_count)
        return self._node_rows

    def use_strings_of(self, snapshot: Snapshot) -> None:
        """Replace the names by the equal strings of *snapshot*, which many lists in the decision log share.

        Names with an unknown one among them stay as they are.
        """
        rows, _, unknown_count = self.find_rows(snapshot)
        if not self._has_strings_of_snapshot and not unknown_count:
            self.names = list(map(snapshot.names.__getitem__, rows.tolist()))
            self._has_strings_of_snapshot = True

    @cached_property
    def json(self) -> bytes:
        """The names as a JSON list."""
        return self.raw or _encoder.encode(self.names)

    @cached_property
    def json_strings(self) -> NDArray[Any]:
        """Each name as a JSON string: an object array of bytes, shape (number of names,)."""
        strings: Sequence[bytes] = self.raw.strip()[1:-1].split(b",")
        if not self.raw or len(strings) != len(self.names):  # the JSON is not known, or a name has a comma
            strings = _encoder.encode_lines(self.names).split(b"\n")[:-1]  # a line break in a name would be escaped
        return np.array(strings, dtype=np.object_)

    @cached_property
    def memory_bytes(self) -> int:
        """Memory of the names, their JSON list and their JSON strings in bytes."""
        return 3 * len("".join(self.names)) + 2 * _STRING_OVERHEAD * len(self.names)


def cut_names_request(body: bytes | bytearray) -> tuple[bytes, bytes] | None:
    """Return the JSON of the pod and of the names of a body that Go has encoded; None if it has another form.

    No JSON string can contain the text at which the body is cut. If both parts are valid JSON, the body is valid, too.
    Otherwise it does not have this form.
    """
    if not body.startswith(_POD_OBJECT_OPENING) or not body.endswith(b"]}"):
        return None
    end = body.find(_NAMES_OPENING)
    return None if end < 0 else (bytes(body[len(_POD_OPENING) : end]), bytes(body[end + len(_NAMES_OPENING) : -1]))
