"""Wait for a change that kube-scheduler has seen and the cache has not.

kube-scheduler sends nodes that pass its own filters. It retries a pod as soon as it sees a change, such as the deletion
of another pod. If the same change reaches this process a little later, no node fits, and the pod waits until the next
event in the cluster, or for five minutes.

Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders; pkg/scheduler/backend/queue/scheduling_queue.go,
PriorityQueue.flushUnschedulablePodsLeftover (1.36).
"""

import asyncio
from typing import Final

from extender.cache.cache import Cache
from extender.extender_api.failed_nodes import UNKNOWN_NODE, NodeReasons

MAX_LATE_SECONDS: Final = 0.02
"""Limit of the wait in one request. kube-scheduler schedules no other pod meanwhile."""

_STEP_SECONDS: Final = 0.001

_CLUSTER_PLUGINS: Final = frozenset(
    {
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeRestrictions",
    }
)
"""The filters of kube-scheduler whose rejection a change of a pod or of a node can end."""


class LateChanges:
    """The changes of *cache* that one request waits for, for *max_seconds* together.

    Attributes:
        is_over: whether no change came in the last wait, so that the decision is final.
    """

    __slots__ = ("_cache", "_deadline", "_max_seconds", "is_over")

    def __init__(self, cache: Cache, max_seconds: float) -> None:
        self._cache, self._max_seconds = cache, max_seconds
        self._deadline = 0.0
        self.is_over = max_seconds <= 0

    def may_change(self, reasons: NodeReasons) -> bool:
        """Return whether a wait may change *reasons*: no node fits, and kube-scheduler's own filters disagree."""
        return not self.is_over and bool((reasons.reason_indices > 0).all()) and _has_cluster_reason(reasons)

    async def wait(self) -> None:
        """Wait for the next change of the cache. If there is none in time, the wait is over."""
        loop, write_count = asyncio.get_running_loop(), self._cache.write_count
        self._deadline = self._deadline or loop.time() + self._max_seconds
        while self._cache.write_count == write_count:
            if loop.time() >= self._deadline:
                self.is_over = True
                return
            await asyncio.sleep(_STEP_SECONDS)


def _has_cluster_reason(reasons: NodeReasons) -> bool:
    plugins = {plugin for plugin, _ in reasons.rejection_counts}
    return not plugins.isdisjoint(_CLUSTER_PLUGINS) or any(reason.text == UNKNOWN_NODE for reason in reasons.reasons)
