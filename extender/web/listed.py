"""Lists of node names as requests bring them: where each is in the cluster, and how it is written in an answer.

A scheduler asks about the same list more than once: filter's answer is what it asks prioritize about. So what follows
from the list alone, or from it and the names in the cluster, is worked out once a list and kept with it.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.snapshot import Snapshot

_encoder = msgspec.json.Encoder()

_TEXT = 64
"""Bytes that a name weighs beside its characters, those being ASCII as nearly always; as a string or as bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where listed nodes are in a cluster; nobody writes to it.

    Attributes:
        rows: of each name, -1 where it is unknown; int64.
        known: whether each name is known; bool.
        unknown: how many names are not known.
    """

    rows: IntArray
    known: BoolArray
    unknown: int


@dataclass(eq=False)
class Listed:
    """The names of nodes in the order of a request. Not thread-safe.

    Attributes:
        names: never written to.
    """

    names: list[str]
    _roll: object = field(init=False, default=None, repr=False)
    _places: Places | None = field(init=False, default=None, repr=False)

    def __len__(self) -> int:
        return len(self.names)

    def places(self, cluster: Snapshot) -> Places:
        """Where the nodes are in *cluster*; looked up again only when nodes have come or gone."""
        if self._places is None or self._roll is not cluster.roll:
            rows = cluster.rows(self.names)
            known = rows >= 0
            self._roll, self._places = cluster.roll, Places(rows, known, len(rows) - int(np.count_nonzero(known)))
        return self._places

    @cached_property
    def quoted(self) -> NDArray[Any]:
        """Each name as a JSON string: an object array of bytes, shape (number of names,)."""
        lines = _encoder.encode_lines(self.names)  # in a JSON string there is no line break, it would be escaped
        return np.array(lines.split(b"\n")[:-1], dtype=np.object_)

    @cached_property
    def weight(self) -> int:
        """Bytes that the names weigh, as they are and quoted."""
        return 2 * (len("".join(self.names)) + _TEXT * len(self.names))
