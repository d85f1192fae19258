"""One run of an experiment: place the arriving pods one after another, and record the allocated GPUs."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np

from extender.experiments.fragmentation_causes import Cause
from extender.experiments.gpu_trace import Trace, make_arrivals
from extender.experiments.policies import Policy
from extender.experiments.trace_cluster import TraceCluster

REPORTED_DEMAND_PERCENTS: Final = (80, 90, 100, 110, 130)
"""The arrived demand, in per cent of the cluster's GPUs, at which reports show the allocation."""

FRAGMENTATION_DEMAND_PERCENTS: Final = tuple(range(10, 130, 10))
"""The arrived demand, in per cent of the cluster's GPUs, at which the fragmentation is measured."""


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run.

    Attributes:
        seed: the seed of the order of pods and nodes.
        allocated_percent: the allocated part of the cluster's GPUs, by arrived demand in whole per cent.
        waiting_pods: the number of pods that fit nowhere, by arrived demand in whole per cent.
        fragmented_percent: the fragmented part of the cluster's GPUs by cause, at each of
            `FRAGMENTATION_DEMAND_PERCENTS` that is reached.
    """

    policy: str
    seed: int
    allocated_percent: dict[int, float]
    waiting_pods: dict[int, int]
    fragmented_percent: dict[int, dict[Cause, float]]
    seconds: float


def run_experiment(trace: Trace, policy: Policy, seed: int, on_progress: Callable[[float], None] | None = None) -> Run:
    """Place the pods of *trace* in the order of *seed*. No pod is removed, and a pod that fits nowhere is dropped.

    *on_progress* is called after each pod with the part of the pods that have arrived, from 0 to 1.

    Raises:
        RunError: a plugin failed.
    """
    start_time = perf_counter()
    arrivals = make_arrivals(trace, seed)
    arrived_percent = np.cumsum(arrivals.gpu_milli) * 100 / trace.capacity
    measured_pods = {
        int(np.searchsorted(arrived_percent, demand_percent)): demand_percent
        for demand_percent in FRAGMENTATION_DEMAND_PERCENTS
    }
    cluster = TraceCluster(trace, arrivals.nodes, policy, seed)
    is_placed = np.zeros(len(arrivals.pods), dtype=np.bool_)
    fragmented_percent = {}
    for index, pod in enumerate(arrivals.pods):
        is_placed[index] = bool(cluster.place(pod))
        if index in measured_pods:
            fragmented_percent[measured_pods[index]] = cluster.measure_fragmentation()
        if on_progress is not None:
            on_progress((index + 1) / len(arrivals.pods))
    allocated_so_far = np.cumsum(np.where(is_placed, arrivals.gpu_milli, 0)) * 100 / trace.capacity
    waiting_so_far = np.cumsum(~is_placed)
    demand_percents = np.rint(arrived_percent).astype(np.int64)
    allocated_percent = {
        demand_percent: round(float(np.round(allocated_so_far[demand_percents == demand_percent], 2).mean()), 2)
        for demand_percent in np.unique(demand_percents).tolist()
    }
    waiting_pods = {
        demand_percent: int(waiting_so_far[demand_percents == demand_percent][-1])
        for demand_percent in allocated_percent
    }
    seconds = round(perf_counter() - start_time, 2)
    return Run(policy.name, seed, allocated_percent, waiting_pods, fragmented_percent, seconds)
