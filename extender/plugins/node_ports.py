"""NodePorts: two pods cannot use one port of a node's host.

**Refuses** a node where a host port of the pod is taken: by a pod with the same protocol and port, if one of the two
listens on all addresses or both on the same. Not asked for pods without host ports.

**Scores** none.

**Undone by** the end of a pod that used such a port, or a new node.

**Options** none.

Source: B027 to B029.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from extender.cluster.pods import PodQuery
from extender.cluster.ports import host_ports, in_conflict
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import SKIP, PreFiltered, Reads
from extender.framework.verdict import Code, Reason, Rejection
from extender.objects.pod import Pod

_TAKEN = Reason("node(s) didn't have free ports for the requested pod ports")
_UNPREPARED = Reason('reading "PreFilterNodePorts" from cycleState: not found', Code.ERROR)


class NodePorts:
    """Looks the pod's host ports up in the table of ports in use."""

    name: ClassVar[str] = "NodePorts"
    kept_for_kin: ClassVar[bool] = True
    filter_reads: ClassVar[Reads] = Reads.PODS

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:  # noqa: ARG002  the point's signature
        """Source: B027."""
        return PreFiltered(notes=True) if pod.shape.host_ports else SKIP

    def pre_filter_kept(self, pod: PodQuery) -> bool:  # noqa: ARG002  the point's signature
        """Always: the pod alone says which ports it wants."""
        return True

    def filter_key(self, pod: PodQuery) -> Hashable | None:
        """The pod's host ports."""
        return pod.shape.host_ports

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        """As upstream, an error on every node if `pre_filter` is switched off. Source: B028."""
        if notes is None:
            return (Rejection(np.ones(len(nodes), dtype=np.bool_), _UNPREPARED),)
        rows = nodes.snapshot.port_conflicts(pod, None if nodes.rows is None else nodes.rows.tolist())
        if not rows:
            return ()
        taken = np.zeros(len(nodes.snapshot), dtype=np.bool_)
        taken[list(rows)] = True
        return (Rejection(nodes.take(taken), _TAKEN),)

    def events(self) -> Sequence[Registration]:
        """Source: B029."""
        return (Registration(Resource.POD, Action.DELETE, _after_pod_deleted), Registration(Resource.NODE, Action.ADD))


def _after_pod_deleted(pod: PodQuery, change: Change) -> Hint:
    gone: Pod = change.old
    if not gone.spec.node_name and not gone.status.nominated_node_name:
        return Hint.SKIP
    return Hint.QUEUE if in_conflict(pod.shape.host_ports, host_ports(gone)) else Hint.SKIP
