"""Compiled topology spread constraints, the system's default constraints, and the validation of configured defaults.

Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, PodTopologySpread.getConstraints,
systemDefaultConstraints; pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector;
pkg/scheduler/framework/plugins/podtopologyspread/common.go, topologySpreadConstraint.matchNodeInclusionPolicies (1.36).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from extender.api.kinds.affinity import TopologySpreadConstraint
from extender.api.label_syntax import unsupported_value, validate_qualified_name
from extender.api.matching import NOTHING, Selector, selector_from_label_selector
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from extender.config.errors import FieldError
from extender.config.feature_gates import FeatureGates
from extender.config.validation import make_invalid_value_error

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


def compile_constraints(
    constraints: Iterable[TopologySpreadConstraint],
    action: str,
    namespace: str,
    labels: Mapping[str, str],
    gates: FeatureGates,
    *,
    selector: Selector | None = None,
) -> tuple[SpreadConstraint, ...]:
    """Compile the constraints of a pod that have *action*.

    *action* is `DO_NOT_SCHEDULE` or `SCHEDULE_ANYWAY`. *selector* is that of default constraints; it replaces the
    constraints' own selectors.

    Raises:
        ValueError: a label selector has an unknown operator or invalid values.
    """
    return tuple(
        _compile_constraint(
            constraint,
            namespace,
            labels,
            gates,
            _build_selector(constraint, labels, gates) if selector is None else selector,
        )
        for constraint in constraints
        if constraint.when_unsatisfiable == action
    )


def _build_selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str], gates: FeatureGates) -> Selector:
    selector = selector_from_label_selector(constraint.label_selector)
    if "MatchLabelKeysInPodTopologySpread" in gates and not selector.matches_nothing:
        selector = selector.with_labels({key: labels[key] for key in constraint.match_label_keys if key in labels})
    return selector


def _compile_constraint(
    constraint: TopologySpreadConstraint,
    namespace: str,
    labels: Mapping[str, str],
    gates: FeatureGates,
    selector: Selector,
) -> SpreadConstraint:
    """Compile a constraint. Without NodeInclusionPolicyInPodTopologySpread, node affinity is honored, taints are not.

    Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go,
    PodTopologySpread.filterTopologySpreadConstraints (1.36).
    """
    affinity_policy, taints_policy = "Honor", "Ignore"
    if "NodeInclusionPolicyInPodTopologySpread" in gates:
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


SYSTEM_DEFAULT_CONSTRAINTS = (
    TopologySpreadConstraint(topology_key="kubernetes.io/hostname", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5
    ),
)
"""The constraints for pods that have none, with `defaultingType: System`."""

_REQUIRED_MESSAGE = "Required value: can not be empty"


def validate_default_constraints(
    path: str, defaulting_type: str, constraints: Sequence[TopologySpreadConstraint]
) -> list[FieldError]:
    """Return the errors of the options at *path*, with upstream's messages in upstream's order.

    Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidatePodTopologySpreadArgs (1.36).
    """
    return [
        *_validate_defaulting_type(f"{path}.defaultingType", defaulting_type, constraints),
        *_validate_constraints(path, constraints),
    ]


def _validate_defaulting_type(
    path: str, defaulting_type: str, constraints: Sequence[TopologySpreadConstraint]
) -> Iterator[FieldError]:
    if defaulting_type not in {"System", "List"}:
        yield FieldError(path, unsupported_value(defaulting_type, ("System", "List")))
    elif defaulting_type == "System" and constraints:
        yield make_invalid_value_error(path, defaulting_type, "when .defaultConstraints are not empty")


def _validate_constraints(path: str, constraints: Sequence[TopologySpreadConstraint]) -> Iterator[FieldError]:
    seen_pairs: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        constraint_path = f"{path}.defaultConstraints[{index}]"
        key, action = constraint.topology_key, constraint.when_unsatisfiable
        if constraint.max_skew <= 0:
            yield make_invalid_value_error(
                f"{constraint_path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)"
            )
        if not key:
            yield FieldError(f"{constraint_path}.topologyKey", _REQUIRED_MESSAGE)
        else:
            yield from (
                make_invalid_value_error(f"{constraint_path}.topologyKey", key, message)
                for message in validate_qualified_name(key)
            )
        if not action:
            yield FieldError(f"{constraint_path}.whenUnsatisfiable", _REQUIRED_MESSAGE)
        elif action not in {DO_NOT_SCHEDULE, SCHEDULE_ANYWAY}:
            message = unsupported_value(action, (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY))
            yield FieldError(f"{constraint_path}.whenUnsatisfiable", message)
        if constraint.label_selector is not None:
            message = "Forbidden: constraint must not define a selector, as they deduced for each pod"
            yield FieldError(f"{constraint_path}.labelSelector", message)
        if (key, action) in seen_pairs:
            yield FieldError(constraint_path, f'Duplicate value: "{{{key}, {action}}}"')
        seen_pairs.add((key, action))
