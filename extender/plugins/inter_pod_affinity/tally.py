"""Numbers by topology domain, put together from kept counts, which may then be changed without touching those."""

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray, widened
from extender.cluster.nodes import ABSENT
from extender.cluster.snapshot import NodeView


class DomainTally:
    """A number for each (topology key, label value). What it was given is shared until it is written.

    Source: B055, B060, B062.
    """

    __slots__ = ("_mine", "_totals")

    def __init__(self) -> None:
        self._totals: dict[str, IntArray] = {}
        self._mine: set[str] = set()

    def add(self, key: str, totals: IntArray) -> None:
        """Add *totals*, int64 by the id of the value of label *key*, to what is there."""
        known = self._totals.get(key)
        if known is None:
            self._totals[key] = totals
            return
        size = max(len(known), len(totals))
        self._totals[key] = widened(known, size) + widened(totals, size)
        self._mine.add(key)

    def bump(self, key: str, value: int, by: int) -> None:
        """*by* more in the domain *value* of *key*; nothing happens if *value* is ABSENT."""
        if value == ABSENT:
            return
        totals = self._totals.get(key)
        if totals is None:
            totals = np.zeros(value + 1, dtype=np.int64)
        elif key not in self._mine:
            totals = totals.copy()
        totals = widened(totals, value + 1)
        totals[value] += by
        self._totals[key] = totals
        self._mine.add(key)

    def clone(self) -> "DomainTally":
        """The same numbers; from now on either may be changed without touching the other."""
        twin = DomainTally()
        twin._totals = dict(self._totals)
        self._mine = set()  # both share from here on, so both copy before they write
        return twin

    def entries(self) -> dict[tuple[str, int], int]:
        """The numbers that are not zero, by key and id of the value."""
        return {
            (key, value): int(totals[value])
            for key, totals in self._totals.items()
            for value in np.flatnonzero(totals).tolist()
        }

    @property
    def is_empty(self) -> bool:
        """Whether every number is zero."""
        return not any(totals.any() for totals in self._totals.values())

    @property
    def size(self) -> int:
        """How many numbers are not zero."""
        return sum(int(np.count_nonzero(totals)) for totals in self._totals.values())

    @property
    def keys(self) -> tuple[str, ...]:
        """The topology keys that something was added for."""
        return tuple(self._totals)

    def at(self, nodes: NodeView, key: str) -> IntArray:
        """The number of each node's domain: int64, shape (len(nodes),), 0 for nodes without label *key*."""
        size = len(nodes.snapshot.vocabulary.label_values(key))
        padded = np.zeros(size + 1, dtype=np.int64)
        known = self._totals.get(key)
        if known is not None:
            padded[: min(size, len(known))] = known[:size]
        return padded[nodes.label(key)]  # ABSENT picks the last entry

    def is_positive(self, nodes: NodeView, key: str) -> BoolArray:
        """Whether each node's domain has a number above zero: bool, shape (len(nodes),), False without label *key*."""
        size = len(nodes.snapshot.vocabulary.label_values(key))
        padded = np.zeros(size + 1, dtype=np.bool_)
        known = self._totals.get(key)
        if known is not None:
            padded[: min(size, len(known))] = known[:size] > 0
        return padded[nodes.label(key)]
