"""PodTopologySpread lays the pods of a workload evenly over topology domains, by its own or by default constraints.

**Refuses**
    By the constraints with `whenUnsatisfiable: DoNotSchedule`, in their order, the first that applies to a node:

    - `node(s) didn't match pod topology spread constraints (missing required label)`, unresolvable: the node has no
      such topology key.
    - `node(s) didn't match pod topology spread constraints`: with the pod, the node's domain would have more than
      `maxSkew` pods more than the emptiest domain. With fewer than `minDomains` domains the emptiest counts as having
      none.

    Domains count if they have a node that counts: one that has the keys of all constraints, that suits the pod's node
    selector and affinity (`nodeAffinityPolicy: Honor`, the default), and whose taints it tolerates (`nodeTaintsPolicy:
    Honor`). Pods count if they are in the pod's namespace, are not being deleted, and match the constraint's selector;
    an empty selector counts no pod but the new one.

**Scores**
    By the constraints with `ScheduleAnyway`: pods in the node's domain, times the logarithm of the number of domains,
    plus `maxSkew` - 1, summed and rounded; for the host name the pods on the node itself. Normalized so that the fewest
    pods give the most points. Nodes without the key of a constraint get 0, save under the system's default constraints.

**Undone by**
    Pods of the namespace that come, go or change labels as far as a constraint counts them; new tolerations of the pod
    where taints are honoured; nodes that come, go, or change labels or taints.

**Options** (PodTopologySpreadArgs)
    `defaultingType`: `System` (the default: host name with maxSkew 3 and zone with maxSkew 5, both ScheduleAnyway) or
    `List`.
    `defaultConstraints`: with `List`, what holds for pods without constraints that a service, ReplicationController,
    ReplicaSet or StatefulSet selects; none by default.

Source: B066 to B079, G041.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.nodes import ABSENT
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.cluster.workload_selector import last_workload_selector, workload_selector
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import SKIP, SKIP_SCORE, PreFiltered, PreScored
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection, error
from extender.objects.affinity import TopologySpreadConstraint
from extender.objects.matching import Selector
from extender.plugins.pod_topology_spread.changes import after_node, after_pod
from extender.plugins.pod_topology_spread.constraints import (
    HARD,
    SOFT,
    SpreadConstraint,
    SpreadRules,
    compile_constraints,
)
from extender.plugins.pod_topology_spread.defaults import SYSTEM_DEFAULTS, default_constraint_faults
from extender.plugins.pod_topology_spread.eligible import Eligible, EligibleNodes
from extender.plugins.pod_topology_spread.hard_notes import HardNotes, move, skewed_apart, weights
from extender.plugins.pod_topology_spread.skew import DomainCounts
from extender.plugins.pod_topology_spread.soft_notes import SoftNotes, distinct, ignored, rounded

A = TypeVar("A", bound=np.generic)

_SKEWED = Reason("node(s) didn't match pod topology spread constraints")
_UNPREPARED = Reason('reading "PreFilterPodTopologySpread" from cycleState: not found', Code.ERROR)
_UNLABELLED = Reason("node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE)

_HOSTNAME = "kubernetes.io/hostname"
_WORDS = {HARD: "hard", SOFT: "soft"}


class PodTopologySpreadArgs(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin's options. Source: B067, G041."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"

    @classmethod
    def defaulted(cls, raw: Mapping[str, Any], _gates: FeatureGates) -> Mapping[str, Any]:
        """An empty `defaultingType` is none."""
        return {key: value for key, value in raw.items() if key != "defaultingType" or value != ""}

    def faults(self, path: str, _gates: FeatureGates) -> list[Fault]:
        """An unknown defaulting type, and constraints that cannot be defaults."""
        return default_constraint_faults(path, self.defaulting_type, self.default_constraints)


class PodTopologySpread:
    """Topology spread constraints."""

    name: ClassVar[str] = "PodTopologySpread"
    kept_for_kin: ClassVar[bool] = True
    options = PodTopologySpreadArgs

    def __init__(self, setup: Setup[PodTopologySpreadArgs]) -> None:
        gates = setup.gates
        self._system = setup.options.defaulting_type == "System"
        self._defaults = SYSTEM_DEFAULTS if self._system else setup.options.default_constraints
        self._default_actions = frozenset(constraint.when_unsatisfiable for constraint in self._defaults)
        self._rules = SpreadRules(
            match_label_keys="MatchLabelKeysInPodTopologySpread" in gates,
            node_inclusion="NodeInclusionPolicyInPodTopologySpread" in gates,
        )
        self._nodes = EligibleNodes(comparison_operators="TaintTolerationComparisonOperators" in gates)
        self._pod_actions = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        if "SchedulerQueueingHints" in gates:
            self._pod_actions |= Action.UPDATE_POD_TOLERATION

    # -- constraints

    def _constraints(self, pod: PodQuery, cluster: Snapshot | None, action: str) -> tuple[SpreadConstraint, ...]:
        """The pod's constraints with *action*, or the default ones if it has none at all. Source: B066, B068.

        Args:
            pod: the pod.
            cluster: where its services and its controller are; None takes what was found of them last.
            action: `HARD` or `SOFT`.

        Raises:
            ValueError: a label selector cannot be read.
        """
        if pod.spec.topology_spread_constraints:
            return self._compiled(pod, pod.spec.topology_spread_constraints, action, None)
        if action not in self._default_actions:
            return ()
        selector = workload_selector(pod, cluster) if cluster else last_workload_selector(pod)
        if selector.is_empty:
            return ()
        return self._compiled(pod, self._defaults, action, selector)

    def _compiled(
        self, pod: PodQuery, constraints: tuple[TopologySpreadConstraint, ...], action: str, selector: Selector | None
    ) -> tuple[SpreadConstraint, ...]:
        return pod.shape.remember(
            (self, action, selector),
            lambda: compile_constraints(constraints, action, pod.namespace, pod.labels, self._rules, selector=selector),
        )

    def _eligible(
        self, pod: PodQuery, cluster: Snapshot, keys: tuple[str, ...], constraint: SpreadConstraint
    ) -> Eligible:
        affinity, taints = constraint.honors_affinity, constraint.honors_taints
        return self._nodes.of(cluster, pod, keys, honors_affinity=affinity, honors_taints=taints)

    # -- filtering

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Sum the pods of each domain; skip without hard constraints. Source: B069, B071, B074."""
        try:
            constraints = self._constraints(pod, cluster, HARD)
        except ValueError as wrong:
            reason = f"get constraints from pod: obtaining pod's hard topology spread constraints: {wrong}"
            return PreFiltered(error(reason))
        if not constraints:
            return SKIP
        keys = _keys(constraints)
        eligible = tuple(self._eligible(pod, cluster, keys, constraint) for constraint in constraints)
        domains = tuple(
            DomainCounts(_totals(cluster, constraint, nodes), nodes.domains(cluster, constraint.topology_key).ids)
            for constraint, nodes in zip(constraints, eligible, strict=True)
        )
        return PreFiltered(notes=HardNotes(constraints, eligible, domains))

    def pre_filter_kept(self, pod: PodQuery) -> bool:
        """For pods without constraints, where there are no such defaults."""
        return not pod.spec.topology_spread_constraints and HARD not in self._default_actions

    def clone(self, notes: HardNotes) -> HardNotes:
        """A copy that may be changed."""
        return HardNotes(notes.constraints, notes.eligible, tuple(counts.clone() for counts in notes.domains))

    def add_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: HardNotes) -> None:
        """Count *other* as standing on *row*, even if it is being deleted. Source: B073."""
        move(pod, other, row, cluster, notes, by=1)

    def remove_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: HardNotes) -> None:
        """Count *other* as gone from *row*, even if it did not count. Source: B073."""
        move(pod, other, row, cluster, notes, by=-1)

    def filter(self, _pod: PodQuery, nodes: NodeView, notes: HardNotes | None) -> Sequence[Rejection]:
        """Refuse nodes without a key or in too full a domain, by the first such constraint. Source: B072.

        As upstream, an error on every node if `pre_filter` is switched off.
        """
        if notes is None:
            return (Rejection(np.ones(len(nodes), dtype=np.bool_), _UNPREPARED),)
        return _rejections(nodes, notes.constraints, map(partial(_skewed, nodes), notes.constraints, notes.domains))

    def filter_apart(
        self, pod: PodQuery, nodes: NodeView, notes: HardNotes, others: PodBatch, by: IntArray
    ) -> Sequence[Rejection]:
        """As `filter` with notes that `add_pod` and `remove_pod` changed, for every node on its own. Source: B073."""
        pairs = zip(notes.constraints, notes.eligible, strict=True)
        counts = others.remember((self, pod.shape), lambda: [weights(pod.namespace, c, e, others) for c, e in pairs])
        moved = [nodes.take(others.sums(each * by, len(nodes.snapshot))) for each in counts]
        skewed = map(partial(skewed_apart, nodes), notes.constraints, notes.domains, moved)
        return _rejections(nodes, notes.constraints, skewed)

    # -- scoring

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:
        """Sum the pods of each domain and weigh them; skip without soft constraints. Source: B075, B076."""
        cluster = nodes.snapshot
        try:
            constraints = self._constraints(pod, cluster, SOFT)
        except ValueError as wrong:
            reason = f"calculating preScoreState: obtaining pod's soft topology spread constraints: {wrong}"
            return PreScored(status=error(reason))
        if not constraints or not len(cluster):
            return SKIP_SCORE
        lenient = self._system and not pod.spec.topology_spread_constraints
        needed = () if lenient else _keys(constraints)
        left_out = ignored(nodes, needed)
        counts: list[IntArray] = []
        weights: list[float] = []
        for constraint in constraints:
            if constraint.topology_key == _HOSTNAME:
                size = len(nodes) - (0 if left_out is None else int(np.count_nonzero(left_out)))
                counts.append(_by_row(cluster, constraint))
            else:
                size = distinct(nodes, constraint.topology_key, left_out)
                eligible = self._eligible(pod, cluster, needed, constraint)
                totals = _totals(cluster, constraint, eligible)
                counts.append(_with_unlabelled(cluster, constraint, eligible, totals) if lenient else totals)
            weights.append(math.log(size + 2))
        return PreScored(notes=SoftNotes(constraints, needed, tuple(counts), tuple(weights)))

    def score(self, _pod: PodQuery, nodes: NodeView, notes: SoftNotes | None) -> IntArray:
        """Weighted pods near each node, rounded, 0 for ignored nodes; the fewer the better. Source: B077.

        Raises:
            LookupError: `pre_score` is switched off; as upstream, nothing can be scored then.
        """
        if notes is None:
            raise LookupError('error reading "PreScorePodTopologySpread" from cycleState: not found')
        total = np.zeros(len(nodes), dtype=np.float64)
        for constraint, counts, weight in zip(notes.constraints, notes.counts, notes.weights, strict=True):
            key, spare = constraint.topology_key, float(constraint.max_skew - 1)
            labels = nodes.label(key)
            if key == _HOSTNAME:
                worth = nodes.take(counts) * weight + spare
                worth[labels == ABSENT] = 0.0
                total += worth
            else:
                total += _padded(counts * weight + spare, nodes, key, spare)[labels]
        left_out = ignored(nodes, notes.needed)
        if left_out is not None:
            total[left_out] = 0.0
        return rounded(total)

    def normalize(self, _pod: PodQuery, raw: IntArray, nodes: NodeView, notes: SoftNotes) -> IntArray:
        """100 for the fewest pods, less the more there are; 0 for ignored nodes. Source: B078."""
        left_out = ignored(nodes, notes.needed)
        counted = raw if left_out is None else raw[~left_out]
        most = int(counted.max(initial=0))
        scores: IntArray = np.full(len(raw), 100, dtype=np.int64)
        if most > 0:
            scores = 100 * (most + counted.min() - raw) // most
        if left_out is not None:
            scores[left_out] = 0
        return scores

    # -- events

    def events(self) -> Sequence[Registration]:
        """Pods and nodes that come, go or change what constraints look at. Source: B079."""
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            Registration(Resource.POD, self._pod_actions, self._after_pod),
            Registration(Resource.NODE, nodes, self._after_node),
        )

    def _after_pod(self, pod: PodQuery, change: Change) -> Hint:
        return after_pod(pod, change, self._constraints(pod, None, HARD))

    def _after_node(self, pod: PodQuery, change: Change) -> Hint:
        return after_node(change, self._constraints(pod, None, HARD))


