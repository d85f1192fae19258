"""The PreFilter state of InterPodAffinity, and its updates when a dry run adds or removes pods.

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState,
preFilterState.updateWithPod (1.36).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.pod_signature import PodSignature
from extender.cache.snapshot import Snapshot
from extender.plugins.inter_pod_affinity.domain_counts import TopologyToMatchedTermCount
from extender.plugins.inter_pod_affinity.pod_terms import compile_terms


@dataclass(slots=True)
class PreFilterState:
    """Counts of matched terms by topology domain.

    Attributes:
        affinity_counts: numbers of pods that match all of the pod's required affinity terms.
        anti_affinity_counts: numbers of matches of the pod's required anti-affinity terms by existing pods.
        existing_anti_affinity_counts: numbers of matches of existing pods' required anti-affinity terms by the pod.
    """

    affinity_counts: TopologyToMatchedTermCount
    anti_affinity_counts: TopologyToMatchedTermCount
    existing_anti_affinity_counts: TopologyToMatchedTermCount

    @property
    def all_counts(self) -> tuple[TopologyToMatchedTermCount, TopologyToMatchedTermCount, TopologyToMatchedTermCount]:
        """All three counts, in the order of the attributes."""
        return self.affinity_counts, self.anti_affinity_counts, self.existing_anti_affinity_counts


def build_matched_key_iterators(
    pod: PodInfo, snapshot: Snapshot
) -> tuple[Callable[[PodSignature], Iterator[str]], ...]:
    """Return an iterator function for each of `PreFilterState.all_counts`.

    The function yields the topology key of each matched term, for an existing pod with the given signature.
    """
    compiled, namespace_labels = compile_terms(pod), snapshot.namespace_labels
    own_namespace_labels = namespace_labels(pod.namespace) or {}

    def iter_affinity_keys(signature: PodSignature) -> Iterator[str]:
        if compiled.affinity_matcher is not None and compiled.affinity_matcher.matches(
            signature.namespace, signature.labels, namespace_labels(signature.namespace)
        ):
            yield from compiled.affinity_keys

    def iter_anti_affinity_keys(signature: PodSignature) -> Iterator[str]:
        for term, matcher in compiled.anti_affinity_matchers:
            if matcher.matches(signature.namespace, signature.labels, namespace_labels(signature.namespace)):
                yield term.topology_key

    def iter_existing_anti_affinity_keys(signature: PodSignature) -> Iterator[str]:
        for term in signature.affinity.required_anti:
            if term.pod_selector.matches(pod.namespace, pod.labels, own_namespace_labels):
                yield term.topology_key

    return iter_affinity_keys, iter_anti_affinity_keys, iter_existing_anti_affinity_keys


def update_with_pod(
    pod: PodInfo, assigned_pod: AssignedPodInfo, row: int, snapshot: Snapshot, state: PreFilterState, *, multiplier: int
) -> None:
    """Add *multiplier* to the counts of the terms that *assigned_pod* matches; *row* is the row of its node."""
    labels = snapshot.view().label
    for counts, iter_keys in zip(state.all_counts, build_matched_key_iterators(pod, snapshot), strict=True):
        for key in iter_keys(assigned_pod.signature):
            counts.update(key, int(labels(key)[row]), multiplier)
