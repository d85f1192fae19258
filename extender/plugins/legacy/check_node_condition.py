"""CheckNodeCondition rejects nodes that are cordoned or not ready.

**Rejects** a node with `spec.unschedulable`, with a condition `Ready` that is not `True`, or with a condition
`OutOfDisk` or `NetworkUnavailable` that is not `False`. The rejection is unresolvable. Missing conditions are ignored.
All reasons are reported. Tolerations are ignored.

**Scores** no node.

**Requeued on** a node that is added or uncordoned, or whose conditions change.

**Options** none. Releases up to 1.17 have this predicate. Later releases use the taints of the node controller instead.

Source: pkg/scheduler/core/generic_scheduler.go, nodesWherePreemptionMightHelp (1.14).
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

from extender.api.kinds.node import Node
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import make_mask
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import DependsOn
from extender.framework.status import Code, Reason, Rejection

_NOT_READY: Final = Reason("node(s) were not ready", Code.UNRESOLVABLE)
_OUT_OF_DISK: Final = Reason("node(s) were out of disk space", Code.UNRESOLVABLE)
_NO_NETWORK: Final = Reason("node(s) had unavailable network", Code.UNRESOLVABLE)
_UNSCHEDULABLE: Final = Reason("node(s) were unschedulable", Code.UNRESOLVABLE)
_REQUIRED_CONDITIONS: Final = {
    "Ready": ("True", _NOT_READY),
    "OutOfDisk": ("False", _OUT_OF_DISK),
    "NetworkUnavailable": ("False", _NO_NETWORK),
}


class CheckNodeCondition:
    """Filters by node conditions. Results are cached, and are the same for all pods."""

    name: ClassVar[str] = "CheckNodeCondition"
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:  # noqa: ARG002  the extension point's signature
        """Return one key for all pods."""
        return ""

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject cordoned nodes and nodes with an unwanted condition.

        Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodeConditionPredicate (1.14).
        """
        positions_by_reason: dict[Reason, list[int]] = {}
        for position, node in enumerate(nodes.nodes):
            for reason in _get_rejection_reasons(node):
                positions_by_reason.setdefault(reason, []).append(position)
        return tuple(
            Rejection(make_mask(positions, len(nodes)), reason) for reason, positions in positions_by_reason.items()
        )

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of new nodes and changed conditions and taints. Cordoning a node changes its taints."""
        actions = ActionType.ADD | ActionType.UPDATE_NODE_CONDITION | ActionType.UPDATE_NODE_TAINT
        return (ClusterEventWithHint(EventResource.NODE, actions, _is_schedulable_after_node_change),)


def _get_rejection_reasons(node: Node) -> list[Reason]:
    reasons: list[Reason] = []
    for condition in node.status.conditions:
        if condition.type in _REQUIRED_CONDITIONS:
            required_status, reason = _REQUIRED_CONDITIONS[condition.type]
            if condition.status != required_status:
                reasons.append(reason)
    return [*reasons, _UNSCHEDULABLE] if node.spec.unschedulable else reasons


def _is_schedulable_after_node_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001  a hint's signature
    was_rejected = event.old is None or bool(_get_rejection_reasons(event.old))
    return QueueingHint.queue_if(was_rejected and not _get_rejection_reasons(event.new))
