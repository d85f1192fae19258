"""CheckNodeDiskPressure, CheckNodeMemoryPressure and CheckNodePIDPressure reject nodes that are short of a resource.

**Rejects** a node whose condition `DiskPressure`, `MemoryPressure` or `PIDPressure` is `True`. CheckNodeMemoryPressure
does so only if the pod is BestEffort: none of its containers has a request or a limit of cpu or memory. The rejection
is unresolvable.

**Scores** no node.

**Requeued on** a node that is added without this condition, or loses it.

**Options** none. Releases up to 1.17 have these predicates. Later releases use the taints
`node.kubernetes.io/disk-pressure`, `node.kubernetes.io/memory-pressure` and `node.kubernetes.io/pid-pressure` instead.

Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodeDiskPressurePredicate,
CheckNodeMemoryPressurePredicate, CheckNodePIDPressurePredicate; pkg/scheduler/core/generic_scheduler.go,
nodesWherePreemptionMightHelp (1.14).
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.quantity import parse
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import DependsOn
from extender.framework.status import Code, Reason, Rejection


class _NodePressureFilter:
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
        return QueueingHint.queue_if(had_pressure and not self._has_pressure(event.new))


class CheckNodeDiskPressure(_NodePressureFilter):
    """Rejects nodes with disk pressure."""

    name: ClassVar[str] = "CheckNodeDiskPressure"
    condition = "DiskPressure"
    rejection_reason = Reason("node(s) had disk pressure", Code.UNRESOLVABLE)


class CheckNodePIDPressure(_NodePressureFilter):
    """Rejects nodes with PID pressure."""

    name: ClassVar[str] = "CheckNodePIDPressure"
    condition = "PIDPressure"
    rejection_reason = Reason("node(s) had pid pressure", Code.UNRESOLVABLE)


class CheckNodeMemoryPressure(_NodePressureFilter):
    """Rejects nodes with memory pressure for BestEffort pods."""

    name: ClassVar[str] = "CheckNodeMemoryPressure"
    condition = "MemoryPressure"
    rejection_reason = Reason("node(s) had memory pressure", Code.UNRESOLVABLE)

    def filter_cache_key(self, pod: PodInfo) -> bool:
        """Return whether the pod is BestEffort."""
        return pod.signature.get_or_create(("CheckNodeMemoryPressure", "best effort"), lambda: _is_best_effort(pod.pod))

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        """Reject nodes under pressure if the pod is BestEffort."""
        return super().filter(pod, nodes, state) if self.filter_cache_key(pod) else ()


def _is_best_effort(pod: Pod) -> bool:
    """Return whether no container has a request or a limit of cpu or memory."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for amounts in (container.resources.requests, container.resources.limits):
            if any(name in amounts and parse(amounts[name]).unscaled > 0 for name in ("cpu", "memory")):
                return False
    return True
