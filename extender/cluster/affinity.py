"""A pod's inter-pod affinity compiled: its terms by list, with selectors that can be hashed and counted.

Source: B054.
"""

from dataclasses import dataclass

from extender.cluster.selecting import PodTerm
from extender.cluster.terms import CarriedTerm, TermKind
from extender.objects.affinity import PodAffinityTerm
from extender.objects.matching import from_label_selector
from extender.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class PodAffinityTerms:
    """The four lists of one pod.

    Attributes:
        required, required_anti, preferred, preferred_anti: in the order of the pod's spec; preferred ones
            carry their weight.
        fault: why the affinity cannot be used, or None: the first fault of each list. A list with a fault
            is empty, the others stand
            (what a placed pod wants with them still counts).
    """

    required: tuple[CarriedTerm, ...] = ()
    required_anti: tuple[CarriedTerm, ...] = ()
    preferred: tuple[CarriedTerm, ...] = ()
    preferred_anti: tuple[CarriedTerm, ...] = ()
    fault: str | None = None

    @property
    def all(self) -> tuple[CarriedTerm, ...]:
        """Every term."""
        return self.required + self.required_anti + self.preferred + self.preferred_anti


NO_TERMS = PodAffinityTerms()


def compile_affinity(pod: Pod) -> PodAffinityTerms:
    """The terms of *pod*; a term without namespaces and namespace selector is about the pod's own namespace."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    namespace = pod.metadata.namespace
    lists: list[tuple[CarriedTerm, ...]] = []
    faults: list[str] = []
    sources = (
        (
            "requiredAffinityTerms",
            TermKind.REQUIRED_AFFINITY,
            near and near.required_during_scheduling_ignored_during_execution,
        ),
        (
            "requiredAntiAffinityTerms",
            TermKind.REQUIRED_ANTI_AFFINITY,
            apart and apart.required_during_scheduling_ignored_during_execution,
        ),
        (
            "preferredAffinityTerms",
            TermKind.PREFERRED_AFFINITY,
            near and near.preferred_during_scheduling_ignored_during_execution,
        ),
        (
            "preferredAntiAffinityTerms",
            TermKind.PREFERRED_ANTI_AFFINITY,
            apart and apart.preferred_during_scheduling_ignored_during_execution,
        ),
    )
    for label, kind, terms in sources:
        compiled: list[CarriedTerm] = []
        try:
            for term in terms or ():
                weight, raw = (0, term) if isinstance(term, PodAffinityTerm) else (term.weight, term.pod_affinity_term)
                compiled.append(CarriedTerm(kind, compile_term(raw, namespace), raw.topology_key, weight))
        except ValueError as wrong:
            faults.append(f"{label}: {wrong}")
            compiled = []
        lists.append(tuple(compiled))
    fault = None if not faults else faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    required, required_anti, preferred, preferred_anti = lists
    return PodAffinityTerms(required, required_anti, preferred, preferred_anti, fault)


def compile_term(term: PodAffinityTerm, namespace: str) -> PodTerm:
    """The pods that *term* of a pod in *namespace* is about.

    Raises:
        ValueError: a selector has an unknown operator or wrong values.
    """
    own = not term.namespaces and term.namespace_selector is None
    return PodTerm(
        frozenset((namespace,)) if own else frozenset(term.namespaces),
        from_label_selector(term.namespace_selector),
        from_label_selector(term.label_selector),
    )
