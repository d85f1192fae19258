"""The scheduling cycle of a pod group: schedule its members, or preempt pods for the group.

Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupInfoForPod,
Scheduler.podGroupSchedulingPlacementAlgorithm, Scheduler.runWorkloadAwarePreemption;
pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption;
pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group_members import (
    GroupAttempt,
    GroupDecision,
    MemberSteps,
    check_scheduler_names,
    schedule_members,
)
from extender.cycle.pod_group_placements import schedule_by_placement
from extender.cycle.scheduling_cycle import schedule_pod
from extender.framework.extension_points import PostFilterResult
from extender.framework.plugin_runner import PluginError
from extender.framework.pod_group_points import DryRunGenerator, PodGroupInfo, PodGroupPostFilter
from extender.framework.profiles import PodGroupSettings, Profile
from extender.framework.status import Code, Status, error, unschedulable

_PREEMPTION_DISABLED = unschedulable(
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
_CONSTRAINED = unschedulable("workload aware preemption is not supported for pod groups with scheduling constraints")


def get_member_sort_key(pod: Pod, first_active_time: float) -> tuple[int, float]:
    """Return the sort key of a group member: the highest priority first, then the earliest entry into activeQ.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupInfoForPod (1.36).
    """
    return -(pod.spec.priority or 0), first_active_time


def make_group_attempt(pods: Sequence[PodInfo], profile: Profile, runtime: PluginRuntime, rng: Random) -> GroupAttempt:
    """Make an attempt for the group of *pods*, which are in scheduling order; at least one."""
    namespace, _, name = (get_pod_group_key(pods[0].pod) or "").partition("/")
    return GroupAttempt(PodGroupInfo(namespace, name), tuple(pods), profile, runtime, rng)


def schedule_pod_group(
    pods: Sequence[PodInfo],
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    rng: Random,
    node_sampler: NodeSampler,
) -> GroupDecision:
    """Run the whole scheduling cycle of a pod group.

    Args:
        pods: the pending members in scheduling order; at least one.
        snapshot: the cluster.
        profile: the profile of the first member's scheduler name.
        runtime: the runtime that calls the plugins.
        rng: the random generator that breaks ties between nodes and between placements.
        node_sampler: the sampler of the nodes if the profile sets percentageOfNodesToScore.
    """
    scheduler_name_error = check_scheduler_names(pods)
    if scheduler_name_error is not None:
        return GroupDecision(scheduler_name_error)
    steps = run_pod_group_cycle(make_group_attempt(pods, profile, runtime, rng), snapshot)
    try:
        step = next(steps)
        while True:
            only_nodes = step.placement.node_names
            step = steps.send(
                schedule_pod(step.pod, step.snapshot, step.profile, runtime, rng, node_sampler, only_nodes=only_nodes)
            )
    except StopIteration as stop:
        decision: GroupDecision = stop.value
        return decision


def run_pod_group_cycle(attempt: GroupAttempt, snapshot: Snapshot) -> MemberSteps[GroupDecision]:
    """Run the cycle as a generator that yields each member to its caller for scheduling.

    All members have the same scheduler name.
    """
    settings = attempt.profile.pod_groups or PodGroupSettings()
    decision = yield from _run_scheduling_algorithm(attempt, snapshot, settings)
    if not settings.workload_aware_preemption or decision.status.code is not Code.UNSCHEDULABLE:
        return decision
    result = yield from _run_pod_group_post_filter(attempt, snapshot, settings)
    status = result.status
    if status.is_success:
        return replace(decision, waits_for_preemption=True, detail=result.detail)
    if status.code is Code.ERROR:
        return replace(decision, status=status)
    return replace(decision, status=replace(decision.status, reasons=(*decision.status.reasons, status.message)))


def _run_scheduling_algorithm(
    attempt: GroupAttempt, snapshot: Snapshot, settings: PodGroupSettings
) -> MemberSteps[GroupDecision]:
    return (
        yield from schedule_by_placement(attempt, snapshot)
        if settings.topology_aware
        else schedule_members(attempt, snapshot)
    )


def _run_pod_group_post_filter(
    attempt: GroupAttempt, snapshot: Snapshot, settings: PodGroupSettings
) -> MemberSteps[PostFilterResult]:
    """Run the PodGroupPostFilter plugin. The group is scheduled on each hypothetical snapshot that the plugin yields.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.runWorkloadAwarePreemption (1.36).
    """
    plugin, group = settings.post_filter, snapshot.get_object(PodGroup, attempt.group.key)
    if plugin is None:
        return PostFilterResult(_PREEMPTION_DISABLED)
    if group is None:
        name = attempt.group.name
        return PostFilterResult(error(f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found'))
    constraints = group.spec.scheduling_constraints
    if constraints is not None and constraints.topology:
        return PostFilterResult(_CONSTRAINED)
    attempt_without_preemption = replace(attempt, profile=replace(attempt.profile, post_filter_plugins=()))
    try:
        generator = plugin.pod_group_post_filter(group, attempt.pods, snapshot)
        snapshot_or_result = _advance_generator(attempt, plugin, generator, None)
        while isinstance(snapshot_or_result, Snapshot):
            decision = yield from _run_scheduling_algorithm(attempt_without_preemption, snapshot_or_result, settings)
            snapshot_or_result = _advance_generator(attempt, plugin, generator, decision.status)
    except PluginError as exception:
        return PostFilterResult(exception.status)
    return snapshot_or_result


def _advance_generator(
    attempt: GroupAttempt, plugin: PodGroupPostFilter, generator: DryRunGenerator, status: Status | None
) -> Snapshot | PostFilterResult:
    """Return the next snapshot to schedule the group on, or the plugin's result.

    Raises:
        PluginError: the plugin raised.
    """

    def advance() -> Snapshot | PostFilterResult:
        try:
            return next(generator) if status is None else generator.send(status)
        except StopIteration as stop:
            result: PostFilterResult = stop.value
            return result

    return attempt.runtime.runner.call(plugin, "PodGroupPostFilter", advance)
