"""Which pods a term of another pod talks about: namespaces, a namespace selector and a label selector. Source: B054."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from extender.objects.matching import EVERYTHING, Selector


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Pods of some namespaces with some labels.

    Attributes:
        namespaces: names of namespaces.
        namespace_selector: further namespaces, by their labels; `NOTHING` adds none, the empty selector adds all.
        selector: labels of the pods; `NOTHING` matches no pod, the empty selector matches every pod.
    """

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] | None) -> bool:
        """Whether a pod with *labels* in *namespace* is meant.

        Args:
            namespace: of the pod.
            labels: of the pod.
            namespace_labels: of the namespace; None if no such namespace is known, which only the empty selector takes.
        """
        if namespace not in self.namespaces:
            chosen = self.namespace_selector
            if not (chosen.is_empty if namespace_labels is None else chosen.matches(namespace_labels)):
                return False
        return self.selector.matches(labels)

    def of_incoming(self) -> "PodTerm":
        """The term as it is read where the pod to be scheduled carries it.

        Namespaces are looked up by the namespace selector first; the selector is then asked once more about each pod,
        without labels of its namespace. So one that takes a namespace without labels takes all. Source: B054.
        """
        chosen = self.namespace_selector
        if chosen.is_empty or not chosen.matches({}):
            return self
        return replace(self, namespace_selector=EVERYTHING)


class PodMatcher:
    """Pods that match all of some terms; hashes fast, since counts are looked up by it in every cycle."""

    __slots__ = ("_hash", "live_only", "reads_namespace_labels", "terms")

    def __init__(self, terms: tuple[PodTerm, ...], *, live_only: bool = False) -> None:
        """All of *terms* together.

        Args:
            terms: all must match.
            live_only: leave out pods that are being deleted (topology spread does, inter-pod affinity does not).
        """
        self.terms = terms
        self.live_only = live_only
        self.reads_namespace_labels = any(not term.namespace_selector.nothing for term in terms)
        self._hash = hash((terms, live_only))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PodMatcher) and self.live_only == other.live_only and self.terms == other.terms
        )

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] | None) -> bool:
        """Whether a pod with *labels* in *namespace* matches every term; terminating pods are the caller's affair."""
        return all(term.matches(namespace, labels, namespace_labels) for term in self.terms)
