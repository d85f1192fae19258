"""Which of two pods is more important: spared first, evicted last. Source: E021."""

from collections.abc import Sequence
from math import inf

import numpy as np

from extender.cluster.arrays import FloatArray, IntArray
from extender.cluster.pods import PlacedPod

NOT_STARTED = inf
"""Stands for the start of a pod that has not started: later than that of any pod that has."""


def started(pod: PlacedPod) -> float:
    """When *pod* started, in seconds since 1970; `NOT_STARTED` if it has not."""
    start = pod.pod.status.start_time
    return start.timestamp() if start else NOT_STARTED


def most_important_first(pods: Sequence[PlacedPod], groups: IntArray) -> IntArray:
    """Indices of *pods* by group and, in a group, by falling priority, then by start, the earliest first: int64.

    Args:
        pods: in any order; equals keep theirs.
        groups: a number for each pod.
    """
    size = len(pods)
    priorities: IntArray = np.fromiter((pod.shape.priority for pod in pods), dtype=np.int64, count=size)
    order: IntArray = np.lexsort((-priorities, groups))
    ranked, grouped = priorities[order], groups[order]
    if not ((ranked[1:] == ranked[:-1]) & (grouped[1:] == grouped[:-1])).any():
        return order  # priority alone decides everywhere
    starts: FloatArray = np.fromiter(map(started, pods), dtype=np.float64, count=size)
    return np.lexsort((starts, -priorities, groups))
