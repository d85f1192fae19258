"""DeferredPodScheduling keeps an in-place resize that the kubelet deferred on the node of its pod.

A pod on a node whose condition PodResizePending has the reason Deferred is scheduled again, for preemption only. Other
filters than NodeName, NodeResourcesFit and this one ignore the pod.

**Rejects** every node but that of the pod, and this node if `spec.podPreemptionPolicy.disableResizePreemption` has an
entry. The rejection is unresolvable. Permit rejects a pod that fits, because the kubelet carries out the resize.

**Scores** no node.

**Requeued on** the node of the pod, if it is new or a change allows preemption for resizes again.

**Options** none. It is on by default only with the feature gate `InPlacePodVerticalScalingSchedulerPreemption` of 1.37.

Source: pkg/scheduler/framework/plugins/deferredpodscheduling/deferred_pod_scheduling.go, DeferredPodScheduling.Filter,
DeferredPodScheduling.Permit, DeferredPodScheduling.EventsToRegister (1.37).
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from extender.api.requests import is_resize_deferred
from extender.cache.node_matching import match_names
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.framework.binding_points import ALLOW, PermitResult
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import PASS, SKIP, PreFilterResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection, unresolvable_status

_OTHER_NODE: Final = Reason("pod assigned to different node", Code.UNRESOLVABLE)
_PREEMPTION_DISABLED: Final = Reason("node had resize preemption disabled", Code.UNRESOLVABLE)
_RESIZE_FITS: Final = PermitResult(unresolvable_status("pod resize fits, waiting for Kubelet actuation"))


class DeferredPodScheduling:
    """Compares the node of a pod whose resize is deferred with the evaluated nodes."""

    name: ClassVar[str] = "DeferredPodScheduling"

    def __init__(self, args: PluginArgs[None]) -> None:
        self._enabled = "InPlacePodVerticalScalingSchedulerPreemption" in args.gates

    def _handles(self, pod: PodInfo) -> bool:
        return self._enabled and is_resize_deferred(pod.pod)

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:  # noqa: ARG002  the extension point's signature
        """Skip Filter unless the resize of the pod is deferred."""
        return PASS if self._handles(pod) else SKIP

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the pod has no node. The conditions of such a pod have no influence."""
        return not pod.spec.node_name

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject the other nodes, and the node of the pod if it disables preemption for resizes."""
        if not self._handles(pod):
            return ()
        is_own_node = match_names(nodes, (pod.spec.node_name,))
        rejections = [Rejection(~is_own_node, _OTHER_NODE)]
        row = nodes.snapshot.row(pod.spec.node_name)
        if row is not None and nodes.snapshot.nodes[row].spec.disables_resize_preemption:
            rejections.append(Rejection(is_own_node, _PREEMPTION_DISABLED))
        return rejections

    def permit(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: Any) -> PermitResult:  # noqa: ARG002
        """Reject a pod whose resize is deferred: it waits until the kubelet carries out the resize."""
        return _RESIZE_FITS if self._handles(pod) else ALLOW

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of new nodes and of changed preemption policies."""
        return (
            ClusterEventWithHint(
                EventResource.NODE, ActionType.UPDATE_NODE_PREEMPTION_POLICY, self._is_schedulable_after_node_change
            ),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD, self._is_schedulable_after_node_change),
        )

    def _is_schedulable_after_node_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        if not self._handles(pod) or pod.spec.node_name != event.new.metadata.name:
            return QueueingHint.SKIP
        was_disabled = event.old is None or event.old.spec.disables_resize_preemption
        is_enabled = not event.new.spec.disables_resize_preemption
        return QueueingHint.queue_if(was_disabled and is_enabled)
