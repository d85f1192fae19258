"""NodeName allows only the node named in `spec.nodeName`, if the pod has this field.

**Rejects** every other node, unresolvable.

**Scores** no node.

**Requeued on** a new node.

**Options** none.

Source: pkg/scheduler/framework/plugins/nodename/node_name.go, NodeName.Filter (1.36).
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from extender.cache.node_matching import match_names
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.extension_points import DependsOn
from extender.framework.status import Code, Reason, Rejection

_OTHER_NODE = Reason("node(s) didn't match the requested node name", Code.UNRESOLVABLE)


class NodeName:
    """Compares `spec.nodeName` with the node's name."""

    name: ClassVar[str] = "NodeName"
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return one key for all pods without a node name. Results for other pods are not cached."""
        return None if pod.spec.node_name else ""

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject every node but the requested one.

        Source: pkg/scheduler/framework/plugins/nodename/node_name.go, NodeName.Filter (1.36).
        """
        node_name = pod.spec.node_name
        if not node_name:
            return ()
        return (Rejection(~match_names(nodes, (node_name,)), _OTHER_NODE),)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the event of a new node.

        Source: pkg/scheduler/framework/plugins/nodename/node_name.go, NodeName.EventsToRegister (1.36).
        """
        return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD),)
