"""The scheduling cycle of a pod group: schedule the members, or preempt pods for the group.

Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm;
pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption;
pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from extender.api.kinds.meta import ObjectMeta
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group.hierarchy import find_root_key, make_pod_group_info, sort_members, validate_pod_group
from extender.cycle.pod_group.post_filter import (
    FailedGroupAttempt,
    apply_post_filter_run,
    run_pod_group_post_filter,
    run_pod_group_post_filter_plugins,
)
from extender.cycle.pod_group_members import POD_GROUP_UNSCHEDULABLE, GroupAttempt, GroupDecision, MemberSteps
from extender.cycle.pod_group_placements import schedule_by_placement, schedule_in_placement
from extender.cycle.scheduling_cycle import CycleInputs, schedule_without_extenders
from extender.framework.pod_group_points import PodGroupPostFilterResult
from extender.framework.profiles import Profile
from extender.framework.status import Code, error_status, unschedulable_status

_PREEMPTION_DISABLED = unschedulable_status(
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
_CONSTRAINTS_NOT_SUPPORTED = unschedulable_status(
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


def get_member_sort_key(pod: Pod, first_active_time: float) -> tuple[int, float]:
    """Return the sort key of a group member: the highest priority first, then the earliest entry into activeQ.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupInfoForPod (1.36).
    """
    return -(pod.spec.priority or 0), first_active_time


def make_group_attempt(
    pods: Sequence[PodInfo], snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, rng: Random
) -> GroupAttempt:
    """Return an attempt for the root above the pod group of *pods*.

    There must be at least one pod. The order is scheduling order; the members of a composite pod group are ordered by
    their pod groups first.
    """
    object_key = get_pod_group_key(pods[0].pod) or ""
    group = make_pod_group_info(find_root_key(object_key, snapshot, profile.gates), snapshot)
    return GroupAttempt(group, sort_members(pods, group), profile, runtime, rng)


def schedule_pod_group(
    pods: Sequence[PodInfo],
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    rng: Random,
    node_sampler: NodeSampler,
) -> GroupDecision:
    """Run the whole scheduling cycle of a pod group, or of the composite pod group above it.

    The members of the decision are in the order of `make_group_attempt`. *pods* are the pending members in scheduling
    order, at least one, and *profile* is that of the first member. *rng* breaks ties between nodes and between
    placements. *node_sampler* is used only if the profile sets percentageOfNodesToScore.
    """
    error = validate_pod_group(pods, snapshot, profile)
    if error is not None:
        return GroupDecision(error)
    steps = run_pod_group_cycle(make_group_attempt(pods, snapshot, profile, runtime, rng), snapshot)
    try:
        step = next(steps)
        while True:
            only_nodes = step.placement.node_names
            inputs = CycleInputs(step.pod, step.snapshot, step.profile, runtime, rng, node_sampler, only_nodes)
            step = steps.send(schedule_without_extenders(inputs))
    except StopIteration as stop:
        decision: GroupDecision = stop.value
        return decision


def run_pod_group_cycle(attempt: GroupAttempt, snapshot: Snapshot) -> MemberSteps[GroupDecision]:
    """Run the cycle as a generator. It yields each member to the caller, who schedules it and sends the decision.

    `validate_pod_group` must accept the members.
    """
    snapshot = _freeze_lists(attempt, _remove_specs_of_nominated_members(attempt, snapshot))
    if attempt.profile.release.has_pod_group_post_filter:
        return (yield from _run_cycle_with_post_filter(attempt, snapshot))
    decision = yield from _run_scheduling_algorithm(attempt, snapshot)
    if "WorkloadAwarePreemption" not in attempt.profile.gates or decision.status.code is not Code.UNSCHEDULABLE:
        return decision
    result = yield from _run_workload_aware_preemption(attempt, snapshot)
    status = result.status
    if status.is_success:
        return replace(decision, waits_for_preemption=True, preemption_plan=result.plan)
    if status.code is Code.ERROR:
        return replace(decision, status=status)
    return replace(decision, status=replace(decision.status, reasons=(*decision.status.reasons, status.message)))


def _remove_specs_of_nominated_members(attempt: GroupAttempt, snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* with only the names of nominated members: without requests, labels and priority.

    kube-scheduler finds the other fields of a nominated pod in its queue, from which the members were popped.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.nominatedPodToInfo (1.36).
    """
    uids = {pod_info.uid for pod_infos in snapshot.nominated_pods_by_node.values() for pod_info in pod_infos}
    nominated_members = [pod for pod in attempt.pods if pod.uid in uids]
    if not nominated_members:
        return snapshot
    hypothesis = Hypothesis(snapshot)
    for pod in nominated_members:
        metadata = pod.pod.metadata
        names = ObjectMeta(name=metadata.name, namespace=metadata.namespace, uid=metadata.uid)
        hypothesis.replace_nominated_pod(snapshot.make_pod_info(Pod(metadata=names)))
    return hypothesis.snapshot()


