"""Compile the inter-pod affinity of a pod into terms with hashable selectors.

Source: kube-scheduler/framework/types.go, AffinityTerm.Matches (1.36).
"""

from dataclasses import dataclass

from extender.api.kinds.affinity import PodAffinityTerm
from extender.api.kinds.pod import Pod
from extender.api.matching import selector_from_label_selector
from extender.cache.tables.affinity_terms import AffinityTerm, TermKind
from extender.cache.tables.pod_selectors import PodSelector


@dataclass(frozen=True, slots=True)
class PodAffinityTerms:
    """The compiled affinity terms of one pod.

    Attributes:
        required_affinity, required_anti_affinity: the required terms in the order of the pod's spec.
        preferred_affinity, preferred_anti_affinity: the preferred terms in the order of the pod's spec, with weights.
        error: the first error of each list, joined; None if there is none. A list with an error is empty. The other
            lists are valid; their terms are counted if the pod is on a node.
    """

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[AffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
    error: str | None = None

    @property
    def all_terms(self) -> tuple[AffinityTerm, ...]:
        """All terms."""
        return (
            self.required_affinity
            + self.required_anti_affinity
            + self.preferred_affinity
            + self.preferred_anti_affinity
        )


NO_TERMS = PodAffinityTerms()


def compile_pod_affinity_terms(pod: Pod) -> PodAffinityTerms:
    """Compile the affinity terms of *pod*."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    pod_affinity, anti_affinity = affinity.pod_affinity, affinity.pod_anti_affinity
    namespace = pod.metadata.namespace
    term_lists: list[tuple[AffinityTerm, ...]] = []
    errors: list[str] = []
    term_sources = (
        (
            "requiredAffinityTerms",
            TermKind.REQUIRED_AFFINITY,
            pod_affinity and pod_affinity.required_during_scheduling_ignored_during_execution,
        ),
        (
            "requiredAntiAffinityTerms",
            TermKind.REQUIRED_ANTI_AFFINITY,
            anti_affinity and anti_affinity.required_during_scheduling_ignored_during_execution,
        ),
        (
            "preferredAffinityTerms",
            TermKind.PREFERRED_AFFINITY,
            pod_affinity and pod_affinity.preferred_during_scheduling_ignored_during_execution,
        ),
        (
            "preferredAntiAffinityTerms",
            TermKind.PREFERRED_ANTI_AFFINITY,
            anti_affinity and anti_affinity.preferred_during_scheduling_ignored_during_execution,
        ),
    )
    for list_name, kind, terms in term_sources:
        compiled_terms: list[AffinityTerm] = []
        try:
            for term in terms or ():
                weight, pod_term = (
                    (0, term) if isinstance(term, PodAffinityTerm) else (term.weight, term.pod_affinity_term)
                )
                compiled_terms.append(
                    AffinityTerm(kind, compile_pod_selector(pod_term, namespace), pod_term.topology_key, weight)
                )
        except ValueError as error:
            errors.append(f"{list_name}: {error}")
            compiled_terms = []
        term_lists.append(tuple(compiled_terms))
    message = None if not errors else errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    required_affinity, required_anti_affinity, preferred_affinity, preferred_anti_affinity = term_lists
    return PodAffinityTerms(
        required_affinity, required_anti_affinity, preferred_affinity, preferred_anti_affinity, message
    )


class LastPodTerms:
    """The compiled terms of the last pod, because the queueing hints of all waiting pods read those of one pod."""

    def __init__(self) -> None:
        self._pod: Pod | None = None
        self._terms = NO_TERMS

    def get(self, pod: Pod) -> PodAffinityTerms:
        """Return the compiled terms of *pod*."""
        if pod is not self._pod:
            self._pod, self._terms = pod, compile_pod_affinity_terms(pod)
        return self._terms


def compile_pod_selector(term: PodAffinityTerm, namespace: str) -> PodSelector:
    """Compile the pod selector of *term*, which belongs to a pod in *namespace*.

    A term with neither namespaces nor a namespace selector selects pods in *namespace*.

    Raises:
        ValueError: a selector has an unknown operator or invalid values.
    """
    own_namespace_only = not term.namespaces and term.namespace_selector is None
    return PodSelector(
        frozenset((namespace,)) if own_namespace_only else frozenset(term.namespaces),
        selector_from_label_selector(term.namespace_selector),
        selector_from_label_selector(term.label_selector),
    )
