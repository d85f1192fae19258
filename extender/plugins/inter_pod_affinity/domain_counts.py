"""Counts of matched terms by topology domain. Arrays are shared with the cache and copied on write."""

import numpy as np

from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, IntArray, widen
from extender.cache.tables.node_table import ABSENT


class TopologyToMatchedTermCount:
    """Counts by topology domain, which is a pair of topology key and label value. Arrays are copied on write.

    Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState,
    preFilterState.updateWithPod; pkg/scheduler/framework/plugins/interpodaffinity/scoring.go,
    InterPodAffinity.processExistingPod (1.36).
    """

    __slots__ = ("_counts", "_owned_keys")

    def __init__(self) -> None:
        self._counts: dict[str, IntArray] = {}
        self._owned_keys: set[str] = set()

    def add(self, key: str, counts: IntArray) -> None:
        """Add *counts* to the counts of topology key *key*: int64, indexed by value id."""
        current_counts = self._counts.get(key)
        if current_counts is None:
            self._counts[key] = counts
            return
        size = max(len(current_counts), len(counts))
        self._counts[key] = widen(current_counts, size) + widen(counts, size)
        self._owned_keys.add(key)

    def update(self, key: str, value_id: int, delta: int) -> None:
        """Add *delta* to the count of domain (*key*, *value_id*). Do nothing if *value_id* is ABSENT."""
        if value_id == ABSENT:
            return
        counts = self._counts.get(key)
        if counts is None:
            counts = np.zeros(value_id + 1, dtype=np.int64)
        elif key not in self._owned_keys:
            counts = counts.copy()
        counts = widen(counts, value_id + 1)
        counts[value_id] += delta
        self._counts[key] = counts
        self._owned_keys.add(key)

    def clone(self) -> "TopologyToMatchedTermCount":
        """Return a copy that can be updated independently."""
        clone = TopologyToMatchedTermCount()
        clone._counts = dict(self._counts)
        self._owned_keys = set()  # both objects now share the arrays and copy them before writing
        return clone

    @property
    def is_empty(self) -> bool:
        """Whether all counts are zero."""
        return not any(counts.any() for counts in self._counts.values())

    @property
    def nonzero_domain_count(self) -> int:
        """The number of domains with a count other than zero."""
        return sum(int(np.count_nonzero(counts)) for counts in self._counts.values())

    @property
    def topology_keys(self) -> tuple[str, ...]:
        """The topology keys with counts."""
        return tuple(self._counts)

    def get_counts_by_node(self, nodes: NodeView, key: str) -> IntArray:
        """Return the count of each node's domain: int64, shape (len(nodes),), 0 for nodes without label *key*."""
        size = len(nodes.snapshot.symbols.get_label_values(key))
        padded_counts = np.zeros(size + 1, dtype=np.int64)
        counts = self._counts.get(key)
        if counts is not None:
            padded_counts[: min(size, len(counts))] = counts[:size]
        return padded_counts[nodes.label_value_ids(key)]  # ABSENT, -1, selects the last entry

    def is_positive_by_node(self, nodes: NodeView, key: str) -> BoolArray:
        """Return the nodes whose domain has a count above 0: bool, shape (len(nodes),), False without label *key*."""
        size = len(nodes.snapshot.symbols.get_label_values(key))
        padded_mask = np.zeros(size + 1, dtype=np.bool_)
        counts = self._counts.get(key)
        if counts is not None:
            padded_mask[: min(size, len(counts))] = counts[:size] > 0
        return padded_mask[nodes.label_value_ids(key)]
