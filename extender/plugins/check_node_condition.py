"""CheckNodeCondition: keep pods off nodes that say themselves that they are not fit.

**Refuses** for good a node with `spec.unschedulable`, and one with a condition `Ready` that is not `True`, or
`OutOfDisk` or `NetworkUnavailable` that is not `False`. A condition that the node does not have does not count. All
reasons are told. Tolerations do not help.

**Scores** none.

**Undone by** a node that is added, uncordoned, or whose conditions change.

**Options** none. A predicate of releases up to 1.17; later ones have the taints of the node controller instead.

Source: C024, C049.
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

_NOT_READY: Final = Reason("node(s) were not ready", Code.UNRESOLVABLE)
_OUT_OF_DISK: Final = Reason("node(s) were out of disk space", Code.UNRESOLVABLE)
_NO_NETWORK: Final = Reason("node(s) had unavailable network", Code.UNRESOLVABLE)
_CORDONED: Final = Reason("node(s) were unschedulable", Code.UNRESOLVABLE)
_WANTED: Final = {
    "Ready": ("True", _NOT_READY),
    "OutOfDisk": ("False", _OUT_OF_DISK),
    "NetworkUnavailable": ("False", _NO_NETWORK),
}


class CheckNodeCondition:
    """Reads the conditions in the status of nodes; answers are the same for all pods and kept."""

    name: ClassVar[str] = "CheckNodeCondition"
    filter_reads: ClassVar[Reads] = Reads.NODE

    def filter_key(self, pod: PodQuery) -> Hashable | None:  # noqa: ARG002  the point's signature
        """Every pod gets the same answer."""
        return ""

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Source: C024."""
        places: dict[Reason, list[int]] = {}
        for place, node in enumerate(nodes.nodes):
            for reason in _faults(node):
                places.setdefault(reason, []).append(place)
        return tuple(Rejection(_mask(found, len(nodes)), reason) for reason, found in places.items())

    def events(self) -> Sequence[Registration]:
        """Changes of what is read; a cordon shows as a change of taints."""
        actions = Action.ADD | Action.UPDATE_NODE_CONDITION | Action.UPDATE_NODE_TAINT
        return (Registration(Resource.NODE, actions, _after_node_change),)


def _faults(node: Node) -> list[Reason]:
    found = [
        wanted[1]
        for condition in node.status.conditions
        if (wanted := _WANTED.get(condition.type)) is not None and condition.status != wanted[0]
    ]
    return [*found, _CORDONED] if node.spec.unschedulable else found


def _mask(places: Sequence[int], size: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    mask = np.zeros(size, dtype=np.bool_)
    mask[places] = True
    return mask


def _after_node_change(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001  a hint's signature
    closed_before = change.old is None or bool(_faults(change.old))
    return Hint.QUEUE if closed_before and not _faults(change.new) else Hint.SKIP
