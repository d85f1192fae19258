"""A pod's affinity terms, compiled to matchers of existing pods.

Source: kube-scheduler/framework/types.go, AffinityTerm.Matches (1.36).
"""

from dataclasses import dataclass

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.affinity_terms import AffinityTerm
from extender.cache.tables.pod_selectors import PodMatcher


@dataclass(frozen=True, slots=True)
class CompiledTerms:
    """A pod's terms with matchers of existing pods.

    Attributes:
        affinity_matcher: the matcher of all required affinity terms together; None if the pod has no such terms.
        affinity_keys: the topology keys of the required affinity terms, without duplicates.
        anti_affinity_matchers: each required anti-affinity term with its matcher.
        preferred: the preferred affinity and anti-affinity terms with matchers and weights, negative for anti-affinity.
    """

    affinity_matcher: PodMatcher | None
    affinity_keys: tuple[str, ...]
    anti_affinity_matchers: tuple[tuple[AffinityTerm, PodMatcher], ...]
    preferred: tuple[tuple[AffinityTerm, PodMatcher, int], ...]


def compile_terms(pod: PodInfo) -> CompiledTerms:
    """Return the compiled terms of *pod*, cached in its signature."""

    def compute() -> CompiledTerms:
        terms = pod.signature.affinity
        return CompiledTerms(
            affinity_matcher=PodMatcher(tuple(term.pod_selector.for_incoming_pod() for term in terms.required))
            if terms.required
            else None,
            affinity_keys=tuple(dict.fromkeys(term.topology_key for term in terms.required)),
            anti_affinity_matchers=tuple(
                (term, PodMatcher((term.pod_selector.for_incoming_pod(),))) for term in terms.required_anti
            ),
            preferred=(
                *((term, PodMatcher((term.pod_selector.for_incoming_pod(),)), term.weight) for term in terms.preferred),
                *(
                    (term, PodMatcher((term.pod_selector.for_incoming_pod(),)), -term.weight)
                    for term in terms.preferred_anti
                ),
            ),
        )

    return pod.signature.get_or_create(("InterPodAffinity", "compiled"), compute)


def matches_own_affinity_terms(pod: PodInfo, snapshot: Snapshot) -> bool:
    """Return whether the pod matches all its own required affinity terms."""
    matcher = compile_terms(pod).affinity_matcher
    namespace_labels = snapshot.namespace_labels(pod.namespace)
    return matcher is not None and matcher.matches(pod.namespace, pod.labels, namespace_labels)


def has_preferred_terms(pod: PodInfo) -> bool:
    """Return whether the pod's spec has preferred terms, valid or invalid."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    affinities = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(terms and terms.preferred_during_scheduling_ignored_during_execution for terms in affinities)
