"""NodeResourceLimits slightly prefers nodes that can satisfy the pod's resource limits.

**Scores** a node with 1 if its allocatable cpu covers the pod's cpu limit, or its allocatable memory covers the memory
limit. All other nodes score 0. The pod's limit is the sum of its containers' limits, or the largest limit of an init
container if that is higher. Resources without a limit and the requests of other pods on the node are ignored. Scores
are not normalized, so a node gets at most 1 of the 100 points that other plugins can give.

**Options** none. Releases up to 1.20 have this plugin.
"""

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from extender.api.kinds.pod import Container, Pod
from extender.api.quantity import to_base_units
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.symbols import CPU, MEMORY
from extender.framework.extension_points import DependsOn


class NodeResourceLimits:
    """Compares the pod's limits with allocatable resources. Scores are cached by the limits."""

    name: ClassVar[str] = "NodeResourceLimits"
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's limits in milli-CPU and bytes of memory."""
        return _get_pod_limits(pod)

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return 0 or 1 for each node.

        Source: pkg/scheduler/algorithm/priorities/resource_limits.go, ResourceLimitsPriorityMap (1.14).
        """
        covers_limit = np.zeros(len(nodes), dtype=np.bool_)
        for resource, limit in zip((CPU, MEMORY), _get_pod_limits(pod), strict=True):
            if limit:
                # Upstream also requires an allocatable amount above 0, which a covered limit above 0 implies.
                covers_limit |= nodes.allocatable(resource) >= limit
        return covers_limit.astype(np.int64)


def _get_pod_limits(pod: PodInfo) -> tuple[int, int]:
    return pod.signature.get_or_create(("NodeResourceLimits", "limits"), lambda: _compute_limits(pod.pod))


def _compute_limits(pod: Pod) -> tuple[int, int]:
    cpu, memory = (
        max(
            sum(_get_limit(container, name) for container in pod.spec.containers),
            *(_get_limit(container, name) for container in pod.spec.init_containers),
            0,
        )
        for name in ("cpu", "memory")
    )
    return cpu, memory


def _get_limit(container: Container, name: str) -> int:
    limits = container.resources.limits
    return to_base_units(name, limits[name]) if name in limits else 0
