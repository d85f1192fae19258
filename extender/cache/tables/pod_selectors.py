"""Select pods by namespace, namespace labels and pod labels."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from extender.api.matching import EVERYTHING, Selector
from extender.cache.tables.symbols import PodLabels


@dataclass(frozen=True, slots=True)
class PodSelector:
    """The pods that an affinity term or a spread constraint selects.

    Attributes:
        namespaces: the names of the namespaces.
        namespace_selector: adds namespaces by label; `NOTHING` adds none, the empty selector adds all.
        label_selector: the labels of the pods; `NOTHING` matches no pod, the empty selector matches every pod.
    """

    namespaces: frozenset[str]
    namespace_selector: Selector
    label_selector: Selector

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] | None) -> bool:
        """Return whether the selector matches a pod with *labels* in *namespace*.

        *namespace_labels* is None for an unknown namespace, which only the empty namespace selector matches.
        """
        return self.matches_namespace(namespace, namespace_labels) and self.label_selector.matches(labels)

    def matches_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Return whether the selector matches pods in the namespace *name* with *labels*, None if it is unknown."""
        if name in self.namespaces:
            return True
        selector = self.namespace_selector
        return selector.is_empty if labels is None else selector.matches(labels)

    def for_incoming_pod(self) -> "PodSelector":
        """Return the selector as upstream evaluates it for a term of the incoming pod.

        Upstream first adds the namespaces that the namespace selector matches. It then evaluates the namespace selector
        again for each pod, without namespace labels. So a selector that matches empty labels matches all namespaces.

        Source: kube-scheduler/framework/types.go, AffinityTerm.Matches (1.36).
        """
        selector = self.namespace_selector
        if selector.is_empty or not selector.matches({}):
            return self
        return replace(self, namespace_selector=EVERYTHING)


class PodMatcher:
    """A combination of selectors. It matches the pods that every selector matches.

    The hash is computed once, because every cycle looks up counts by matcher.
    """

    __slots__ = ("_hash", "ignore_terminating_pods", "reads_namespace_labels", "selectors")

    def __init__(self, selectors: tuple[PodSelector, ...], *, ignore_terminating_pods: bool = False) -> None:
        """Combine selectors.

        All *selectors* must match. *ignore_terminating_pods* is for counts, as in PodTopologySpread; `matches` ignores
        it.
        """
        self.selectors = selectors
        self.ignore_terminating_pods = ignore_terminating_pods
        self.reads_namespace_labels = any(not selector.namespace_selector.matches_nothing for selector in selectors)
        self._hash = hash((selectors, ignore_terminating_pods))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PodMatcher)
            and self.ignore_terminating_pods == other.ignore_terminating_pods
            and self.selectors == other.selectors
        )

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] | None) -> bool:
        """Return whether all selectors match a pod with *labels* in *namespace*, terminating or not."""
        for selector in self.selectors:  # noqa: SIM110  `all` with a generator takes twice as long
            if not selector.matches(namespace, labels, namespace_labels):
                return False
        return True

    def select(
        self, pod_labels: Iterable[PodLabels], labels_by_namespace: Mapping[str, Mapping[str, str]]
    ) -> list[PodLabels]:
        """Return the *pod_labels* that all selectors match. Each namespace is matched once, because many pods share it.

        *labels_by_namespace* has no entry for an unknown namespace.
        """
        selected = list(pod_labels)
        for selector in self.selectors:
            is_match = {
                namespace: selector.matches_namespace(namespace, labels_by_namespace.get(namespace))
                for namespace in {labels.namespace for labels in selected}
            }
            selected = [labels for labels in selected if is_match[labels.namespace]]
            selected = selector.label_selector.select(selected)
        return selected
