"""NodeUnschedulable: keep pods off cordoned nodes.

**Refuses** for good a node with `spec.unschedulable: true`, unless the pod tolerates the taint
`node.kubernetes.io/unschedulable:NoSchedule`.

**Scores** none.

**Undone by** uncordoning the node, a new node that is not cordoned, or a toleration of that taint added to the pod.

**Options** none.

Source: B014, B015.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import Reads
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection
from extender.objects.affinity import Toleration
from extender.objects.node import Taint
from extender.objects.tolerations import tolerates

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_CORDONED = Reason("node(s) were unschedulable", Code.UNRESOLVABLE)


class NodeUnschedulable:
    """Reads `spec.unschedulable` of nodes; the taint itself is the business of TaintToleration."""

    name: ClassVar[str] = "NodeUnschedulable"
    filter_reads: ClassVar[Reads] = Reads.NODE

    def __init__(self, setup: Setup[None]) -> None:
        self._comparisons = "TaintTolerationComparisonOperators" in setup.gates

    def _ignores_cordons(self, tolerations: Sequence[Toleration]) -> bool:
        return any(tolerates(each, _CORDON, comparison_operators=self._comparisons) for each in tolerations)

    def filter_key(self, pod: PodQuery) -> bool:
        """Whether the pod tolerates a cordon."""
        return pod.shape.kin.remember(
            (self.name, self._comparisons), lambda: self._ignores_cordons(pod.shape.tolerations)
        )

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Source: B014."""
        if self.filter_key(pod):
            return ()
        return (Rejection(nodes.unschedulable, _CORDONED),)

    def events(self) -> Sequence[Registration]:
        """Source: B015."""
        return (
            Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _after_node_change),
            Registration(Resource.POD, Action.UPDATE_POD_TOLERATION, self._after_toleration_change),
        )

    def _after_toleration_change(self, pod: PodQuery, change: Change) -> Hint:
        own = change.new.metadata.uid == pod.pod.metadata.uid
        return Hint.QUEUE if own and self._ignores_cordons(change.new.spec.tolerations) else Hint.SKIP


def _after_node_change(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001  a hint's signature
    was_closed = change.old is None or change.old.spec.unschedulable
    return Hint.QUEUE if was_closed and not change.new.spec.unschedulable else Hint.SKIP
