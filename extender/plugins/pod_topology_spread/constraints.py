"""Topology spread constraints compiled: what they count, and on which nodes. Source: B066 to B071."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from extender.cluster.selecting import PodMatcher, PodTerm
from extender.objects.affinity import TopologySpreadConstraint
from extender.objects.matching import NOTHING, Selector, from_label_selector

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
"""The two values of `whenUnsatisfiable`."""


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One constraint of one pod.

    Attributes:
        topology_key: the node label whose equal values make a domain.
        max_skew: how many more pods than the emptiest domain any domain may have.
        min_domains: with fewer domains the emptiest counts as having no pods.
        selector: labels of the pods that are spread, in the pod's namespace.
        honors_affinity: only nodes that the pod's node selector and required node affinity accept count.
        honors_taints: only nodes whose hard taints the pod tolerates count.
        matcher: what to count on nodes; None counts nothing, as an empty selector does. Source: B071.
        self_match: 1 if the pod is one of those that are spread, else 0.
    """

    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    honors_affinity: bool
    honors_taints: bool
    matcher: PodMatcher | None
    self_match: int


@dataclass(frozen=True, slots=True)
class SpreadRules:
    """What the feature gates say about constraints.

    Attributes:
        match_label_keys: gate MatchLabelKeysInPodTopologySpread. Source: B070.
        node_inclusion: gate NodeInclusionPolicyInPodTopologySpread; without it node affinity always counts and taints
            never do.
    """

    match_label_keys: bool = True
    node_inclusion: bool = True


def compile_constraints(
    constraints: Iterable[TopologySpreadConstraint],
    action: str,
    namespace: str,
    labels: Mapping[str, str],
    rules: SpreadRules,
    *,
    selector: Selector | None = None,
) -> tuple[SpreadConstraint, ...]:
    """The constraints with *action* of a pod in *namespace* with *labels*.

    Args:
        constraints: of the pod's spec, or the defaults.
        action: `HARD` or `SOFT`.
        namespace: of the pod.
        labels: of the pod.
        rules: what the feature gates say.
        selector: takes the place of the constraints' own selectors (default constraints).

    Raises:
        ValueError: a label selector has an unknown operator or wrong values.
    """
    return tuple(
        _compiled(
            constraint,
            namespace,
            labels,
            rules,
            _own_selector(constraint, labels, rules) if selector is None else selector,
        )
        for constraint in constraints
        if constraint.when_unsatisfiable == action
    )


def _own_selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str], rules: SpreadRules) -> Selector:
    selector = from_label_selector(constraint.label_selector)
    if rules.match_label_keys and not selector.nothing:
        selector = selector.and_labels({key: labels[key] for key in constraint.match_label_keys if key in labels})
    return selector


def _compiled(
    constraint: TopologySpreadConstraint,
    namespace: str,
    labels: Mapping[str, str],
    rules: SpreadRules,
    selector: Selector,
) -> SpreadConstraint:
    affinity, taints = "Honor", "Ignore"
    if rules.node_inclusion:
        affinity = affinity if constraint.node_affinity_policy is None else constraint.node_affinity_policy
        taints = taints if constraint.node_taints_policy is None else constraint.node_taints_policy
    counts = not selector.nothing and not selector.is_empty
    term = PodTerm(frozenset((namespace,)), NOTHING, selector)
    return SpreadConstraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        selector=selector,
        honors_affinity=affinity == "Honor",
        honors_taints=taints == "Honor",
        matcher=PodMatcher((term,), live_only=True) if counts else None,
        self_match=int(selector.matches(labels)),
    )
