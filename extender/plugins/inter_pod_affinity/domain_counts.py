"""Counts of matched terms by topology domain. Arrays are shared with the cache and copied on write."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, IntArray, widen
from extender.cache.tables.node_table import ABSENT


class TopologyToMatchedTermCount:
    """Counts by topology domain, which is a pair of topology key and label value. Arrays are copied on write.

    In a dry run of many nodes, each node has its own change of the count of its own domain.

    Attributes:
        deltas_by_row: by topology key, the change of the count for the node in each row: int64, 0 without the label.

    Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState,
    preFilterState.updateWithPod; pkg/scheduler/framework/plugins/interpodaffinity/scoring.go,
    InterPodAffinity.processExistingPod (1.36).
    """

    __slots__ = ("_counts", "_owned_keys", "deltas_by_row")

    def __init__(self, counts: Mapping[str, IntArray] = MappingProxyType({})) -> None:
        """Begin with *counts* by topology key: int64, indexed by value id."""
        self._counts = dict(counts)
        self._owned_keys: set[str] = set()
        self.deltas_by_row: Mapping[str, IntArray] = {}

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
        clone = TopologyToMatchedTermCount(self._counts)
        clone.deltas_by_row = self.deltas_by_row
        self._owned_keys = set()  # both objects now share the arrays and copy them before writing
        return clone

    @property
    def is_empty(self) -> bool:
        """Whether all counts are zero, without the changes of rows."""
        return not any(counts.any() for counts in self._counts.values())

    def is_empty_by_node(self, nodes: NodeView) -> BoolArray | bool:
        """Return, for each node, whether all counts of all domains are zero; one bool if no row has changes."""
        if not self.deltas_by_row:
            return self.is_empty
        nonzero_counts: IntArray = np.zeros(len(nodes), dtype=np.int64)
        nonzero_counts += sum(int(np.count_nonzero(counts)) for counts in self._counts.values())
        for key, deltas in self.deltas_by_row.items():
            counts = self._get_domain_counts_by_node(nodes, key)
            nonzero_counts += (counts + nodes.take(deltas) != 0).astype(np.int64) - (counts != 0)
        is_empty_by_node: BoolArray = nonzero_counts == 0
        return is_empty_by_node

    @property
    def topology_keys(self) -> tuple[str, ...]:
        """The topology keys with counts."""
        return tuple({**self._counts, **self.deltas_by_row} if self.deltas_by_row else self._counts)

    def get_counts_by_node(self, nodes: NodeView, key: str) -> IntArray:
        """Return the count of each node's domain: int64, shape (len(nodes),), 0 for nodes without label *key*."""
        counts, deltas = self._get_domain_counts_by_node(nodes, key), self.deltas_by_row.get(key)
        return counts if deltas is None else counts + nodes.take(deltas)

    def _get_domain_counts_by_node(self, nodes: NodeView, key: str) -> IntArray:
        size = len(nodes.snapshot.symbols.get_label_values(key))
        padded_counts = np.zeros(size + 1, dtype=np.int64)
        counts = self._counts.get(key)
        if counts is not None:
            padded_counts[: min(size, len(counts))] = counts[:size]
        return padded_counts[nodes.label_value_ids(key)]  # ABSENT, -1, selects the last entry

    def is_positive_by_node(self, nodes: NodeView, key: str) -> BoolArray:
        """Return the nodes whose domain has a count above 0: bool, shape (len(nodes),), False without label *key*."""
        if key in self.deltas_by_row:
            return self.get_counts_by_node(nodes, key) > 0
        size = len(nodes.snapshot.symbols.get_label_values(key))
        padded_mask = np.zeros(size + 1, dtype=np.bool_)
        counts = self._counts.get(key)
        if counts is not None:
            padded_mask[: min(size, len(counts))] = counts[:size] > 0
        return padded_mask[nodes.label_value_ids(key)]
