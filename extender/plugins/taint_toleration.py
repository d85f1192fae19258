"""TaintToleration rejects and scores nodes by the taints that the pod does not tolerate.

**Rejects** a node with a taint of effect `NoSchedule` or `NoExecute` that the pod does not tolerate. The rejection is
unresolvable.

**Scores** nodes by the number of their `PreferNoSchedule` taints that the pod does not tolerate: 100 for none, 0 for
the highest number among the feasible nodes. If no node has such a taint, all get 100.

**Requeued on** a new node without such taints, a node that loses them, or changed tolerations of the pod.

**Options** none. The feature gate `TaintTolerationComparisonOperators` enables the operators `Gt` and `Lt`.

Source: api/core/v1/toleration.go, Toleration.ToleratesTaint (1.36).
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from extender.api.kinds.affinity import Toleration
from extender.api.kinds.node import Node, Taint
from extender.api.tolerations import find_untolerated_taint, tolerates
from extender.cache.node_matching import map_taint_sets, match_untolerated_taints
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_changed_pod,
    register_pod_events,
)
from extender.framework.extension_points import PASS, DependsOn, PreFilterResult, PreScoreResult
from extender.framework.normalize import default_normalize_score
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection

_PREFER_NO_SCHEDULE = "PreferNoSchedule"
_UNTOLERATED = Reason("node(s) had untolerated taint(s)", Code.UNRESOLVABLE)


class TaintToleration:
    """Filters and scores by node taints. Evaluates each distinct list of taints only once."""

    name: ClassVar[str] = "TaintToleration"
    cacheable_for_spec_class: ClassVar[bool] = True
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE
    normalizes_only_by_scores = True

    def __init__(self, args: PluginArgs[None]) -> None:
        self._release = args.gates.release
        self._comparison_operators = "TaintTolerationComparisonOperators" in args.gates

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:  # noqa: ARG002  the extension point's signature
        """Return an empty result. Runs only in releases since 1.37.

        Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, TaintToleration.PreFilter (1.37).
        """
        return PASS

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: the result is the same for all pods."""
        return True

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's tolerations."""
        return pod.signature.tolerations

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject nodes with an untolerated `NoSchedule` or `NoExecute` taint.

        Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, TaintToleration.Filter (1.36).
        """
        mask = match_untolerated_taints(
            nodes, pod.signature.tolerations, comparison_operators=self._comparison_operators
        )
        return (Rejection(mask, _UNTOLERATED),)

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:  # noqa: ARG002  the extension point's signature
        """Store the tolerations that apply to `PreferNoSchedule` taints as the state. Score is never skipped.

        Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, TaintToleration.PreScore (1.36).
        """
        return PreScoreResult(state=_get_prefer_no_schedule_tolerations(pod))

    def pre_score_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: the result depends only on the pod's spec."""
        return True

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the tolerations that apply to `PreferNoSchedule` taints."""
        return _get_prefer_no_schedule_tolerations(pod)

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return the number of intolerable `PreferNoSchedule` taints of each node.

        Raises:
            LookupError: PreScore is disabled; scoring fails as upstream.

        Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, TaintToleration.Score (1.36).
        """
        if state is None:
            raise LookupError('failed to read "PreScoreTaintToleration" from cycleState: not found')
        tolerations: tuple[Toleration, ...] = state

        def count_intolerable_taints(taints: tuple[Taint, ...]) -> int:
            return sum(
                taint.effect == _PREFER_NO_SCHEDULE and not self._is_tolerated(taint, tolerations) for taint in taints
            )

        return map_taint_sets(nodes, count_intolerable_taints)

    def _is_tolerated(self, taint: Taint, tolerations: Sequence[Toleration]) -> bool:
        return any(
            tolerates(toleration, taint, comparison_operators=self._comparison_operators) for toleration in tolerations
        )

    def normalize_score(self, pod: PodInfo, scores: IntArray, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002
        """Return 100 for nodes without intolerable taints, and less in proportion to the number of these taints.

        Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, TaintToleration.NormalizeScore
        (1.36).
        """
        return default_normalize_score(scores, reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of new nodes, changed node taints and changed tolerations of pods.

        Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, TaintToleration.EventsToRegister
        (1.36).
        """
        return (
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_TAINT,
                self._is_schedulable_after_node_change,
                per_signature=True,
            ),
            *register_pod_events(self._release, queue_changed_pod, target=ActionType.UPDATE_POD_TOLERATION),
        )

    def _is_schedulable_after_node_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        was_untolerated = event.old is None or self._has_untolerated_taint(event.old, pod)
        is_untolerated = self._has_untolerated_taint(event.new, pod)
        return QueueingHint.queue_if(was_untolerated and not is_untolerated)

    def _has_untolerated_taint(self, node: Node, pod: PodInfo) -> bool:
        taints = node.spec.taints
        return (
            find_untolerated_taint(taints, pod.signature.tolerations, comparison_operators=self._comparison_operators)
            is not None
        )


def _get_prefer_no_schedule_tolerations(pod: PodInfo) -> tuple[Toleration, ...]:
    return pod.signature.spec_class.get_or_create(
        ("TaintToleration", _PREFER_NO_SCHEDULE),
        lambda: tuple(
            toleration for toleration in pod.signature.tolerations if toleration.effect in {"", _PREFER_NO_SCHEDULE}
        ),
    )
