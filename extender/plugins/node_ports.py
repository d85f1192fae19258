"""NodePorts rejects nodes where a host port of the pod is in use.

**Rejects** a node if a pod there uses the same protocol and host port, and the addresses conflict. Addresses conflict
if they are equal, or if one of the two pods listens on all addresses. The plugin skips pods without host ports.

**Scores** no node.

**Requeued on** the deletion of a pod that used such a port, or a new node.

**Options** none.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from extender.api.kinds.pod import Pod
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import make_mask
from extender.cache.tables.host_ports import get_host_ports, host_ports_conflict
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import SKIP, DependsOn, PreFilterResult
from extender.framework.status import Code, Reason, Rejection, reject_all

_PORTS_IN_USE = Reason("node(s) didn't have free ports for the requested pod ports")
_NO_STATE = Reason('reading "PreFilterNodePorts" from cycleState: not found', Code.ERROR)


class NodePorts:
    """Looks up the pod's host ports in the snapshot's table of host ports."""

    name: ClassVar[str] = "NodePorts"
    cacheable_for_spec_class: ClassVar[bool] = True
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:  # noqa: ARG002  the extension point's signature
        """Skip pods without host ports.

        Source: pkg/scheduler/util/utils.go, GetHostPorts (1.36).
        """
        return PreFilterResult(state=True) if pod.signature.host_ports else SKIP

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: host ports depend only on the pod's spec."""
        return True

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's host ports."""
        return pod.signature.host_ports

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        """Reject nodes with a port conflict.

        Return an error for every node if PreFilter is disabled, as upstream.

        Source: kube-scheduler/framework/types.go, HostPortInfo.CheckConflict (1.36).
        """
        if state is None:
            return reject_all(len(nodes), _NO_STATE)
        rows = nodes.snapshot.rows_with_port_conflict(pod, None if nodes.rows is None else nodes.rows.tolist())
        if not rows:
            return ()
        return (Rejection(nodes.take(make_mask(list(rows), len(nodes.snapshot))), _PORTS_IN_USE),)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of deleted pods and new nodes.

        Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go, NodePorts.isSchedulableAfterPodDeleted
        (1.36).
        """
        return (
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _is_schedulable_after_pod_deleted),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
        )


def _is_schedulable_after_pod_deleted(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    deleted_pod: Pod = event.old
    if not deleted_pod.spec.node_name and not deleted_pod.status.nominated_node_name:
        return QueueingHint.SKIP
    return QueueingHint.queue_if(host_ports_conflict(pod.signature.host_ports, get_host_ports(deleted_pod)))
