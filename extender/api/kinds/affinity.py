"""Scheduling constraints of a pod: node selectors, affinity, topology spread constraints, tolerations."""

from collections.abc import Iterator

from extender.api.kinds.meta import Int32, Int64, KubernetesStruct, LabelSelector


class NodeSelectorRequirement(KubernetesStruct, frozen=True, kw_only=True):
    """A requirement on a label or field of a node; operator In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(KubernetesStruct, frozen=True, kw_only=True):
    """A node selector term: all requirements must hold. A term without requirements matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(KubernetesStruct, frozen=True, kw_only=True):
    """A node selector: at least one term must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(KubernetesStruct, frozen=True, kw_only=True):
    """A node selector term with a weight from 1 to 100."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(KubernetesStruct, frozen=True, kw_only=True):
    """The required and preferred nodes of a pod."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(KubernetesStruct, frozen=True, kw_only=True):
    """A pod affinity term. An absent selector does not mean the same as an empty selector."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(KubernetesStruct, frozen=True, kw_only=True):
    """A pod affinity term with a weight from 1 to 100."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(KubernetesStruct, frozen=True, kw_only=True):
    """Required and preferred co-location with other pods."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(KubernetesStruct, frozen=True, kw_only=True):
    """Required and preferred separation from other pods."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(KubernetesStruct, frozen=True, kw_only=True):
    """Node affinity, pod affinity and pod anti-affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None

    def iterate_pod_terms(self) -> Iterator[PodAffinityTerm]:
        """Yield the required and preferred terms of pod affinity, then those of pod anti-affinity."""
        for rules in (self.pod_affinity, self.pod_anti_affinity):
            if rules is not None:
                yield from rules.required_during_scheduling_ignored_during_execution
                for weighted_term in rules.preferred_during_scheduling_ignored_during_execution:
                    yield weighted_term.pod_affinity_term


class TopologySpreadConstraint(KubernetesStruct, frozen=True, kw_only=True):
    """A limit on the skew of matching pods across the values of a node label."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class Toleration(KubernetesStruct, frozen=True, kw_only=True):
    """A toleration of taints; an empty key matches all keys, and an empty effect matches all effects."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None
