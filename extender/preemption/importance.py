"""The importance of potential victims, which are reprieved in this order."""

from math import inf

import numpy as np

from extender.basics.go_sort import is_stable, sort_like_go
from extender.cache.pod_batch import PodBatch
from extender.cache.tables.arrays import BoolArray, FloatArray, IntArray
from extender.config.releases import Release


def order_by_importance(pods: PodBatch, node_numbers: IntArray, release: Release) -> IntArray:
    """Return indices of *pods* by node, then by descending priority, then by start time: int64.

    *node_numbers* has a number for the node of each pod: int64. Equally important pods of a node are in the order in
    which kube-scheduler sorts them. It is that of *pods* on a node with up to 12 pods that have started.

    Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
    DefaultPreemption.SelectVictimsOnNode; pkg/scheduler/util/utils.go, MoreImportantPod (1.36).
    """
    priorities = pods.map_signatures(lambda signature: signature.priority)
    order: IntArray = np.lexsort((-priorities, node_numbers))
    has_equal_priority = _find_repetitions(order, priorities, node_numbers)
    if not has_equal_priority.any():
        return order  # start times are needed only for equal priorities
    needs_start_time = np.zeros(len(pods), dtype=np.bool_)
    needs_start_time[order[1:][has_equal_priority]] = needs_start_time[order[:-1][has_equal_priority]] = True
    start_times: FloatArray = np.zeros(len(pods), dtype=np.float64)
    indices = np.flatnonzero(needs_start_time).tolist()
    start_times[needs_start_time] = [pods.pods[index].start_time for index in indices]
    order = np.lexsort((start_times, -priorities, node_numbers))
    is_equal = _find_repetitions(order, priorities, start_times, node_numbers)
    has_not_started = start_times[order] == inf
    if release.reads_start_times_once:
        is_equal &= ~has_not_started[1:]
    if is_equal.any():
        _sort_equal_pods(order, is_equal, has_not_started, node_numbers[order])
    return order


def _find_repetitions(order: IntArray, *values: IntArray | FloatArray) -> BoolArray:
    """Return which pods in *order*, from the second on, have the same *values* as the pod before: bool."""
    repeats: BoolArray = np.logical_and.reduce([each[order[1:]] == each[order[:-1]] for each in values])
    return repeats


def _sort_equal_pods(order: IntArray, is_equal: BoolArray, has_not_started: BoolArray, node_numbers: IntArray) -> None:
    """Sort the pods of each node in *order* that has equal ones; *node_numbers* are those of the pods in *order*.

    *is_equal* is as in `_find_repetitions`; *has_not_started* is for the pods in *order*.
    """
    ranks = 2 * np.concatenate(([0], np.cumsum(~is_equal))) + has_not_started
    starts = np.flatnonzero(np.concatenate(([True], node_numbers[1:] != node_numbers[:-1])))
    ends = np.append(starts[1:], len(order))
    equal_counts = np.add.reduceat(np.append(is_equal, False), starts)
    not_started_counts = np.add.reduceat(has_not_started, starts, dtype=np.int64)
    for index in np.flatnonzero(equal_counts).tolist():
        start, end = int(starts[index]), int(ends[index])
        if is_stable(end - start) and not_started_counts[index] < 2:
            continue
        by_position = np.argsort(order[start:end])
        keys = ranks[start:end][by_position] - ranks[start] // 2 * 2
        order[start:end] = order[start:end][by_position][list(sort_like_go(tuple(keys.tolist())))]
