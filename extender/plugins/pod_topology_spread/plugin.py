"""PodTopologySpread spreads pods evenly over topology domains, by the pod's constraints or default constraints.

**Rejects**
    Each constraint with `whenUnsatisfiable: DoNotSchedule` is checked in order. The first constraint that fails
    determines the reason:

    - `node(s) didn't match pod topology spread constraints (missing required label)`, unresolvable: the node has no
      label with the topology key.
    - `node(s) didn't match pod topology spread constraints`: with the pod, the matching pods of the node's domain would
      exceed the global minimum by more than `maxSkew`. If there are fewer than `minDomains` domains, the minimum is 0.

    Only domains with an eligible node are considered. An eligible node has the topology keys of all constraints,
    matches the pod's node selector and affinity (`nodeAffinityPolicy: Honor`, the default), and has no untolerated
    taints (`nodeTaintsPolicy: Honor`). Matching pods are in the pod's namespace, are not terminating, and match the
    constraint's selector. An empty selector matches only the pod itself.

**Scores**
    The raw score is a sum over the constraints with `whenUnsatisfiable: ScheduleAnyway`. The summand is
    `count * log(domains + 2) + maxSkew - 1`. `count` is the number of matching pods in the node's domain. `domains` is
    the number of domains of the feasible nodes. For the topology key `kubernetes.io/hostname`, only the pods on the
    node itself are counted. The sum is rounded and normalized: the lowest sum becomes the highest score. Nodes without
    the key of a constraint score 0, except with the system's default constraints.

**Requeued on**
    Pods of the namespace that are added, deleted or relabelled and match a constraint; changed tolerations of the pod
    if taints are honored; nodes that are added or deleted, or whose labels or taints change.

**Options** (PodTopologySpreadArgs)
    `defaultingType`: `System` (the default: host name with maxSkew 3, zone with maxSkew 5, ScheduleAnyway) or `List`.
    `defaultConstraints`: with `List`, the constraints for pods that have none and are selected by a service,
    ReplicationController, ReplicaSet or StatefulSet; empty by default.

Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go, PodTopologySpread.filterTopologySpreadConstraints
(1.36).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from extender.api.kinds.affinity import TopologySpreadConstraint
from extender.api.matching import Selector
from extender.cache.default_selector import determine_default_selector, get_last_default_selector
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.node_table import ABSENT
from extender.config.errors import FieldError
from extender.config.feature_gates import FeatureGates
from extender.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    register_pod_events,
)
from extender.framework.extension_points import SKIP, SKIP_SCORE, PreFilterResult, PreScoreResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection, error_status, reject_all
from extender.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULT_CONSTRAINTS,
    SpreadConstraint,
    compile_constraints,
    get_topology_keys,
    validate_default_constraints,
)
from extender.plugins.pod_topology_spread.eligible_nodes import (
    EligibleNodesCache,
    add_pods_on_unlabelled_nodes,
    count_pods_by_domain,
    count_pods_by_row,
    pad_to_label_values,
)
from extender.plugins.pod_topology_spread.filter_state import (
    DomainMatchNums,
    PreFilterState,
    compute_batch_match_nums,
    exceeds_max_skew,
    update_with_pod,
)
from extender.plugins.pod_topology_spread.queueing_hints import (
    find_concerned_pods,
    is_schedulable_after_node_change,
    is_schedulable_after_pod_change,
)
from extender.plugins.pod_topology_spread.score_state import (
    PreScoreState,
    count_topology_values,
    find_ignored_nodes,
    round_half_away_from_zero,
)

_MAX_SKEW_EXCEEDED = Reason("node(s) didn't match pod topology spread constraints")
_NO_STATE = Reason('reading "PreFilterPodTopologySpread" from cycleState: not found', Code.ERROR)
_MISSING_LABEL = Reason(
    "node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE
)

_HOSTNAME = "kubernetes.io/hostname"


class PodTopologySpreadArgs(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin's options.

    Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, systemDefaultConstraints;
    pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidatePodTopologySpreadArgs (1.36).
    """

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"

    @classmethod
    def apply_defaults(cls, raw: Mapping[str, Any], _gates: FeatureGates) -> Mapping[str, Any]:
        """Return *raw* without an empty `defaultingType`."""
        return {key: value for key, value in raw.items() if key != "defaultingType" or value != ""}

    def validate(self, path: str, _gates: FeatureGates) -> list[FieldError]:
        """Return an error for an unknown defaulting type, and for each invalid default constraint."""
        return validate_default_constraints(path, self.defaulting_type, self.default_constraints)