def _skewed(nodes: NodeView, constraint: SpreadConstraint, domains: DomainCounts) -> BoolArray:
    """Which nodes are in a domain that may take no more pods."""
    least = 0 if domains.number < constraint.min_domains else domains.least
    limit = constraint.max_skew + least - constraint.self_match
    labels = nodes.label(constraint.topology_key)
    return _padded(domains.counts > limit, nodes, constraint.topology_key, limit < 0)[labels]


def _rejections(
    nodes: NodeView, constraints: Sequence[SpreadConstraint], skewed: Iterable[BoolArray]
) -> list[Rejection]:
    """Nodes without a key, and nodes that are *skewed* by each constraint; the first constraint they fail counts."""
    unlabelled = np.zeros(len(nodes), dtype=np.bool_)
    full = np.zeros(len(nodes), dtype=np.bool_)
    for constraint, over in zip(constraints, skewed, strict=True):
        passed = ~(unlabelled | full)
        unlabelled |= (nodes.label(constraint.topology_key) == ABSENT) & passed
        full |= over & passed
    return [Rejection(mask, reason) for mask, reason in ((unlabelled, _UNLABELLED), (full, _SKEWED)) if mask.any()]


def _keys(constraints: Sequence[SpreadConstraint]) -> tuple[str, ...]:
    """The topology keys, each once."""
    return tuple(dict.fromkeys(constraint.topology_key for constraint in constraints))


