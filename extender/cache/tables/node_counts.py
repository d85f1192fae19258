"""Pod counts by node row, with sums by topology domain, updated incrementally.

Counts of few nodes are stored in a mapping: one pod may have hundreds of affinity terms, and an array for each of them
took 40 KB in a cluster of 5,000 nodes.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from extender.cache.tables.arrays import BoolArray, IntArray, widen
from extender.cache.tables.node_table import ABSENT, NodeTable

Key = TypeVar("Key")

_SPARSE_RATIO = 32
"""Counts whose rows are at most one of 32 are stored in a mapping, and their sums by domain are not cached. So an array
takes at most 256 bytes for each row with pods."""


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

    def restrict_to(self, mask: BoolArray, nodes: NodeTable) -> "NodeCounts":
        """Return the counts on the nodes of *mask*: bool, shape (number of nodes,)."""
        if isinstance(self.row_counts, dict):
            selected = {row: count for row, count in self.row_counts.items() if mask[row]}
            return NodeCounts(selected, OwnerToken(), total=sum(selected.values()))
        row_counts = self.get_by_row(nodes) * mask
        return NodeCounts(row_counts, OwnerToken(), total=int(row_counts.sum()))

    def add(self, row: int, amount: int, nodes: NodeTable) -> None:
        """Add *amount*, which may be negative, to the number of pods on *row*."""
        if isinstance(self.row_counts, dict):
            count = self.row_counts.pop(row, 0) + amount
            if count:
                self.row_counts[row] = count
            if len(self.row_counts) * _SPARSE_RATIO > nodes.columns.capacity:
                self.row_counts = _make_array(self.row_counts, nodes.columns.capacity)
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
            counts = _sum_by_value(column, self.get_by_row(nodes), size)
            if not isinstance(self.row_counts, dict):
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


def sum_by_domain(weighted_counts: Iterable[tuple[str, NodeCounts, int]], nodes: NodeTable) -> dict[str, IntArray]:
    """Return the sums of counts times their weights by topology key: int64, indexed by the id of the label value.

    *weighted_counts* has the topology key, the counts and the weight of each summand. A key is left out if none of its
    counted pods is on a node with this label. Counts of few nodes are added in one step for each key, because a few
    pods may have 100,000 affinity terms that match every pod, and thousands of topology keys that no node has. Do not
    modify the result.
    """
    sums: dict[str, IntArray] = {}
    sparse: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for key, counts, weight in weighted_counts:
        if not nodes.may_have_label(key):
            continue
        if isinstance(counts.row_counts, dict):
            rows, amounts = sparse[key]
            rows += counts.row_counts
            amounts += [count * weight for count in counts.row_counts.values()]
            continue
        domain_counts = counts.get_by_domain(key, nodes)
        if domain_counts.any():
            _add_to_sum(sums, key, domain_counts if weight == 1 else domain_counts * weight)
    for key, (rows, amounts) in sparse.items():
        value_ids = nodes.get_label_column(key)[np.array(rows, dtype=np.int64)]
        if (value_ids != ABSENT).any():
            size = max(1, len(nodes.symbols.get_label_values(key)))
            _add_to_sum(sums, key, _sum_by_value(value_ids, np.array(amounts, dtype=np.int64), size))
    return sums


def _add_to_sum(sums: dict[str, IntArray], key: str, summand: IntArray) -> None:
    current = sums.get(key)
    if current is None:
        sums[key] = summand
    else:
        size = max(len(current), len(summand))
        sums[key] = widen(current, size) + widen(summand, size)


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
