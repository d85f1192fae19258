"""CheckNodeMemoryPressure: keep pods that promise nothing off nodes that are short of memory.

**Refuses** for good a node with the condition `MemoryPressure` at `True`, if the pod is of the class BestEffort: none
of its containers has a request or a limit of cpu or memory.

**Scores** none.

**Undone by** a node that is added without that condition or loses it.

**Options** none. A predicate of releases up to 1.17; later ones have the taint `node.kubernetes.io/memory-pressure`
instead.

Source: C044, C049.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.framework.node_pressure import NodePressure
from extender.framework.verdict import Code, Reason, Rejection
from extender.objects.pod import Pod
from extender.objects.quantity import parse


class CheckNodeMemoryPressure(NodePressure):
    """Reads the conditions in the status of nodes; answers are kept. Source: C044."""

    name: ClassVar[str] = "CheckNodeMemoryPressure"
    condition = "MemoryPressure"
    refusal = Reason("node(s) had memory pressure", Code.UNRESOLVABLE)

    def filter_key(self, pod: PodQuery) -> bool:
        """Whether the pod is BestEffort."""
        return pod.shape.remember(("CheckNodeMemoryPressure", "best effort"), lambda: _is_best_effort(pod.pod))

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        """The nodes under pressure, for pods that are BestEffort."""
        return super().filter(pod, nodes, notes) if self.filter_key(pod) else ()


def _is_best_effort(pod: Pod) -> bool:
    """Whether no container asks for cpu or memory, and none is limited in them."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for amounts in (container.resources.requests, container.resources.limits):
            if any(name in amounts and parse(amounts[name]).unscaled > 0 for name in ("cpu", "memory")):
                return False
    return True
