"""Count the affinity terms of assigned pods by node.

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go,
InterPodAffinity.getExistingAntiAffinityCounts; pkg/scheduler/framework/plugins/interpodaffinity/scoring.go,
InterPodAffinity.processExistingPod (1.36).
"""

from dataclasses import dataclass, field
from enum import Enum

from extender.cache.tables.node_counts import NodeCounts, NodeCountsByKey
from extender.cache.tables.node_table import NodeTable
from extender.cache.tables.pod_selectors import PodSelector
from extender.cache.tables.symbols import PodLabels

_MAX_UNUSED_TERMS = 256
"""Limit of the terms without pods, beyond the number of those with pods."""

_MAX_CACHED_LABELS = 4096
"""Limit of the labels for which the matching terms are cached."""

_MAX_CACHED_MATCHES = 1 << 20
"""Limit of the matching terms of all cached labels together; each takes 8 bytes."""


class TermKind(Enum):
    """The list of a pod's affinity that contains a term."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One affinity term of a pod.

    The hash is computed once, because every cycle looks up the counts of all terms that match its pod.

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
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the hash."""
        object.__setattr__(self, "_hash", hash((self.kind, self.pod_selector, self.topology_key, self.weight)))

    def __hash__(self) -> int:
        return self._hash


class AffinityTermTable(NodeCountsByKey[AffinityTerm]):
    """The number of assigned pods with each affinity term, by node."""

    def __init__(self) -> None:
        super().__init__()
        self._terms_by_pod_labels: dict[PodLabels, tuple[AffinityTerm, ...]] = {}
        self._cached_matches = 0
        self._max_terms = _MAX_UNUSED_TERMS

    def fork(self) -> "AffinityTermTable":
        """Return a copy-on-write copy of the table."""
        child = AffinityTermTable()
        child._counts = dict(self._counts)
        child._terms_by_pod_labels, child._cached_matches = dict(self._terms_by_pod_labels), self._cached_matches
        child._max_terms = self._max_terms
        child.namespace_labels = self.namespace_labels
        return child

    def add_or_remove(self, terms: tuple[AffinityTerm, ...], row: int, nodes: NodeTable, *, sign: int = 1) -> None:
        """Add a pod with these terms to *row* (*sign* 1) or remove it (-1)."""
        for term in terms:
            counts = self._counts.get(term)
            if counts is None:
                counts = self._counts[term] = NodeCounts({}, self._owner_token)
                self._drop_matches()
            elif counts.owner is not self._owner_token:
                counts = self._counts[term] = counts.fork(self._owner_token)
            counts.add(row, sign, nodes)
        if sign < 0:
            self._remove_unused_terms()

    def _remove_unused_terms(self) -> None:
        if len(self._counts) <= self._max_terms:
            return
        used_terms = {term: counts for term, counts in self._counts.items() if counts.total}
        self._counts = used_terms
        self._drop_matches()
        self._max_terms = 2 * len(used_terms) + _MAX_UNUSED_TERMS

    def find_matching_terms(self, pod_labels: PodLabels) -> tuple[tuple[AffinityTerm, NodeCounts], ...]:
        """Return the assigned pods' terms that match pods with these labels, with the counts of pods by term.

        Do not modify the counts.
        """
        if not self._counts:
            return ()
        terms = self._terms_by_pod_labels.get(pod_labels)
        if terms is None:
            namespace, labels = pod_labels.namespace, pod_labels.labels
            namespace_labels = self.namespace_labels.get(namespace, {})
            terms = tuple(
                term for term in self._counts if term.pod_selector.matches(namespace, labels, namespace_labels)
            )
            self._cache_matches(pod_labels, terms)
        return tuple((term, counts) for term in terms if (counts := self._counts[term]).total)

    def _cache_matches(self, pod_labels: PodLabels, terms: tuple[AffinityTerm, ...]) -> None:
        cache = self._terms_by_pod_labels
        while cache and (len(cache) >= _MAX_CACHED_LABELS or self._cached_matches + len(terms) > _MAX_CACHED_MATCHES):
            self._cached_matches -= len(cache.pop(next(iter(cache))))
        cache[pod_labels] = terms
        self._cached_matches += len(terms)

    def set_namespace_labels(self, labels_by_namespace: dict[str, dict[str, str]]) -> None:
        """Set the labels of all namespaces, by namespace."""
        self.namespace_labels = labels_by_namespace
        self._drop_matches()

    def _drop_matches(self) -> None:
        self._terms_by_pod_labels, self._cached_matches = {}, 0
