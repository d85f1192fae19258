"""NodeName: a pod that names its node goes there or nowhere.

**Refuses** for good every node but the one in `spec.nodeName`, if the pod has one.

**Scores** none.

**Undone by** a new node.

**Options** none.

Source: B013.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from extender.cluster.node_matching import named_mask
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.changes import Action, Registration, Resource
from extender.framework.points import Reads
from extender.framework.verdict import Code, Reason, Rejection

_OTHER_NODE = Reason("node(s) didn't match the requested node name", Code.UNRESOLVABLE)


class NodeName:
    """Compares `spec.nodeName` with the node's name."""

    name: ClassVar[str] = "NodeName"
    filter_reads: ClassVar[Reads] = Reads.NODE

    def filter_key(self, pod: PodQuery) -> Hashable | None:
        """All pods without a node name share one answer; the others are not worth keeping."""
        return None if pod.spec.node_name else ""

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Source: B013."""
        wanted = pod.spec.node_name
        if not wanted:
            return ()
        return (Rejection(~named_mask(nodes, (wanted,)), _OTHER_NODE),)

    def events(self) -> Sequence[Registration]:
        """Source: B013."""
        return (Registration(Resource.NODE, Action.ADD),)
