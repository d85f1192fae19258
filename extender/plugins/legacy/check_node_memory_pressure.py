"""CheckNodeMemoryPressure rejects nodes that are short of memory if the pod is BestEffort.

**Rejects** a node whose condition `MemoryPressure` is `True`, if the pod is BestEffort. The rejection is unresolvable.
A pod is BestEffort if none of its containers has a request or a limit of cpu or memory.

**Scores** no node.

**Requeued on** a node that is added without this condition, or loses it.

**Options** none. Releases up to 1.17 have this predicate. Later releases use the taint
`node.kubernetes.io/memory-pressure` instead.

Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodeMemoryPressurePredicate;
pkg/scheduler/core/generic_scheduler.go, nodesWherePreemptionMightHelp (1.14).
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from extender.api.kinds.pod import Pod
from extender.api.quantity import parse
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.framework.status import Code, Reason, Rejection
from extender.plugin_parts.node_pressure import NodePressureFilter


class CheckNodeMemoryPressure(NodePressureFilter):
    """Rejects nodes with memory pressure for BestEffort pods.

    Source: pkg/scheduler/algorithm/predicates/predicates.go, CheckNodeMemoryPressurePredicate (1.14).
    """

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
