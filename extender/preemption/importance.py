"""Which of two pods is more important: spared first, evicted last. Source: E021."""

from math import inf

import numpy as np

from extender.cluster.arrays import FloatArray, IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.pods import PlacedPod

NOT_STARTED = inf
"""Stands for the start of a pod that has not started: later than that of any pod that has."""


def started(pod: PlacedPod) -> float:
    """When *pod* started, in seconds since 1970; `NOT_STARTED` if it has not."""
    start = pod.pod.status.start_time
    return start.timestamp() if start else NOT_STARTED


def most_important_first(pods: PodBatch, groups: IntArray) -> IntArray:
    """Indices of *pods* by group and, in a group, by falling priority, then by start, the earliest first: int64.

    Args:
        pods: in any order; equals keep theirs.
        groups: a number for each pod.
    """
    priorities = pods.by_shape(lambda shape: shape.priority)
    order: IntArray = np.lexsort((-priorities, groups))
    ranked, grouped = priorities[order], groups[order]
    equal = (ranked[1:] == ranked[:-1]) & (grouped[1:] == grouped[:-1])
    if not equal.any():
        return order  # priority alone decides everywhere
    asked = np.zeros(len(pods), dtype=np.bool_)
    asked[order[1:][equal]] = asked[order[:-1][equal]] = True
    starts: FloatArray = np.zeros(len(pods), dtype=np.float64)
    starts[asked] = [started(pods.pods[index]) for index in np.flatnonzero(asked).tolist()]
    return np.lexsort((starts, -priorities, groups))
