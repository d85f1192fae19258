"""NodeName allows only the node named in `spec.nodeName`, if the pod has this field.

**Rejects** every other node. The rejection is unresolvable. Since 1.37 only this node is evaluated.

**Scores** no node.

**Requeued on** a new node.

**Options** none.

Source: pkg/scheduler/framework/plugins/nodename/node_name.go, NodeName.Filter (1.36), NodeName.PreFilter (1.37).
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from extender.cache.node_matching import match_names
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.extension_points import PASS, DependsOn, PreFilterResult
from extender.framework.status import Code, Reason, Rejection

_OTHER_NODE = Reason("node(s) didn't match the requested node name", Code.UNRESOLVABLE)


class NodeName:
    """Compares `spec.nodeName` with the node's name."""

    name: ClassVar[str] = "NodeName"
    cacheable_for_spec_class: ClassVar[bool] = True
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:  # noqa: ARG002  the extension point's signature
        """Restrict the nodes to the requested one. Runs only in releases since 1.37.

        Source: pkg/scheduler/framework/plugins/nodename/node_name.go, NodeName.PreFilter (1.37).
        """
        node_name = pod.spec.node_name
        return PreFilterResult(node_names=frozenset({node_name})) if node_name else PASS

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the pod has no node name."""
        return not pod.spec.node_name

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
