"""PodTopologySpread lays the pods of a workload evenly over topology domains, by the pod's constraints or by default ones.

**Refuses**
    By the constraints with `whenUnsatisfiable: DoNotSchedule`, in their order, the first that applies to a node:

    - `node(s) didn't match pod topology spread constraints (missing required label)`, unresolvable: the node has no such topology key.
    - `node(s) didn't match pod topology spread constraints`: with the pod, the node's domain would have more than `maxSkew` pods more
      than the emptiest domain. With fewer than `minDomains` domains the emptiest counts as having none.

    Domains count if they have a node that counts: one that has the keys of all constraints, that suits the pod's node selector and
    affinity (`nodeAffinityPolicy: Honor`, the default), and whose taints it tolerates (`nodeTaintsPolicy: Honor`). Pods count if they are
    in the pod's namespace, are not being deleted, and match the constraint's selector; an empty selector counts no pod but the new one.

**Scores**
    By the constraints with `ScheduleAnyway`: pods in the node's domain, times the logarithm of the number of domains, plus `maxSkew` - 1,
    summed and rounded; for the host name the pods on the node itself. Normalized so that the fewest pods give the most points.
    Nodes without the key of a constraint get 0, save under the system's default constraints.

**Undone by**
    Pods of the namespace that come, go or change labels as far as a constraint counts them; new tolerations of the pod where taints are
    honoured; nodes that come, go, or change labels or taints.

**Options** (PodTopologySpreadArgs)
    `defaultingType`: `System` (the default: host name with maxSkew 3 and zone with maxSkew 5, both ScheduleAnyway) or `List`.
    `defaultConstraints`: with `List`, what holds for pods without constraints that a service, ReplicationController, ReplicaSet or
    StatefulSet selects; none by default.

Source: B066 to B079, G041.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from extender.cluster.arrays import BoolArray, FloatArray, IntArray, widened
from extender.cluster.eligible import Eligible, EligibleNodes
from extender.cluster.nodes import ABSENT
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.skew import DomainCounts
from extender.cluster.snapshot import NodeView, Snapshot
from extender.cluster.spreading import HARD, SOFT, SpreadConstraint, SpreadRules, compile_constraints
from extender.cluster.workload_selector import workload_selector
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import SKIP, SKIP_SCORE, PreFiltered, PreScored
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection, error
from extender.objects.affinity import TopologySpreadConstraint
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.plugins.pod_topology_spread_args import PodTopologySpreadArgs

_SKEWED = Reason("node(s) didn't match pod topology spread constraints")
_UNLABELLED = Reason("node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE)

_HOSTNAME = "kubernetes.io/hostname"
_SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=_HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT, max_skew=5),
)


@dataclass(slots=True)
class HardNotes:
    """The notes of filtering: the hard constraints, the nodes that count for each, and the pods in each domain."""

    constraints: tuple[SpreadConstraint, ...]
    eligible: tuple[Eligible, ...]
    domains: list[DomainCounts]


@dataclass(frozen=True, slots=True)
class SoftNotes:
    """The notes of scoring.

    Attributes:
        constraints: the soft constraints.
        required_keys: nodes without one of these labels are ignored.
        counts: matching pods for each constraint: by the id of the label's value, or by row for the host name.
        weights: what a pod weighs, for each constraint.
    """

    constraints: tuple[SpreadConstraint, ...]
    required_keys: tuple[str, ...]
    counts: tuple[IntArray, ...]
    weights: tuple[float, ...]


class PodTopologySpread:
    """Topology spread constraints."""

    name: ClassVar[str] = "PodTopologySpread"
    options = PodTopologySpreadArgs

    def __init__(self, setup: Setup[PodTopologySpreadArgs]) -> None:
        self._system = setup.options.defaulting_type == "System"
        self._defaults = _SYSTEM_DEFAULTS if self._system else setup.options.default_constraints
        self._default_actions = frozenset(constraint.when_unsatisfiable for constraint in self._defaults)
        gates = setup.gates
        self._rules = SpreadRules(
            match_label_keys="MatchLabelKeysInPodTopologySpread" in gates,
            node_inclusion="NodeInclusionPolicyInPodTopologySpread" in gates,
        )
        self._nodes = EligibleNodes(comparison_operators="TaintTolerationComparisonOperators" in gates)
        self._pod_actions = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        if "SchedulerQueueingHints" in gates:
            self._pod_actions |= Action.UPDATE_POD_TOLERATION
        # Hints are asked without a cluster at hand; default constraints need one, see `pre_filter`.
        self._hard_of: Callable[[PodQuery], tuple[SpreadConstraint, ...]]
