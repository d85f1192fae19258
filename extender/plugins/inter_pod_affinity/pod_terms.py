"""A pod's affinity terms, compiled to matchers of existing pods.

Source: kube-scheduler/framework/types.go, AffinityTerm.Matches (1.36).
"""

from dataclasses import dataclass

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.affinity_terms import AffinityTerm
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from extender.config.releases import Release


@dataclass(frozen=True, slots=True)
class CompiledTerms:
    """A pod's terms with matchers of existing pods.

    Attributes:
        affinity_matcher: the matcher of all required affinity terms together; None if the pod has no such terms.
        affinity_keys: the topology keys of the required affinity terms, without duplicates.
        anti_affinity_matchers: each required anti-affinity term with its matcher.
        preferred_matchers: each preferred term with its matcher and weight; weights of anti-affinity are negative.
    """

    affinity_matcher: PodMatcher | None
    affinity_keys: tuple[str, ...]
    anti_affinity_matchers: tuple[tuple[AffinityTerm, PodMatcher], ...]
    preferred_matchers: tuple[tuple[AffinityTerm, PodMatcher, int], ...]


def compile_terms(pod: PodInfo, release: Release) -> CompiledTerms:
    """Return the compiled terms of *pod* under the rules of *release*, cached in its signature."""

    def select_pods(term: AffinityTerm) -> PodSelector:
        selector = term.pod_selector
        return selector if release.replaces_namespace_selectors else selector.for_incoming_pod()

    def compute() -> CompiledTerms:
        terms = pod.signature.pod_affinity_terms
        return CompiledTerms(
            affinity_matcher=PodMatcher(tuple(map(select_pods, terms.required_affinity)))
            if terms.required_affinity
            else None,
            affinity_keys=tuple(dict.fromkeys(term.topology_key for term in terms.required_affinity)),
            anti_affinity_matchers=tuple(
                (term, PodMatcher((select_pods(term),))) for term in terms.required_anti_affinity
            ),
            preferred_matchers=(
                *((term, PodMatcher((select_pods(term),)), term.weight) for term in terms.preferred_affinity),
                *((term, PodMatcher((select_pods(term),)), -term.weight) for term in terms.preferred_anti_affinity),
            ),
        )

    return pod.signature.get_or_create(("InterPodAffinity", release.version), compute)


def matches_own_affinity_terms(pod: PodInfo, snapshot: Snapshot, release: Release) -> bool:
    """Return whether the pod matches all its own required affinity terms."""
    matcher = compile_terms(pod, release).affinity_matcher
    namespace_labels = snapshot.namespace_labels(pod.namespace)
    return matcher is not None and matcher.matches(pod.namespace, pod.labels, namespace_labels)


def has_preferred_terms(pod: PodInfo) -> bool:
    """Return whether the pod's spec has preferred terms, valid or invalid."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    affinities = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(terms and terms.preferred_during_scheduling_ignored_during_execution for terms in affinities)
