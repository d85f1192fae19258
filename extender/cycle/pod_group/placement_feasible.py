"""Schedule the members or child groups of a group until PlacementFeasible plugins find that it cannot be scheduled."""

from collections.abc import Callable
from itertools import chain

from extender.cache.group_hierarchy import Group, GroupKey
from extender.cache.snapshot import Snapshot
from extender.cycle.binding_cycle import UnreserveOutcome
from extender.cycle.pod_group_members import (
    ALL_NODES,
    POD_GROUP_UNSCHEDULABLE_TEXT,
    GroupAttempt,
    GroupDecision,
    GroupHypothesis,
    MemberResult,
    MemberSteps,
)
from extender.framework.plugin_runner import PluginError
from extender.framework.pod_group_points import Placement, PlacementFeasible, PlacementProgress
from extender.framework.status import SUCCESS, Code, Status, error_status, unschedulable_status


def schedule_members_while_feasible(
    attempt: GroupAttempt, snapshot: Snapshot, placement: Placement = ALL_NODES
) -> MemberSteps[GroupDecision]:
    """Schedule the members on the nodes of *placement*. The PodGroup object must exist.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.37).
    """
    group_hypothesis = GroupHypothesis(attempt, snapshot)
    progress = PlacementProgress(len(snapshot.pod_group(attempt.group.key).assigned), len(attempt.pods))
    members: list[MemberResult] = []
    status = run_placement_feasible_plugins(attempt, snapshot, progress)
    if status.code is Code.UNSCHEDULABLE:
        status = unschedulable_status(POD_GROUP_UNSCHEDULABLE_TEXT, *status.reasons)
    try:
        for pod in attempt.pods if status.code in {Code.SUCCESS, Code.WAIT} else ():
            decision = yield attempt.make_step(pod, group_hypothesis.hypothesis.snapshot(), placement)
            if attempt.is_dry_run:
                group_hypothesis.fork()  # the reprieve of victims reads the state of the member
            member = group_hypothesis.assume_member(pod, decision)
            members.append(member)
            if not (member.status.is_success or member.status.is_rejected):
                message = f"failed to schedule other pod from a pod group: {member.status.message}"
                status = error_status(message)
                break
            progress = PlacementProgress(progress.scheduled + member.status.is_success, progress.remaining - 1)
            status = run_placement_feasible_plugins(attempt, snapshot, progress)
            if status.code in {Code.ERROR, Code.UNSCHEDULABLE}:
                break
    finally:
        group_hypothesis.unreserve_all()
    if status.code is Code.WAIT:
        status = unschedulable_status(POD_GROUP_UNSCHEDULABLE_TEXT, *status.reasons)
    return GroupDecision(
        status, tuple(members), placement=placement, unreserve_outcomes=group_hypothesis.unreserve_outcomes
    )


ScheduleChild = Callable[[GroupAttempt, Snapshot, Placement], MemberSteps[GroupDecision]]
"""A function that schedules a child group on the nodes of the composite pod group's placement."""


