"""Plugins that refuse nodes by a condition of the node that says what it is short of.

Predicates of releases up to 1.17, each of which reads one condition. Source: C044, C045, C046, C049.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import Reads
from extender.framework.verdict import Reason, Rejection
from extender.objects.node import Node


class NodePressure:
    """Refuses every pod on nodes under pressure; answers are kept.

    Attributes:
        condition: the type of the condition that is read.
        refusal: the reason given for a node where it is `True`.
    """

    condition: ClassVar[str]
    refusal: ClassVar[Reason]
    filter_reads: ClassVar[Reads] = Reads.NODE

    def filter_key(self, pod: PodQuery) -> Hashable | None:  # noqa: ARG002  the point's signature
        """Every pod gets the same answer."""
        return ""

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """The nodes under pressure."""
        pressed = (self._presses(node) for node in nodes.nodes)
        mask = np.fromiter(pressed, dtype=np.bool_, count=len(nodes))
        return (Rejection(mask, self.refusal),)

    def events(self) -> Sequence[Registration]:
        """Changes of what is read."""
        return (Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_CONDITION, self._after_node_change),)

    def _presses(self, node: Node) -> bool:
        """The condition that stands there last counts, as upstream."""
        found = [each.status for each in node.status.conditions if each.type == self.condition]
        return bool(found) and found[-1] == "True"

    def _after_node_change(self, pod: PodQuery, change: Change) -> Hint:  # noqa: ARG002  a hint's signature
        closed_before = change.old is None or self._presses(change.old)
        return Hint.QUEUE if closed_before and not self._presses(change.new) else Hint.SKIP
