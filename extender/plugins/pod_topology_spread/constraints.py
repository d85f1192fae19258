"""Compiled topology spread constraints.

Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, PodTopologySpread.getConstraints,
systemDefaultConstraints; pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector;
pkg/scheduler/framework/plugins/podtopologyspread/common.go, topologySpreadConstraint.matchNodeInclusionPolicies,
PodTopologySpread.filterTopologySpreadConstraints, countPodsMatchSelector (1.36).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from extender.api.kinds.affinity import TopologySpreadConstraint
from extender.api.matching import NOTHING, Selector, selector_from_label_selector
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
"""The two values of `whenUnsatisfiable`."""


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A compiled constraint of a pod.

    Attributes:
        topology_key: the label key; nodes with equal values of this label form a domain.
        max_skew: the allowed difference of matching pods between a domain and the global minimum.
        min_domains: the required number of domains; with fewer domains, the global minimum is 0.
        selector: the label selector of matching pods in the pod's namespace.
        honors_node_affinity: whether nodes that do not match the pod's node selector and affinity are ineligible.
        honors_node_taints: whether nodes with an untolerated `NoSchedule` or `NoExecute` taint are ineligible.
        pod_matcher: the matcher of the pods to count; None if no pods are counted, as for an empty selector.
        self_match_num: 1 if the pod matches its own selector, else 0.

    Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector (1.36).
    """

    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    honors_node_affinity: bool
    honors_node_taints: bool
    pod_matcher: PodMatcher | None
    self_match_num: int


@dataclass(frozen=True, slots=True)
class ConstraintFeatures:
    """The feature gates that affect constraints.

    Attributes:
        match_label_keys: the gate MatchLabelKeysInPodTopologySpread.
        node_inclusion_policy: the gate NodeInclusionPolicyInPodTopologySpread; if off, node affinity is always
            honored and taints are always ignored.

    Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go,
    PodTopologySpread.filterTopologySpreadConstraints (1.36).
    """

    match_label_keys: bool = True
    node_inclusion_policy: bool = True


def compile_constraints(
    constraints: Iterable[TopologySpreadConstraint],
    action: str,
    namespace: str,
    labels: Mapping[str, str],
    features: ConstraintFeatures,
    *,
    selector: Selector | None = None,
) -> tuple[SpreadConstraint, ...]:
    """Compile the constraints of a pod that have *action*.

    Args:
        constraints: the constraints of the pod's spec, or the default constraints.
        action: `DO_NOT_SCHEDULE` or `SCHEDULE_ANYWAY`.
        namespace: the pod's namespace.
        labels: the pod's labels.
        features: the feature gates.
        selector: the selector of default constraints; replaces the constraints' own selectors.

    Raises:
        ValueError: a label selector has an unknown operator or invalid values.
    """
    return tuple(
        _compile_constraint(
            constraint,
            namespace,
            labels,
            features,
            _build_selector(constraint, labels, features) if selector is None else selector,
        )
        for constraint in constraints
        if constraint.when_unsatisfiable == action
    )


def _build_selector(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str], features: ConstraintFeatures
) -> Selector:
    selector = selector_from_label_selector(constraint.label_selector)
    if features.match_label_keys and not selector.matches_nothing:
        selector = selector.with_labels({key: labels[key] for key in constraint.match_label_keys if key in labels})
    return selector


def _compile_constraint(
    constraint: TopologySpreadConstraint,
    namespace: str,
    labels: Mapping[str, str],
    features: ConstraintFeatures,
    selector: Selector,
) -> SpreadConstraint:
    affinity_policy, taints_policy = "Honor", "Ignore"
    if features.node_inclusion_policy:
        affinity_policy = (
            affinity_policy if constraint.node_affinity_policy is None else constraint.node_affinity_policy
        )
        taints_policy = taints_policy if constraint.node_taints_policy is None else constraint.node_taints_policy
    may_match = not selector.matches_nothing and not selector.is_empty
    pod_selector = PodSelector(frozenset((namespace,)), NOTHING, selector)
    return SpreadConstraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        selector=selector,
        honors_node_affinity=affinity_policy == "Honor",
        honors_node_taints=taints_policy == "Honor",
        pod_matcher=PodMatcher((pod_selector,), ignore_terminating_pods=True) if may_match else None,
        self_match_num=int(selector.matches(labels)),
    )


def get_topology_keys(constraints: Sequence[SpreadConstraint]) -> tuple[str, ...]:
    """Return the topology keys of *constraints*, without duplicates."""
    return tuple(dict.fromkeys(constraint.topology_key for constraint in constraints))
