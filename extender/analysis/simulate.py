"""Simulate the scheduling of all pending pods, one after another, on a recorded cluster."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from extender.analysis.pending_pods import list_pending_pods, nominate_pending_pods
from extender.analysis.permit_simulation import PermitSimulation
from extender.analysis.utilization import ClusterUsage, calculate_cluster_usage
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_groups import get_pod_group_key
from extender.cycle.binding_cycle import make_assumed_pod, run_reserve_plugins
from extender.cycle.decision import ScheduleFailure, ScheduleResult
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group_cycle import get_member_sort_key, schedule_pod_group
from extender.cycle.pod_group_members import GroupDecision
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.cycle.scheduling_cycle import schedule_pod
from extender.framework.extension_points import QueueSortEntry
from extender.framework.profiles import Profile
from extender.framework.status import Status

ProgressCallback = Callable[[int, int], None]
"""Called after each pod with the number of pods that are done, and the number of all pods."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The outcome for one pod.

    Attributes:
        pod: `namespace/name`.
        node: the node of the pod; empty if it was not placed.
        reason: the reason of an unplaced pod, without node counts, so that pods can be grouped; else empty.
        message: kube-scheduler's message; empty if the pod was placed.
    """

    pod: str
    node: str = ""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Simulation:
    """The outcome of a simulation.

    Attributes:
        placements: the outcome of every pending pod, in queue order.
        usage_before, usage_after: the utilization before and after the simulation.
    """

    placements: tuple[Placement, ...]
    usage_before: ClusterUsage
    usage_after: ClusterUsage

    @property
    def placed_pods(self) -> list[Placement]:
        """The pods that were placed."""
        return [placement for placement in self.placements if placement.node]

    def group_unplaced_by_reason(self) -> dict[str, list[Placement]]:
        """Group the unplaced pods by reason, the most frequent reason first."""
        groups: dict[str, list[Placement]] = {}
        for placement in self.placements:
            if not placement.node:
                groups.setdefault(placement.reason, []).append(placement)
        return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def simulate(
    cache: Cache,
    profiles: Mapping[str, Profile],
    runtime: PluginRuntime,
    *,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Simulation:
    """Place the pending pods of *profiles*.

    Each pod is tried once, in queue order: the order of the QueueSort plugin, then file order. If pod groups are
    enabled, all members of a group are tried together with the first member. Placed pods and pods that wait on Permit
    use resources, so these are unavailable for later pods. No pod is evicted.

    Args:
        cache: the cache with the cluster; it is modified.
        profiles: the profiles by scheduler name.
        runtime: the plugin runtime.
        seed: the seed of the selection among nodes with equal scores; equal seeds give equal placements.
        progress: the callback after each pod; None: no callback.
    """
    usage_before = calculate_cluster_usage(cache.snapshot())
    for profile in profiles.values():
        nominate_pending_pods(cache, profile, runtime)
    simulation_run = _SimulationRun(cache, profiles, runtime, Random(seed))  # noqa: S311  reproducible
    for index in range(len(simulation_run.queue)):
        simulation_run.schedule_next(index)
        if progress is not None:
            progress(index + 1, len(simulation_run.queue))
    return Simulation(simulation_run.finish(), usage_before, calculate_cluster_usage(cache.snapshot()))


class _SimulationRun:
    """A simulation in progress.

    Attributes:
        queue: the pending pods in queue order.
    """

    def __init__(self, cache: Cache, profiles: Mapping[str, Profile], runtime: PluginRuntime, rng: Random) -> None:
        self._cache, self._profiles, self._runtime, self._rng = cache, profiles, runtime, rng
        self._node_sampler = NodeSampler()
        self._permits = PermitSimulation(cache, runtime)
        self._placements: dict[int, Placement] = {}
        self.queue = self._sort_queue()

    def _sort_queue(self) -> Sequence[Pod]:
        snapshot, profiles = self._cache.snapshot(), self._profiles

        def make_sort_key(pod: Pod) -> tuple[float, ...]:
            return profiles[pod.spec.scheduler_name].queue_sort.sort_key(
                QueueSortEntry(snapshot.make_pod_info(pod), 0.0)
            )

        return sorted(list_pending_pods(self._cache, profiles), key=make_sort_key)

    def schedule_next(self, index: int) -> None:
        """Schedule the pod at *index* of the queue, with its group; skip the pod if its group was scheduled already."""
        pod = self.queue[index]
        if index in self._placements or self._is_rejected_by_pre_enqueue(index):
            return
        profile = self._profiles[pod.spec.scheduler_name]
        if profile.pod_groups is not None and get_pod_group_key(pod) is not None:
            self._schedule_group(index, profile)
            return
        snapshot = self._cache.snapshot()
        decision = schedule_pod(
            snapshot.make_pod_info(pod), snapshot, profile, self._runtime, self._rng, self._node_sampler
        )
        del snapshot  # release the snapshot: otherwise the next write copies the tables
        if isinstance(decision, ScheduleResult):
            self._place(index, profile, decision)
        else:
            self._record_unplaced(index, _format_failure_reason(decision), decision.message)

    def _is_rejected_by_pre_enqueue(self, index: int) -> bool:
        pod, snapshot = self.queue[index], self._cache.snapshot()
        rejection = run_pre_enqueue_plugins(
            snapshot.make_pod_info(pod), snapshot, self._profiles[pod.spec.scheduler_name], self._runtime
        )
        if rejection is not None:
            self._record_unplaced(index, _format_pre_enqueue_reason(rejection), rejection.message)
        return rejection is not None

    def _record_unplaced(self, index: int, reason: str, message: str) -> None:
        self._placements[index] = Placement(self.queue[index].key, reason=reason, message=message)

    def _place(self, index: int, profile: Profile, decision: ScheduleResult) -> None:
        """Assume the pod on its node if Reserve and Permit plugins allow it."""
        pod, node, snapshot = self.queue[index], decision.suggested_host, self._cache.snapshot()
        # Reserve volumes and devices, so that later pods cannot use them.
        status = run_reserve_plugins(
            snapshot.make_pod_info(pod), node, snapshot, profile, self._runtime, decision.cycle_state
        )
        if status is not None:
            self._record_unplaced(index, status.message, f"0/1 nodes are available: 1 {status.message}.")
            return
        del snapshot  # release the snapshot: otherwise the next write copies the tables
        self._cache.assume(make_assumed_pod(pod, node, profile, decision.cycle_state), node)
        rejection = self._permits.run_permit(index, pod, node, profile, decision.cycle_state)
        if rejection is not None:
            self._record_unplaced(index, rejection.reason, rejection.message)
        else:
            self._placements[index] = Placement(pod.key, node)

    def _schedule_group(self, first_index: int, profile: Profile) -> None:
        """Schedule all members of a group that are not scheduled yet and pass PreEnqueue.

        Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupInfoForPod, Scheduler.frameworkForPodGroup,
        Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
        """
        key = get_pod_group_key(self.queue[first_index])
        later_member_indices = (
            queue_index
            for queue_index in range(first_index + 1, len(self.queue))
            if get_pod_group_key(self.queue[queue_index]) == key
        )
        member_indices = [
            first_index,
            *(
                queue_index
                for queue_index in later_member_indices
                if queue_index not in self._placements and not self._is_rejected_by_pre_enqueue(queue_index)
            ),
        ]
        member_indices.sort(key=lambda queue_index: get_member_sort_key(self.queue[queue_index], 0.0))
        snapshot = self._cache.snapshot()
        pods = [snapshot.make_pod_info(self.queue[queue_index]) for queue_index in member_indices]
        decision = schedule_pod_group(pods, snapshot, profile, self._runtime, self._rng, self._node_sampler)
        del snapshot  # release the snapshot: otherwise the next write copies the tables
        for member_index, index in enumerate(member_indices):
            self._record_group_member(index, profile, decision, member_index)

    def _record_group_member(
        self, index: int, profile: Profile, group_decision: GroupDecision, member_index: int
    ) -> None:
        failure, decision = (
            group_decision.get_member_failure(member_index),
            group_decision.members[member_index].decision if member_index < len(group_decision.members) else None,
        )
        if failure is None:
            if isinstance(decision, ScheduleResult):
                self._place(index, profile, decision)
        elif isinstance(decision, ScheduleFailure) and decision.status == failure.status:
            self._record_unplaced(index, _format_failure_reason(decision), decision.message)
        else:
            self._record_unplaced(index, failure.status.message, failure.status.message)

    def finish(self) -> tuple[Placement, ...]:
        """Time out the pods that wait on Permit, and return all placements."""
        for index, rejection in self._permits.time_out():
            self._record_unplaced(index, rejection.reason, rejection.message)
        return tuple(self._placements[index] for index in range(len(self.queue)))


def _format_pre_enqueue_reason(status: Status) -> str:
    return f"not enqueued because of {status.plugin}: {status.message}"


def _format_failure_reason(decision: ScheduleFailure) -> str:
    """Return the reasons without node counts, sorted."""
    diagnosis = decision.diagnosis
    if diagnosis.error is not None or diagnosis.node_count == 0:
        return decision.message
    if diagnosis.pre_filter_run.status is not None and diagnosis.pre_filter_run.status.reasons:
        return diagnosis.pre_filter_run.status.message
    return ", ".join(sorted(diagnosis.count_reasons())) or decision.message