def schedule_child_groups(
    attempt: GroupAttempt, snapshot: Snapshot, placement: Placement, schedule_child: ScheduleChild
) -> MemberSteps[GroupDecision]:
    """Schedule the child groups of *attempt* one after another on the nodes of *placement*.

    Members of a child group that can be scheduled are assumed on their nodes for the child groups after it. After an
    error, the decision has no decisions of child groups.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.compositePodGroupSchedulingDefaultAlgorithm,
    Scheduler.podGroupSchedulingRecursiveAlgorithm, Scheduler.assumeSubtreeWithRevert (1.37).
    """
    group_hypothesis = GroupHypothesis(attempt, snapshot)
    progress = PlacementProgress(0, len(attempt.group.children))
    children: dict[GroupKey, GroupDecision] = {}
    unreserve_outcomes: dict[str, UnreserveOutcome] = {}
    status = run_placement_feasible_plugins(attempt, snapshot, progress)
    try:
        for child in attempt.group.children if status.code in {Code.SUCCESS, Code.WAIT} else ():
            decision = yield from schedule_child(
                attempt.select_child(child), group_hypothesis.hypothesis.snapshot(), placement
            )
            unreserve_outcomes |= decision.unreserve_outcomes
            error = (
                decision.status
                if decision.status.code is Code.ERROR
                else _assume_members(attempt, group_hypothesis, decision)
            )
            if error is not None:
                status = error_status(f"composite pod group evaluation failed due to child error: {error.message}")
                break
            children[child.group_key] = decision
            progress = PlacementProgress(progress.scheduled + decision.status.is_success, progress.remaining - 1)
            status = run_placement_feasible_plugins(attempt, snapshot, progress)
            if status.code in {Code.ERROR, Code.UNSCHEDULABLE}:
                break
    finally:
        group_hypothesis.unreserve_all()
    unreserve_outcomes |= group_hypothesis.unreserve_outcomes
    if status.code is Code.ERROR:
        children = {}
    elif status.code is Code.WAIT:
        status = unschedulable_status(POD_GROUP_UNSCHEDULABLE_TEXT, *status.reasons)
    members = tuple(chain.from_iterable(child.members for child in children.values()))
    return GroupDecision(status, members, placement=placement, unreserve_outcomes=unreserve_outcomes, children=children)


def _assume_members(attempt: GroupAttempt, group_hypothesis: GroupHypothesis, decision: GroupDecision) -> Status | None:
    """Assume the scheduled members of a child group on their nodes. Return an error if a Reserve plugin rejects one."""
    for member in decision.scheduled_members:
        if attempt.is_dry_run:
            group_hypothesis.fork()  # the reprieve of victims reads the state of the member
        assumed = group_hypothesis.assume_member(member.pod, member.decision)
        if not assumed.status.is_success:
            return error_status(f"failed to assume the subtree: {assumed.status.message}")
    return None


def run_placement_feasible_plugins(attempt: GroupAttempt, snapshot: Snapshot, progress: PlacementProgress) -> Status:
    """Return SUCCESS if all plugins allow the group, else WAIT, UNSCHEDULABLE or ERROR.

    A plugin that returns UNSCHEDULABLE or fails ends the run.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPlacementFeasiblePlugins (1.37).
    """
    group = snapshot.get_group(attempt.group.group_key)
    if group is None:
        return error_status(f'podgroup.scheduling.k8s.io "{attempt.group.name}" not found')
    runner = attempt.runtime.runner
    start_time = runner.start_timer()
    result = SUCCESS
    for plugin in attempt.profile.placement_feasible_plugins:
        status = _run_plugin(attempt, plugin, group, progress)
        if not status.is_success:
            result = status
        if status.code not in {Code.SUCCESS, Code.WAIT}:
            break
    runner.observe_extension_point(attempt.profile.scheduler_name, "PlacementFeasible", result, start_time)
    return result


def _run_plugin(attempt: GroupAttempt, plugin: PlacementFeasible, group: Group, progress: PlacementProgress) -> Status:
    prefix = "" if attempt.group.is_composite else "failed to evaluate placement feasibility: "
    try:
        status = attempt.runtime.runner.call(plugin, "PlacementFeasible", plugin.placement_feasible, group, progress)
    except PluginError as error:
        return error_status(f"{prefix}running PlacementFeasible plugin: {error.detail}")
    if status is None or status.code in {Code.SUCCESS, Code.WAIT, Code.UNSCHEDULABLE}:
        return SUCCESS if status is None else status.with_plugin(plugin.name)
    if status.code is Code.ERROR:
        return error_status(f"{prefix}running PlacementFeasible plugin: {status.message}")
    return error_status(f"{prefix}unexpected status from PlacementFeasible plugin: {status.code.label}")
