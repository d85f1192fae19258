"""Where a pod wants to be: node selectors, affinity between pods, topology spread, tolerations."""

from extender.objects.meta import LabelSelector
from extender.objects.record import Int32, Int64, Record


class NodeSelectorRequirement(Record, frozen=True, kw_only=True):
    """One condition on a node's labels or fields; operator In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Record, frozen=True, kw_only=True):
    """All conditions must hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Record, frozen=True, kw_only=True):
    """Any of the terms must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Record, frozen=True, kw_only=True):
    """A term worth `weight` (1 to 100) when it matches."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Record, frozen=True, kw_only=True):
    """Which nodes a pod requires and prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Record, frozen=True, kw_only=True):
    """Pods to be near to or apart from, and what counts as near. Both selectors: absent and empty differ."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Record, frozen=True, kw_only=True):
    """A pod affinity term worth `weight` (1 to 100)."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Record, frozen=True, kw_only=True):
    """Which pods a pod requires and prefers to be near to."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(Record, frozen=True, kw_only=True):
    """Which pods a pod must and would rather be apart from."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Record, frozen=True, kw_only=True):
    """The three kinds of affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(Record, frozen=True, kw_only=True):
    """How evenly matching pods shall lie over the values of a node label."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class Toleration(Record, frozen=True, kw_only=True):
    """Taints a pod accepts; an empty key or effect stands for any."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None
