"""Count the affinity terms of assigned pods by node.

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go,
InterPodAffinity.getExistingAntiAffinityCounts; pkg/scheduler/framework/plugins/interpodaffinity/scoring.go,
InterPodAffinity.processExistingPod (1.36).
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from extender.basics.intern import Interner
from extender.cache.tables.node_counts import NodeCounts
from extender.cache.tables.node_table import NodeTable
from extender.cache.tables.pod_selectors import PodSelector
from extender.cache.tables.symbols import PodLabels

_MAX_TERMS = 1024
"""When there are more terms, terms without pods are removed."""


class TermKind(Enum):
    """The list of a pod's affinity that contains a term."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One affinity term of a pod.

    Attributes:
        kind: the list of the pod's affinity that contains the term.
        pod_selector: the selector of the pods that the term matches.
        topology_key: the node label whose values define the topology domains.
        weight: 1 to 100 for preferred terms, 0 for required terms.
    """

    kind: TermKind
    pod_selector: PodSelector
    topology_key: str
    weight: int = 0


class AffinityTermTable:
    """Counts by node of the assigned pods with each affinity term."""

    __slots__ = ("_counts", "_owner_token", "_pod_labels", "_terms_by_pod_labels_id", "namespace_labels")

    def __init__(self, pod_labels: Interner[PodLabels]) -> None:
        self._owner_token = object()
        self._pod_labels = pod_labels
        self._counts: dict[AffinityTerm, NodeCounts] = {}
        self._terms_by_pod_labels_id: dict[int, tuple[AffinityTerm, ...]] = {}
        self.namespace_labels: dict[str, dict[str, str]] = {}

    def fork(self) -> "AffinityTermTable":
        """Return a copy-on-write copy of the table."""
        child = AffinityTermTable(self._pod_labels)
        child._counts = dict(self._counts)
        child._terms_by_pod_labels_id = dict(self._terms_by_pod_labels_id)
        child.namespace_labels = self.namespace_labels
        return child

    def count(self, terms: tuple[AffinityTerm, ...], row: int, nodes: NodeTable, *, sign: int = 1) -> None:
        """Count a pod with these terms on *row* (*sign* 1) or stop counting it (-1)."""
        for term in terms:
            counts = self._counts.get(term)
            if counts is None:
                counts = self._counts[term] = NodeCounts(
                    np.zeros(nodes.columns.capacity, dtype=np.int64), self._owner_token
                )
                self._terms_by_pod_labels_id = {}
            elif counts.owner is not self._owner_token:
                counts = self._counts[term] = counts.fork(self._owner_token)
            counts.add(row, sign, nodes)
        if sign < 0:
            self._remove_unused_terms()

    def _remove_unused_terms(self) -> None:
        if len(self._counts) <= _MAX_TERMS:
            return
        used_terms = {term: counts for term, counts in self._counts.items() if counts.total}
        if len(used_terms) < len(self._counts) // 2:
            self._counts, self._terms_by_pod_labels_id = used_terms, {}

    def find_matching_terms(self, pod_labels_id: int) -> tuple[tuple[AffinityTerm, NodeCounts], ...]:
        """Return the terms of assigned pods that match pods with these labels, and the counts of pods with each term.

        Do not modify the counts.
        """
        terms = self._terms_by_pod_labels_id.get(pod_labels_id)
        if terms is None:
            pod_labels = self._pod_labels[pod_labels_id]
            labels = dict(pod_labels.labels)
            namespace_labels = self.namespace_labels.get(pod_labels.namespace, {})
            terms = self._terms_by_pod_labels_id[pod_labels_id] = tuple(
                term
                for term in self._counts
                if term.pod_selector.matches(pod_labels.namespace, labels, namespace_labels)
            )
        return tuple((term, counts) for term in terms if (counts := self._counts[term]).total)

    def items(self) -> list[tuple[AffinityTerm, NodeCounts]]:
        """Return all terms with their counts; some counts may be 0."""
        return list(self._counts.items())

    def invalidate_domains(self, keys: set[str]) -> None:
        """Drop the sums by domain of topology *keys*; they are recomputed on next use."""
        for term, counts in self._counts.items():
            # Older snapshots share the counts of another owner and sum them by their own node labels.
            if counts.owner is not self._owner_token or keys & counts.domain_counts.keys():
                self._counts[term] = counts.drop_domains(keys)

    def set_namespace_labels(self, labels_by_namespace: dict[str, dict[str, str]]) -> None:
        """Set the labels of all namespaces, by namespace."""
        self.namespace_labels = labels_by_namespace
        self._terms_by_pod_labels_id = {}