class PodTopologySpread:
    """Filters and scores by topology spread constraints."""

    name: ClassVar[str] = "PodTopologySpread"
    cacheable_for_spec_class: ClassVar[bool] = True
    options = PodTopologySpreadArgs

    def __init__(self, args: PluginArgs[PodTopologySpreadArgs]) -> None:
        self._gates = gates = args.gates
        self._system_defaulted = args.options.defaulting_type == "System"
        self._default_constraints = (
            SYSTEM_DEFAULT_CONSTRAINTS if self._system_defaulted else args.options.default_constraints
        )
        self._default_actions = frozenset(constraint.when_unsatisfiable for constraint in self._default_constraints)
        self._eligible_nodes_cache = EligibleNodesCache(
            comparison_operators="TaintTolerationComparisonOperators" in gates
        )
        self._release = gates.release
        tolerations = ActionType.UPDATE_POD_TOLERATION if "SchedulerQueueingHints" in gates else ActionType(0)
        self._target_actions = ActionType.UPDATE_POD_LABEL | tolerations

    # -- constraints

    def _get_constraints(self, pod: PodInfo, snapshot: Snapshot, action: str) -> tuple[SpreadConstraint, ...]:
        """Return the pod's constraints with *action*, or the default constraints if it has none.

        Raises:
            ValueError: a label selector is invalid.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, PodTopologySpread.getConstraints;
        pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector (1.36).
        """
        if pod.spec.topology_spread_constraints:
            return self._compile_constraints(pod, pod.spec.topology_spread_constraints, action, None)
        if action not in self._default_actions:
            return ()
        return self._make_default_constraints(pod, action, determine_default_selector(pod, snapshot))

    def _get_last_constraints(self, pod: PodInfo) -> tuple[SpreadConstraint, ...] | None:
        """Return the hard constraints of the last attempt; None if the pod changed since and needs default constraints.

        Raises:
            ValueError: a label selector is invalid.
        """
        if pod.spec.topology_spread_constraints:
            return self._compile_constraints(pod, pod.spec.topology_spread_constraints, DO_NOT_SCHEDULE, None)
        if DO_NOT_SCHEDULE not in self._default_actions:
            return ()
        selector = get_last_default_selector(pod)
        return None if selector is None else self._make_default_constraints(pod, DO_NOT_SCHEDULE, selector)

    def _make_default_constraints(self, pod: PodInfo, action: str, selector: Selector) -> tuple[SpreadConstraint, ...]:
        if selector.is_empty:
            return ()
        return self._compile_constraints(pod, self._default_constraints, action, selector)

    def _compile_constraints(
        self, pod: PodInfo, constraints: tuple[TopologySpreadConstraint, ...], action: str, selector: Selector | None
    ) -> tuple[SpreadConstraint, ...]:
        return pod.signature.get_or_create(
            (self, action, selector),
            lambda: compile_constraints(constraints, action, pod.namespace, pod.labels, self._gates, selector=selector),
        )

    # -- filtering

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Count matching pods by domain. Skip pods without `DoNotSchedule` constraints.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go,
        topologySpreadConstraint.matchNodeInclusionPolicies, countPodsMatchSelector;
        pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, PodTopologySpread.PreFilter (1.36).
        """
        try:
            constraints = self._get_constraints(pod, snapshot, DO_NOT_SCHEDULE)
        except ValueError as invalid_selector:
            message = f"get constraints from pod: obtaining pod's hard topology spread constraints: {invalid_selector}"
            return PreFilterResult(error_status(message))
        if not constraints:
            return SKIP
        keys = get_topology_keys(constraints)
        eligible_nodes = tuple(
            self._eligible_nodes_cache.get(snapshot, pod, keys, constraint) for constraint in constraints
        )
        domain_match_nums = tuple(
            DomainMatchNums(
                count_pods_by_domain(snapshot, constraint, eligible),
                eligible.get_domains(snapshot, constraint.topology_key).value_ids,
            )
            for constraint, eligible in zip(constraints, eligible_nodes, strict=True)
        )
        return PreFilterResult(state=PreFilterState(constraints, eligible_nodes, domain_match_nums))

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether neither the pod nor the defaults have `DoNotSchedule` constraints."""
        return not pod.spec.topology_spread_constraints and DO_NOT_SCHEDULE not in self._default_actions

    def clone(self, state: PreFilterState) -> PreFilterState:
        """Return a copy that can be updated independently."""
        return PreFilterState(
            state.constraints, state.eligible_nodes, tuple(match_nums.clone() for match_nums in state.domain_match_nums)
        )

    def add_pod(
        self, pod: PodInfo, pod_to_add: AssignedPodInfo, row: int, snapshot: Snapshot, state: PreFilterState
    ) -> None:
        """Add *pod_to_add* on *row* to the counts, even if it is terminating.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, preFilterState.minMatchNum (1.36).
        """
        update_with_pod(pod, pod_to_add, row, snapshot, state, multiplier=1)

    def remove_pod(
        self, pod: PodInfo, pod_to_remove: AssignedPodInfo, row: int, snapshot: Snapshot, state: PreFilterState
    ) -> None:
        """Subtract *pod_to_remove* on *row* from the counts, even if it is terminating and was not counted.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, preFilterState.minMatchNum (1.36).
        """
        update_with_pod(pod, pod_to_remove, row, snapshot, state, multiplier=-1)

    def apply_pod_changes(
        self, pod: PodInfo, changed_pods: PodBatch, deltas: IntArray, snapshot: Snapshot, state: PreFilterState
    ) -> PreFilterState:
        """Return a copy in which the count for each node includes only the changes of the pods on that node.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, preFilterState.minMatchNum (1.36).
        """
        pairs = zip(state.constraints, state.eligible_nodes, strict=True)
        matches_by_constraint = changed_pods.get_or_create(
            (self, pod.signature),
            lambda: [compute_batch_match_nums(pod.namespace, *pair, changed_pods) for pair in pairs],
        )
        changed = self.clone(state)
        for match_nums, matches in zip(changed.domain_match_nums, matches_by_constraint, strict=True):
            match_nums.deltas_by_row = changed_pods.sum_by_row(matches * deltas, len(snapshot))
        return changed

    def filter(self, _pod: PodInfo, nodes: NodeView, state: PreFilterState | None) -> Sequence[Rejection]:
        """Reject nodes without a topology key and nodes whose domain would exceed the maximum skew.

        Return an error for every node if PreFilter is disabled, as upstream.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, PodTopologySpread.Filter (1.36).
        """
        if state is None:
            return reject_all(len(nodes), _NO_STATE)
        return _find_rejections(nodes, state)

    # -- scoring

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:
        """Count matching pods by domain and compute weights. Skip pods without `ScheduleAnyway` constraints.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, PodTopologySpread.PreScore,
        topologyNormalizingWeight (1.36).
        """
        snapshot = nodes.snapshot
        try:
            constraints = self._get_constraints(pod, snapshot, SCHEDULE_ANYWAY)
        except ValueError as invalid_selector:
            message = f"calculating preScoreState: obtaining pod's soft topology spread constraints: {invalid_selector}"
            return PreScoreResult(status=error_status(message))
        if not constraints or not len(snapshot):
            return SKIP_SCORE
        require_all_topologies = bool(pod.spec.topology_spread_constraints) or not self._system_defaulted
        required_topology_keys = get_topology_keys(constraints) if require_all_topologies else ()
        ignored_mask = find_ignored_nodes(nodes, required_topology_keys)
        pod_counts: list[IntArray] = []
        weights: list[float] = []
        for constraint in constraints:
            if constraint.topology_key == _HOSTNAME:
                domain_count = len(nodes) - (0 if ignored_mask is None else int(np.count_nonzero(ignored_mask)))
                counts = count_pods_by_row(snapshot, constraint)
                pod_counts.append(counts if snapshot.returned_rows is None else counts * ~snapshot.returned_rows)
            else:
                domain_count = count_topology_values(nodes, constraint.topology_key, ignored_mask)
                eligible_nodes = self._eligible_nodes_cache.get(snapshot, pod, required_topology_keys, constraint)
                counts = count_pods_by_domain(snapshot, constraint, eligible_nodes)
                if not require_all_topologies:
                    counts = add_pods_on_unlabelled_nodes(snapshot, constraint, eligible_nodes, counts)
                pod_counts.append(counts)
            weights.append(math.log(domain_count + 2))
        return PreScoreResult(
            state=PreScoreState(constraints, required_topology_keys, tuple(pod_counts), tuple(weights))
        )

    def score(self, _pod: PodInfo, nodes: NodeView, state: PreScoreState | None) -> IntArray:
        """Return the weighted number of matching pods for each node; 0 for ignored nodes.

        Raises:
            LookupError: PreScore is disabled; scoring fails as upstream.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, PodTopologySpread.Score (1.36).
        """
        if state is None:
            raise LookupError('error reading "PreScorePodTopologySpread" from cycleState: not found')
        total = np.zeros(len(nodes), dtype=np.float64)
        weights = state.topology_normalizing_weights
        for constraint, counts, weight in zip(state.constraints, state.pod_counts, weights, strict=True):
            key, max_skew_offset = constraint.topology_key, float(constraint.max_skew - 1)
            value_ids = nodes.label_value_ids(key)
            if key == _HOSTNAME:
                node_scores = nodes.take(counts) * weight + max_skew_offset
                node_scores[value_ids == ABSENT] = 0.0
                total += node_scores
            else:
                total += pad_to_label_values(counts * weight + max_skew_offset, nodes, key, max_skew_offset)[value_ids]
        ignored_mask = find_ignored_nodes(nodes, state.required_topology_keys)
        if ignored_mask is not None:
            total[ignored_mask] = 0.0
        return round_half_away_from_zero(total)

    def normalize_score(self, _pod: PodInfo, scores: IntArray, nodes: NodeView, state: PreScoreState) -> IntArray:
        """Return 100 for the lowest score, proportionally less for higher scores, and 0 for ignored nodes.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, PodTopologySpread.NormalizeScore (1.36).
        """
        ignored_mask = find_ignored_nodes(nodes, state.required_topology_keys)
        considered_scores = scores if ignored_mask is None else scores[~ignored_mask]
        max_score = int(considered_scores.max(initial=0))
        normalized: IntArray = np.full(len(scores), 100, dtype=np.int64)
        if max_score > 0:
            normalized = 100 * (max_score + considered_scores.min() - scores) // max_score
        if ignored_mask is not None:
            normalized[ignored_mask] = 0
        return normalized

    # -- events

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of pods and nodes that may change the counts of domains.

        Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, PodTopologySpread.EventsToRegister
        (1.36).
        """
        pod_actions = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        node_actions = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        per_signature = DO_NOT_SCHEDULE not in self._default_actions  # default constraints depend on the last attempt
        return (
            *register_pod_events(
                self._release,
                self._is_schedulable_after_pod_change,
                assigned=pod_actions,
                target=self._target_actions,
                per_signature=per_signature,
                find_concerned=find_concerned_pods if per_signature else None,
            ),
            ClusterEventWithHint(
                EventResource.NODE, node_actions, self._is_schedulable_after_node_change, per_signature=per_signature
            ),
        )

    def _is_schedulable_after_pod_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        constraints = self._get_last_constraints(pod)
        return QueueingHint.QUEUE if constraints is None else is_schedulable_after_pod_change(pod, event, constraints)

    def _is_schedulable_after_node_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        constraints = self._get_last_constraints(pod)
        return QueueingHint.QUEUE if constraints is None else is_schedulable_after_node_change(event, constraints)


def _find_rejections(nodes: NodeView, state: PreFilterState) -> list[Rejection]:
    """Return the rejections. The first constraint that a node fails determines its reason."""
    unlabelled_nodes = np.zeros(len(nodes), dtype=np.bool_)
    skewed_nodes = np.zeros(len(nodes), dtype=np.bool_)
    for constraint, match_nums in zip(state.constraints, state.domain_match_nums, strict=True):
        remaining = ~(unlabelled_nodes | skewed_nodes)
        unlabelled_nodes |= (nodes.label_value_ids(constraint.topology_key) == ABSENT) & remaining
        skewed_nodes |= exceeds_max_skew(nodes, constraint, match_nums) & remaining
    masks = ((unlabelled_nodes, _MISSING_LABEL), (skewed_nodes, _MAX_SKEW_EXCEEDED))
    return [Rejection(mask, reason) for mask, reason in masks if mask.any()]
