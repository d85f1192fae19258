"""Pod counts by node row, with sums by topology domain, updated incrementally."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from extender.cache.tables.arrays import IntArray, widen
from extender.cache.tables.node_table import ABSENT, NodeTable

Key = TypeVar("Key")


class OwnerToken:
    """The identity of the table that may write counts. Two tokens are equal only if they are one object."""

    __slots__ = ()


@dataclass(slots=True)
class NodeCounts:
    """Counts of pods by node and by topology domain.

    Attributes:
        row_counts: the number of pods on each node row, int64, shape (capacity,).
        owner: the token of the table that may write these counts; other tables fork them first.
        domain_counts: the number of pods in each domain by topology key: int64, indexed by the id of the label value.
            Nodes without the label do not count. Only topology keys that were used have an entry.
        total: the number of pods on all rows.
        last_used: the value of the table's use counter at the last use.
    """

    row_counts: IntArray
    owner: OwnerToken
    domain_counts: dict[str, IntArray] = field(default_factory=dict)
    total: int = 0
    last_used: int = 0

    def fork(self, owner: OwnerToken) -> "NodeCounts":
        """Return a copy that another table owns."""
        domain_counts = {key: counts.copy() for key, counts in self.domain_counts.items()}
        return NodeCounts(self.row_counts.copy(), owner, domain_counts, self.total, self.last_used)

    def drop_domains(self, keys: set[str]) -> "NodeCounts":
        """Return the counts without the sums by topology *keys*.

        The result shares `row_counts` with this object. After this call, do not write this object.
        """
        domain_counts = {key: counts for key, counts in self.domain_counts.items() if key not in keys}
        return NodeCounts(self.row_counts, self.owner, domain_counts, self.total, self.last_used)

    def add(self, row: int, amount: int, nodes: NodeTable) -> None:
        """Add *amount*, which may be negative, to the number of pods on *row*."""
        if row >= len(self.row_counts):
            self.row_counts = widen(self.row_counts, nodes.columns.capacity)
        self.row_counts[row] += amount
        self.total += amount
        for key, counts in self.domain_counts.items():
            value_id = nodes.get_label_column(key)[row]
            if value_id == ABSENT:
                continue
            if value_id >= len(counts):
                self.domain_counts[key] = widen(counts, int(value_id) * 2 + 1)
            self.domain_counts[key][value_id] += amount

    def get_by_row(self, nodes: NodeTable) -> IntArray:
        """Return the counts of all nodes: int64, shape (number of nodes,)."""
        if len(self.row_counts) < nodes.columns.capacity:
            self.row_counts = widen(self.row_counts, nodes.columns.capacity)
        return self.row_counts[: len(nodes)]

    def get_by_domain(self, key: str, nodes: NodeTable) -> IntArray:
        """Return the number of pods in each domain of topology *key*: int64, indexed by the id of the label value.

        The array has an entry for each interned label value, and at least one.
        """
        counts = self.domain_counts.get(key)
        if counts is None:
            column = nodes.get_label_column(key)[: len(nodes)]
            has_label = column != ABSENT
            size = max(1, len(nodes.symbols.get_label_values(key)))
            sums = np.bincount(column[has_label], weights=self.get_by_row(nodes)[has_label], minlength=size)
            counts = self.domain_counts[key] = sums.astype(np.int64)
            return counts
        size = len(nodes.symbols.get_label_values(key))
        if len(counts) < size:
            counts = self.domain_counts[key] = widen(counts, size)
        return counts


class NodeCountsByKey(Generic[Key]):
    """Counts of pods by node for each of several keys, and the labels of the namespaces.

    A copy of the table shares the counts. It forks the counts of a key before it first writes them.
    """

    __slots__ = ("_counts", "_owner_token", "namespace_labels")

    def __init__(self) -> None:
        self._owner_token = OwnerToken()
        self._counts: dict[Key, NodeCounts] = {}
        self.namespace_labels: dict[str, dict[str, str]] = {}

    def items(self) -> list[tuple[Key, NodeCounts]]:
        """Return all keys with their counts; some counts may be 0."""
        return list(self._counts.items())

    def invalidate_domains(self, keys: set[str]) -> None:
        """Drop the sums by domain of the topology *keys*. The sums are recomputed on next use."""
        for key, counts in self._counts.items():
            # An older snapshot shares the counts that this table does not own. It can still add sums to them by its
            # older node labels.
            if counts.owner is not self._owner_token or keys & counts.domain_counts.keys():
                self._counts[key] = counts.drop_domains(keys)

    def invalidate_all_domains(self) -> None:
        """Drop all sums by domain, because the ids of label values changed."""
        self.invalidate_domains({key for counts in self._counts.values() for key in counts.domain_counts})