def _freeze_lists(attempt: GroupAttempt, snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* with lists that the cycle does not change, in a release that does not update them."""
    if attempt.profile.release.updates_lists_in_group_cycle or not any(
        pod.signature.pod_affinity_terms.all_terms or pod.signature.volume_uses.claims for pod in attempt.pods
    ):
        return snapshot
    hypothesis = Hypothesis(snapshot)
    hypothesis.freeze_node_lists()
    return hypothesis.snapshot()


def _run_scheduling_algorithm(attempt: GroupAttempt, snapshot: Snapshot) -> MemberSteps[GroupDecision]:
    return (
        yield from schedule_by_placement(attempt, snapshot)
        if "TopologyAwareWorkloadScheduling" in attempt.profile.gates
        else schedule_in_placement(attempt, snapshot)
    )


def _run_cycle_with_post_filter(attempt: GroupAttempt, snapshot: Snapshot) -> MemberSteps[GroupDecision]:
    """Run the cycle since 1.37: PostFilter does not run for members, and PodGroupPostFilter runs for the group.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupCycle, Scheduler.runRootSchedulingAlgorithm
    (1.37).
    """
    group = snapshot.get_group(attempt.group.group_key)
    member_attempt = replace(attempt, profile=replace(attempt.profile, post_filter_plugins=()))

    def schedule_group(snapshot: Snapshot, *, is_dry_run: bool = True) -> MemberSteps[GroupDecision]:
        decision = yield from _run_scheduling_algorithm(replace(member_attempt, is_dry_run=is_dry_run), snapshot)
        if decision.status.is_success and not decision.scheduled_members:
            return replace(decision, status=POD_GROUP_UNSCHEDULABLE)
        return decision

    decision = yield from schedule_group(snapshot, is_dry_run=False)
    if decision.status.code is not Code.UNSCHEDULABLE or group is None:
        return apply_post_filter_run(attempt, decision, None)
    failed_attempt = FailedGroupAttempt(
        group, attempt.pods, snapshot, attempt.profile, attempt.runtime, decision.members
    )
    post_filter_run = yield from run_pod_group_post_filter_plugins(failed_attempt, schedule_group)
    return apply_post_filter_run(attempt, decision, post_filter_run)


def _run_workload_aware_preemption(attempt: GroupAttempt, snapshot: Snapshot) -> MemberSteps[PodGroupPostFilterResult]:
    """Preempt for the group in 1.36. The group is scheduled on each hypothetical snapshot that the plugin yields.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.runWorkloadAwarePreemption (1.36).
    """
    group = snapshot.get_object(PodGroup, attempt.group.key)
    if not attempt.profile.pod_group_post_filter_plugins:
        return PodGroupPostFilterResult(_PREEMPTION_DISABLED)
    if group is None:
        name = attempt.group.name
        return PodGroupPostFilterResult(
            error_status(f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found')
        )
    constraints = group.spec.scheduling_constraints
    if constraints is not None and constraints.topology:
        return PodGroupPostFilterResult(_CONSTRAINTS_NOT_SUPPORTED)
    profile_without_preemption = replace(attempt.profile, post_filter_plugins=())

    def schedule_group(snapshot: Snapshot) -> MemberSteps[GroupDecision]:
        dry_run_attempt = replace(attempt, profile=profile_without_preemption, is_dry_run=True)
        return (yield from _run_scheduling_algorithm(dry_run_attempt, snapshot))

    failed_attempt = FailedGroupAttempt(group, attempt.pods, snapshot, attempt.profile, attempt.runtime)
    return (
        yield from run_pod_group_post_filter(
            attempt.profile.pod_group_post_filter_plugins[0], failed_attempt, schedule_group
        )
    )
