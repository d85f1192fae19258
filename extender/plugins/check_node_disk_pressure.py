"""CheckNodeDiskPressure: keep pods off nodes that are short of disk space.

**Refuses** for good a node with the condition `DiskPressure` at `True`.

**Scores** none.

**Undone by** a node that is added without that condition or loses it.

**Options** none. A predicate of releases up to 1.17; later ones have the taint `node.kubernetes.io/disk-pressure`
instead.

Source: C045, C049.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import Reads
from extender.framework.verdict import Code, Reason, Rejection
from extender.objects.node import Node

_UNDER_PRESSURE: Final = Reason("node(s) had disk pressure", Code.UNRESOLVABLE)
_CONDITION: Final = "DiskPressure"


class CheckNodeDiskPressure:
    """Reads the conditions in the status of nodes; answers are kept."""

    name: ClassVar[str] = "CheckNodeDiskPressure"
    filter_reads: ClassVar[Reads] = Reads.NODE

    def filter_key(self, pod: PodQuery) -> Hashable | None:  # noqa: ARG002  the point's signature
        """Every pod gets the same answer."""
        return ""

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Source: C045."""
        pressed = (_is_under_pressure(node) for node in nodes.nodes)
        mask = np.fromiter(pressed, dtype=np.bool_, count=len(nodes))
        return (Rejection(mask, _UNDER_PRESSURE),)

    def events(self) -> Sequence[Registration]:
        """Changes of what is read."""
        return (Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_CONDITION, _after_node_change),)


def _is_under_pressure(node: Node) -> bool:
    """The condition that stands there last counts, as upstream."""
    found = [condition.status for condition in node.status.conditions if condition.type == _CONDITION]
    return bool(found) and found[-1] == "True"


def _after_node_change(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001  a hint's signature
    closed_before = change.old is None or _is_under_pressure(change.old)
    return Hint.QUEUE if closed_before and not _is_under_pressure(change.new) else Hint.SKIP
