"""Counts of matched terms for a batch dry run of many nodes, each with its own added and removed pods.

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, InterPodAffinity.Filter,
satisfyPodAntiAffinity, preFilterState.updateWithPod (1.36).
"""

from collections.abc import Callable, Iterator

import numpy as np

from extender.cache.pod_batch import PodBatch
from extender.cache.pod_signature import PodSignature
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cache.tables.node_table import ABSENT
from extender.plugins.inter_pod_affinity.domain_counts import TopologyToMatchedTermCount

BatchTermCounts = dict[str, IntArray]
"""The number of terms that each pod of a batch matches, by topology key: int64. Keys without matches are absent."""


def count_terms_of_batch(batch: PodBatch, iter_keys: Callable[[PodSignature], Iterator[str]]) -> BatchTermCounts:
    """Count the matched terms of each pod of *batch* by topology key.

    Args:
        batch: the pods.
        iter_keys: the function that yields the topology keys of the terms that pods with a signature match.
    """
    term_counts: BatchTermCounts = {}
    for index, signature in enumerate(batch.signatures):
        for key in iter_keys(signature):
            if key not in term_counts:
                term_counts[key] = np.zeros(len(batch.signatures), dtype=np.int64)
            term_counts[key][index] += 1
    return {key: key_counts[batch.signature_index] for key, key_counts in term_counts.items()}


class DryRunMatchedTermCount:
    """Counts of matched terms in a batch dry run. The counts for a node include only that node's changes.

    A change is a pod that is added to the node or removed from it.
    """

    __slots__ = ("_batch", "_counts", "_deltas", "_term_counts")

    def __init__(
        self, counts: TopologyToMatchedTermCount, term_counts: BatchTermCounts, batch: PodBatch, deltas: IntArray
    ) -> None:
        """Store the arguments; sums are computed on demand.

        Args:
            counts: the counts without added and removed pods.
            term_counts: the number of terms that each pod matches.
            batch: the pods.
            deltas: 1 for added pods, -1 for removed pods, else 0.
        """
        self._counts, self._term_counts, self._batch, self._deltas = counts, term_counts, batch, deltas

    @property
    def topology_keys(self) -> tuple[str, ...]:
        """The topology keys that may have counts."""
        return tuple(dict.fromkeys((*self._counts.topology_keys, *self._term_counts)))

    def _compute_node_deltas(self, nodes: NodeView, key: str) -> IntArray | None:
        """Return the change of each node's count; None if no pod matches a term with *key*."""
        key_counts = self._term_counts.get(key)
        if key_counts is None:
            return None
        return nodes.take(self._batch.sum_by_row(key_counts * self._deltas, len(nodes.snapshot)))

    def is_positive_by_node(self, nodes: NodeView, key: str) -> BoolArray:
        """Return the nodes whose domain has a count above 0: bool, shape (len(nodes),), False without label *key*."""
        node_deltas = self._compute_node_deltas(nodes, key)
        if node_deltas is None:
            return self._counts.is_positive_by_node(nodes, key)
        is_positive_by_node: BoolArray = (self._counts.get_counts_by_node(nodes, key) + node_deltas > 0) & (
            nodes.label_value_ids(key) != ABSENT
        )
        return is_positive_by_node

    def is_empty_by_node(self, nodes: NodeView) -> BoolArray:
        """Return, for each node, whether all counts of all domains are zero: bool, shape (len(nodes),)."""
        nonzero_count: IntArray = np.full(len(nodes), self._counts.nonzero_domain_count, dtype=np.int64)
        for key in self._term_counts:
            node_deltas = self._compute_node_deltas(nodes, key)
            if node_deltas is None:
                continue
            has_label = nodes.label_value_ids(key) != ABSENT
            counts = self._counts.get_counts_by_node(nodes, key)
            nonzero_count += has_label & (counts == 0) & (node_deltas != 0)
            nonzero_count -= has_label & (counts != 0) & (counts + node_deltas == 0)
        is_empty_by_node: BoolArray = nonzero_count == 0
        return is_empty_by_node
