"""Base class of plugins that reject nodes with a pressure condition.

These plugins were predicates in releases up to 1.17. Each checks one condition.

Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodeMemoryPressurePredicate,
CheckNodeDiskPressurePredicate, CheckNodePIDPressurePredicate; pkg/scheduler/core/generic_scheduler.go,
nodesWherePreemptionMightHelp (1.14).
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from extender.api.kinds.node import Node
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import DependsOn
from extender.framework.status import Reason, Rejection


class NodePressureFilter:
    """Rejects nodes whose pressure condition is `True`. All pods share the cached results.

    Attributes:
        condition: the type of the condition.
        rejection_reason: the reason for nodes whose condition is `True`.
    """

    condition: ClassVar[str]
    rejection_reason: ClassVar[Reason]
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:  # noqa: ARG002  the extension point's signature
        """Return one key for all pods."""
        return ""

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject the nodes whose condition is `True`."""
        has_pressure = (self._has_pressure(node) for node in nodes.nodes)
        mask = np.fromiter(has_pressure, dtype=np.bool_, count=len(nodes))
        return (Rejection(mask, self.rejection_reason),)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of new nodes and changed node conditions."""
        actions = ActionType.ADD | ActionType.UPDATE_NODE_CONDITION
        return (ClusterEventWithHint(EventResource.NODE, actions, self._is_schedulable_after_node_change),)

    def _has_pressure(self, node: Node) -> bool:
        """Return whether the condition of *node* is `True`. As upstream, the last condition of the type decides."""
        statuses = [condition.status for condition in node.status.conditions if condition.type == self.condition]
        return bool(statuses) and statuses[-1] == "True"

    def _is_schedulable_after_node_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG002
        had_pressure = event.old is None or self._has_pressure(event.old)
        return QueueingHint.QUEUE if had_pressure and not self._has_pressure(event.new) else QueueingHint.SKIP
