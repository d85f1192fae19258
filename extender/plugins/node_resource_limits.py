"""NodeResourceLimits prefers, by a hair, nodes that could give the pod all it is limited to.

**Scores** 1 for a node whose allocatable cpu covers the pod's cpu limit, or whose allocatable memory covers its
memory limit; 0 for others. Containers are added up, init containers raise the sum to the largest of them. A resource
without a limit does not count. What other pods take does not count. Scores are not normalized, so a whole point of
the 100 is all that this plugin can give.

**Options** none. A plugin of releases up to 1.20.

Source: C063.
"""

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.cluster.vocabulary import CPU, MEMORY
from extender.framework.points import Reads
from extender.objects.pod import Container, Pod
from extender.objects.quantity import base_units


class NodeResourceLimits:
    """Compares the pod's limits with what nodes have; scores are kept by the limits."""

    name: ClassVar[str] = "NodeResourceLimits"
    score_reads: ClassVar[Reads] = Reads.NODE

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """The limits: milli-CPU and bytes of memory."""
        return _limits_of(pod)

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """0 or 1 a node. Source: C063."""
        covered = np.zeros(len(nodes), dtype=np.bool_)
        for resource, limit in zip((CPU, MEMORY), _limits_of(pod), strict=True):
            if limit:
                # A limit above 0 that is covered implies a capacity above 0.
                covered |= nodes.allocatable(resource) >= limit
        return covered.astype(np.int64)


def _limits_of(pod: PodQuery) -> tuple[int, int]:
    return pod.shape.remember(("NodeResourceLimits", "limits"), lambda: _limits(pod.pod))


def _limits(pod: Pod) -> tuple[int, int]:
    cpu, memory = (
        max(
            sum(_limit(container, name) for container in pod.spec.containers),
            *(_limit(container, name) for container in pod.spec.init_containers),
            0,
        )
        for name in ("cpu", "memory")
    )
    return cpu, memory


def _limit(container: Container, name: str) -> int:
    limits = container.resources.limits
    return base_units(name, limits[name]) if name in limits else 0
