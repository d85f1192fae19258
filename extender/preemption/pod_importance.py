"""Order pods by importance. More important pods are reprieved first.

Source: pkg/scheduler/util/utils.go, MoreImportantPod (1.36).
"""

from math import inf

import numpy as np

from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.tables.arrays import FloatArray, IntArray

NOT_STARTED = inf
"""The start time of a pod that has not started, later than any other time."""


def get_start_time(pod: AssignedPodInfo) -> float:
    """Return the start time of *pod*, in seconds since 1970; `NOT_STARTED` if it has none."""
    start_time = pod.pod.status.start_time
    return start_time.timestamp() if start_time else NOT_STARTED


def order_by_importance(pods: PodBatch, node_numbers: IntArray) -> IntArray:
    """Return indices of *pods* by node, then by descending priority, then by start time: int64.

    Args:
        pods: the pods in any order; equally important pods keep their order.
        node_numbers: a number for the node of each pod: int64.
    """
    priorities = pods.map_signatures(lambda signature: signature.priority)
    order: IntArray = np.lexsort((-priorities, node_numbers))
    ordered_priorities, ordered_node_numbers = priorities[order], node_numbers[order]
    has_equal_priority = (ordered_priorities[1:] == ordered_priorities[:-1]) & (
        ordered_node_numbers[1:] == ordered_node_numbers[:-1]
    )
    if not has_equal_priority.any():
        return order  # start times are needed only for equal priorities
    needs_start_time = np.zeros(len(pods), dtype=np.bool_)
    needs_start_time[order[1:][has_equal_priority]] = needs_start_time[order[:-1][has_equal_priority]] = True
    start_times: FloatArray = np.zeros(len(pods), dtype=np.float64)
    indices = np.flatnonzero(needs_start_time).tolist()
    start_times[needs_start_time] = [get_start_time(pods.pods[index]) for index in indices]
    return np.lexsort((start_times, -priorities, node_numbers))