def _totals(cluster: Snapshot, constraint: SpreadConstraint, nodes: Eligible) -> IntArray:
    """Matching pods by domain, on the nodes that count."""
    if constraint.matcher is None:
        return np.zeros(len(cluster.vocabulary.label_values(constraint.topology_key)) + 1, dtype=np.int64)
    return nodes.totals(cluster, constraint.topology_key, cluster.counts(constraint.matcher))


def _by_row(cluster: Snapshot, constraint: SpreadConstraint) -> IntArray:
    """Matching pods on each node, whether the node counts or not."""
    if constraint.matcher is None:
        return np.zeros(len(cluster), dtype=np.int64)
    return cluster.count_rows(cluster.counts(constraint.matcher))


def _with_unlabelled(cluster: Snapshot, constraint: SpreadConstraint, nodes: Eligible, totals: IntArray) -> IntArray:
    """*totals* with the pods on nodes without the label in the domain of the empty value, where one has that value."""
    key = constraint.topology_key
    empty = cluster.vocabulary.label_values(key).find("")
    if empty is None or constraint.matcher is None:
        return totals
    unlabelled = nodes.rows & (cluster.view().label(key) == ABSENT)
    more = totals.copy()
    more[empty] += _by_row(cluster, constraint)[unlabelled].sum()
    return more


def _padded(by_value: NDArray[A], nodes: NodeView, key: str, unknown: Any) -> NDArray[A]:
    """*by_value* with one entry a value of label *key* and a last one, zero, that ABSENT picks.

    Args:
        by_value: one entry a value that was known when it was made, or more.
        nodes: the view.
        key: the label.
        unknown: stands for values that came later.
    """
    size = len(nodes.snapshot.vocabulary.label_values(key))
    padded = np.full(size + 1, unknown, dtype=by_value.dtype)
    known = min(size, len(by_value))
    padded[:known] = by_value[:known]
    padded[ABSENT] = 0
    return padded
