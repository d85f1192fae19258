"""One run of an experiment: place the arriving pods one after another, and record the allocated GPUs."""

from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import Final

import numpy as np

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cycle.binding_cycle import make_assumed_pod, run_reserve_plugins
from extender.cycle.decision import ScheduleFailure
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.scheduling_cycle import schedule_pod
from extender.experiments.fragmentation_causes import Cause, measure_fragmentation
from extender.experiments.gpu_trace import Arrivals, Trace, make_arrivals
from extender.experiments.policies import SCHEDULER_NAME, Policy, build_setup
from extender.framework.status import Code
from extender.plugins.gpu_share.device_table import DeviceTable

REPORTED_DEMAND_PERCENTS: Final = (80, 90, 100, 110, 130)
"""The arrived demand, in per cent of the cluster's GPUs, at which reports show the allocation."""

FRAGMENTATION_DEMAND_PERCENTS: Final = tuple(range(10, 130, 10))
"""The arrived demand, in per cent of the cluster's GPUs, at which the fragmentation is measured."""


class RunError(RuntimeError):
    """A plugin failed during a run; the message is one line."""


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run.

    Attributes:
        policy: the name of the policy.
        seed: the seed of the order of pods and nodes.
        allocated_percent: the allocated part of the cluster's GPUs, by arrived demand in whole per cent.
        waiting_pods: the number of pods that fit nowhere, by arrived demand in whole per cent.
        fragmented_percent: the fragmented part of the cluster's GPUs by cause, at each of
            `FRAGMENTATION_DEMAND_PERCENTS` that is reached.
        seconds: the duration of the run.
    """

    policy: str
    seed: int
    allocated_percent: dict[int, float]
    waiting_pods: dict[int, int]
    fragmented_percent: dict[int, dict[Cause, float]]
    seconds: float


class FirstOfTies(Random):
    """A random generator that selects the first of several equally good nodes."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:  # noqa: ARG002  Random's signature
        """Return the first number of the range."""
        return 0 if stop is None else start


def run_experiment(trace: Trace, policy: Policy, seed: int) -> Run:
    """Place the pods of *trace* in the order of *seed*. No pod is removed, and a pod that fits nowhere is dropped.

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
    cluster = _Cluster(trace, arrivals, policy, seed)
    is_placed = np.zeros(len(arrivals.pods), dtype=np.bool_)
    fragmented_percent = {}
    for index, pod in enumerate(arrivals.pods):
        is_placed[index] = cluster.place(pod)
        if index in measured_pods:
            fragmented_percent[measured_pods[index]] = cluster.measure_fragmentation()
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


class _Cluster:
    """The cluster of one run."""

    def __init__(self, trace: Trace, arrivals: Arrivals, policy: Policy, seed: int) -> None:
        setup = build_setup(policy, trace.target_workload, seed)
        self._trace, self._policy_name = trace, policy.name
        self._profile, self._runtime = setup.profiles[SCHEDULER_NAME], wiring.make_runtime()
        self._cache, self._rng, self._node_sampler = Cache(setup.gates), FirstOfTies(seed), NodeSampler()
        for node in arrivals.nodes:
            self._cache.add_or_update_node(node)

    def place(self, pod: Pod) -> bool:
        """Place *pod*; return whether it fits on a node.

        Raises:
            RunError: a plugin failed.
        """
        snapshot = self._cache.snapshot()
        pod_info = snapshot.make_pod_info(pod)
        decision = schedule_pod(pod_info, snapshot, self._profile, self._runtime, self._rng, self._node_sampler)
        if isinstance(decision, ScheduleFailure):
            if decision.status.code is Code.ERROR:
                raise RunError(f"policy {self._policy_name}, pod {pod.key}: {decision.message}")
            return False
        node_name, cycle_state = decision.suggested_host, decision.cycle_state
        status = run_reserve_plugins(pod_info, node_name, snapshot, self._profile, self._runtime, cycle_state)
        if status is not None:
            raise RunError(f"policy {self._policy_name}, pod {pod.key}: {status.message}")
        del snapshot  # otherwise the next write to the cache would copy its tables
        self._cache.assume(make_assumed_pod(pod, node_name, self._profile, cycle_state), node_name)
        return True

    def measure_fragmentation(self) -> dict[Cause, float]:
        """Return the fragmented part of the cluster's GPUs in per cent, by cause."""
        table = DeviceTable()
        devices = table.get(self._cache.snapshot().view())
        milli = measure_fragmentation(devices, self._trace.target_workload, table.model_positions)
        return {cause: round(amount * 100 / self._trace.capacity, 2) for cause, amount in milli.items()}
