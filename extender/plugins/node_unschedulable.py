"""NodeUnschedulable rejects cordoned nodes.

**Rejects** a node with `spec.unschedulable: true`, unless the pod tolerates the taint
`node.kubernetes.io/unschedulable:NoSchedule`. The rejection is unresolvable.

**Scores** no node.

**Requeued on** a node that is uncordoned, a new node that is not cordoned, or a toleration of that taint added to the
pod.

**Options** none.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from extender.api.kinds.affinity import Toleration
from extender.api.kinds.node import Taint
from extender.api.tolerations import find_untolerated_taint
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    register_pod_events,
)
from extender.framework.extension_points import PASS, DependsOn, PreFilterResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection

_UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_UNSCHEDULABLE = Reason("node(s) were unschedulable", Code.UNRESOLVABLE)


class NodeUnschedulable:
    """Filters by `spec.unschedulable`. TaintToleration checks the taint itself."""

    name: ClassVar[str] = "NodeUnschedulable"
    cacheable_for_spec_class: ClassVar[bool] = True
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def __init__(self, args: PluginArgs[None]) -> None:
        self._release = args.gates.release
        self._comparison_operators = "TaintTolerationComparisonOperators" in args.gates

    def _tolerates_unschedulable(self, tolerations: Sequence[Toleration]) -> bool:
        taints, comparison_operators = (_UNSCHEDULABLE_TAINT,), self._comparison_operators
        return find_untolerated_taint(taints, tolerations, comparison_operators=comparison_operators) is None

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:  # noqa: ARG002  the extension point's signature
        """Return an empty result. Runs only in releases since 1.37.

        Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go, NodeUnschedulable.PreFilter
        (1.37).
        """
        return PASS

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: the result is the same for all pods."""
        return True

    def filter_cache_key(self, pod: PodInfo) -> bool:
        """Return whether the pod tolerates the unschedulable taint."""
        return pod.signature.spec_class.get_or_create(
            (self.name, self._comparison_operators), lambda: self._tolerates_unschedulable(pod.signature.tolerations)
        )

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject cordoned nodes, unless the pod tolerates the unschedulable taint.

        Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go, NodeUnschedulable.Filter
        (1.36).
        """
        if self.filter_cache_key(pod):
            return ()
        return (Rejection(nodes.unschedulable, _UNSCHEDULABLE),)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of new nodes, changed node taints and changed tolerations of pods.

        Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go,
        NodeUnschedulable.EventsToRegister (1.36).
        """
        return (
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_TAINT,
                _is_schedulable_after_node_change,
                per_signature=True,
            ),
            *register_pod_events(
                self._release, self._is_schedulable_after_pod_toleration_change, target=ActionType.UPDATE_POD_TOLERATION
            ),
        )

    def _is_schedulable_after_pod_toleration_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        is_same_pod = event.new.metadata.uid == pod.pod.metadata.uid
        return QueueingHint.queue_if(is_same_pod and self._tolerates_unschedulable(event.new.spec.tolerations))


def _is_schedulable_after_node_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001  a hint's signature
    was_unschedulable = event.old is None or event.old.spec.unschedulable
    return QueueingHint.queue_if(was_unschedulable and not event.new.spec.unschedulable)
