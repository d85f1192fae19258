"""Pod counts by node row, with sums by topology domain, updated incrementally.

Counts of few nodes are stored in a mapping: one pod may have hundreds of affinity terms, and an array for each of them
took 40 KB in a cluster of 5,000 nodes.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from extender.cache.tables.arrays import IntArray, widen
from extender.cache.tables.node_table import ABSENT, NodeTable

Key = TypeVar("Key")

_SPARSE_RATIO = 32
"""Counts whose rows are at most one of 32 are stored in a mapping, and an array is cached only if it has at most 32
times as many entries as there are rows with pods. So an array takes at most 256 bytes for each of these rows."""


class OwnerToken:
    """The identity of the table that may write counts. Two tokens are equal only if they are one object."""

    __slots__ = ()


@dataclass(slots=True)
class NodeCounts:
    """Counts of pods by node and by topology domain.

    Attributes:
        row_counts: the number of pods on each node row: int64, shape (capacity,), or by row if few rows have pods.
        owner: the token of the table that may write these counts; other tables fork them first.
        domain_counts: the number of pods in each domain by topology key: int64, indexed by the id of the label value.
            Nodes without the label do not count. Only topology keys that were used have an entry.
        total: the number of pods on all rows.
        last_used: the value of the table's use counter at the last use.
        unread_updates: the number of updates since the last use.
    """

    row_counts: IntArray | dict[int, int]
    owner: OwnerToken
    domain_counts: dict[str, IntArray] = field(default_factory=dict)
    total: int = 0
    last_used: int = 0
    unread_updates: int = 0

    def fork(self, owner: OwnerToken) -> "NodeCounts":
        """Return a copy that another table owns."""
        domain_counts = {key: counts.copy() for key, counts in self.domain_counts.items()}
        return NodeCounts(self.row_counts.copy(), owner, domain_counts, self.total, self.last_used, self.unread_updates)

    def drop_domains(self, keys: set[str]) -> "NodeCounts":
        """Return the counts without the sums by topology *keys*.

        The result shares `row_counts` with this object. After this call, do not write this object.
        """
        domain_counts = {key: counts for key, counts in self.domain_counts.items() if key not in keys}
        return NodeCounts(self.row_counts, self.owner, domain_counts, self.total, self.last_used, self.unread_updates)

    def add(self, row: int, amount: int, nodes: NodeTable) -> None:
        """Add *amount*, which may be negative, to the number of pods on *row*."""
        if isinstance(self.row_counts, dict):
            self._add_to_mapping(self.row_counts, row, amount, nodes)
        else:
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

    def _add_to_mapping(self, row_counts: dict[int, int], row: int, amount: int, nodes: NodeTable) -> None:
        count = row_counts.pop(row, 0) + amount
        if count:
            row_counts[row] = count
        if len(row_counts) * _SPARSE_RATIO > nodes.columns.capacity:
            self.row_counts = _make_array(row_counts, nodes.columns.capacity)

    def get_by_row(self, nodes: NodeTable) -> IntArray:
        """Return the counts of all nodes: int64, shape (number of nodes,)."""
        if isinstance(self.row_counts, dict):
            return _make_array(self.row_counts, len(nodes))
        if len(self.row_counts) < nodes.columns.capacity:
            self.row_counts = widen(self.row_counts, nodes.columns.capacity)
        return self.row_counts[: len(nodes)]

    def get_by_domain(self, key: str, nodes: NodeTable) -> IntArray:
        """Return the number of pods in each domain of topology *key*: int64, indexed by the id of the label value.

        The array has an entry for each interned label value, and at least one.
        """
        counts = self.domain_counts.get(key)
        if counts is None:
            column, size = nodes.get_label_column(key)[: len(nodes)], max(1, len(nodes.symbols.get_label_values(key)))
            if isinstance(self.row_counts, dict):
                counts = _sum_by_value(column[list(self.row_counts)], np.array(list(self.row_counts.values())), size)
                is_cached = size <= len(self.row_counts) * _SPARSE_RATIO
            else:
                counts, is_cached = _sum_by_value(column, self.get_by_row(nodes), size), True
            if is_cached:
                self.domain_counts[key] = counts
            return counts
        size = len(nodes.symbols.get_label_values(key))
        if len(counts) < size:
            counts = self.domain_counts[key] = widen(counts, size)
        return counts


def _make_array(row_counts: dict[int, int], size: int) -> IntArray:
    array: IntArray = np.zeros(size, dtype=np.int64)
    array[list(row_counts)] = list(row_counts.values())
    return array


def _sum_by_value(value_ids: IntArray, counts: IntArray, size: int) -> IntArray:
    """Return the sum of *counts* for each of *size* values; *value_ids* has the value of each count, or ABSENT."""
    has_value = value_ids != ABSENT
    return np.bincount(value_ids[has_value], weights=counts[has_value], minlength=size).astype(np.int64)


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
