"""Run the PodGroupPostFilter plugins for a pod group that cannot be scheduled, and report the result to its members.

Source: pkg/scheduler/schedule_one_podgroup.go, completeCompositePodGroupAlgorithmResultMap (1.37).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from extender.cache.group_hierarchy import Group, GroupKey
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.decision import AttemptFailure
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group_members import (
    POD_GROUP_UNSCHEDULABLE_TEXT,
    GroupAttempt,
    GroupDecision,
    MemberResult,
    MemberSteps,
)
from extender.framework.api_plan import ApiPlan
from extender.framework.plugin_runner import PluginError
from extender.framework.pod_group_points import (
    DryRunGenerator,
    PodGroupInfo,
    PodGroupPostFilter,
    PodGroupPostFilterResult,
)
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status, error_status, unschedulable_status


@dataclass(frozen=True, slots=True)
class FailedGroupAttempt:
    """A cycle that could not schedule a pod group, with the inputs of dry runs by PodGroupPostFilter plugins.

    Attributes:
        group: the pod group or composite pod group.
        pods: the pending members in scheduling order.
        snapshot: the cluster.
        profile: the profile with the plugins.
        runtime: the runtime that calls the plugins.
        members: the results of the members that were tried.
    """

    group: Group
    pods: tuple[PodInfo, ...]
    snapshot: Snapshot
    profile: Profile
    runtime: PluginRuntime
    members: tuple[MemberResult, ...] = ()


@dataclass(frozen=True, slots=True)
class PodGroupPostFilterRun:
    """The outcome of all PodGroupPostFilter plugins.

    Attributes:
        status: SUCCESS if a plugin can make the group schedulable, else a rejection or an error.
        results: the results of the plugins that ran, in order.
    """

    status: Status
    results: tuple[PodGroupPostFilterResult, ...] = ()

    @property
    def plans(self) -> list[Any]:
        """The plans of the plugins, in order."""
        return [result.plan for result in self.results if result.plan is not None]

    @property
    def nominated_node_names(self) -> Mapping[str, str]:
        """The node to nominate for each member, by uid; empty if no plugin succeeded."""
        return self.results[-1].nominated_node_names if self.status.is_success else {}


ScheduleGroup = Callable[[Snapshot], MemberSteps[GroupDecision]]
"""A function that schedules the pod group on a hypothetical snapshot."""


def run_pod_group_post_filter_plugins(
    attempt: FailedGroupAttempt, schedule_group: ScheduleGroup
) -> MemberSteps[PodGroupPostFilterRun]:
    """Run the plugins in order. A success, an error or the code UNRESOLVABLE ends the run.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPodGroupPostFilterPlugins (1.37).
    """
    runner = attempt.runtime.runner
    start_time = runner.start_timer()
    results: list[PodGroupPostFilterResult] = []
    status: Status | None = None
    for plugin in attempt.profile.pod_group_post_filter_plugins:
        result = yield from run_pod_group_post_filter(plugin, attempt, schedule_group)
        results.append(result)
        if result.status.code is not Code.UNSCHEDULABLE:
            status = result.status
            break
    if status is None:
        status = unschedulable_status(*(reason for result in results for reason in result.status.reasons))
    elif not status.is_success and not status.is_rejected:
        status = error_status(f'error in "{status.plugin}" PodGroupPostFilter plugins: {status.message}')
    runner.observe_extension_point(attempt.profile.scheduler_name, "PodGroupPostFilter", status, start_time)
    return PodGroupPostFilterRun(status, tuple(results))


def run_pod_group_post_filter(
    plugin: PodGroupPostFilter[FailedGroupAttempt], attempt: FailedGroupAttempt, schedule_group: ScheduleGroup
) -> MemberSteps[PodGroupPostFilterResult]:
    """Run one plugin. If it raises, return an ERROR result."""
    try:
        generator = plugin.pod_group_post_filter(attempt)
        snapshot_or_result = _advance_generator(attempt, plugin, generator, None)
        while isinstance(snapshot_or_result, Snapshot):
            decision = yield from schedule_group(snapshot_or_result)
            snapshot_or_result = _advance_generator(attempt, plugin, generator, decision)
    except PluginError as exception:
        return PodGroupPostFilterResult(exception.status.with_plugin(plugin.name))
    return replace(snapshot_or_result, status=snapshot_or_result.status.with_plugin(plugin.name))


def _advance_generator(
    attempt: FailedGroupAttempt,
    plugin: PodGroupPostFilter[FailedGroupAttempt],
    generator: DryRunGenerator,
    decision: GroupDecision | None,
) -> Snapshot | PodGroupPostFilterResult:
    """Return the next snapshot to schedule the group on, or the plugin's result.

    Raises:
        PluginError: the plugin raised.
    """

    def advance() -> Snapshot | PodGroupPostFilterResult:
        try:
            return next(generator) if decision is None else generator.send(decision)
        except StopIteration as stop:
            result: PodGroupPostFilterResult = stop.value
            return result

    return attempt.runtime.runner.call(plugin, "PodGroupPostFilter", advance)


@dataclass(frozen=True, slots=True)
class CompletedDecision:
    """The decision for one group of a tree.

    Attributes:
        decision: its decision. A group that was not tried, or that could be scheduled if the group above could, has the
            status of the group above and no results of members.
        status_owner: the group whose status it is. kube-scheduler appends the messages of PodGroupPostFilter plugins
            once for each group with the same status.
    """

    group: PodGroupInfo
    decision: GroupDecision
    status_owner: GroupKey


def complete_group_decisions(group: PodGroupInfo, decision: GroupDecision) -> list[CompletedDecision]:
    """Return the decisions of all groups of the tree *group*, of which *decision* is the outcome.

    Each group is before its child groups.
    """
    completed: list[CompletedDecision] = []
    unvisited = [CompletedDecision(group, decision, group.group_key)]
    while unvisited:
        parent = unvisited.pop()
        completed.append(parent)
        unvisited.extend(_complete_child(child, parent) for child in reversed(parent.group.children))
    return completed


def _complete_child(child: PodGroupInfo, parent: CompletedDecision) -> CompletedDecision:
    decision = parent.decision.children.get(child.group_key)
    if decision is None or (decision.status.is_success and not parent.decision.status.is_success):
        inherited = GroupDecision(parent.decision.status, children={} if decision is None else decision.children)
        return CompletedDecision(child, inherited, parent.status_owner)
    return CompletedDecision(child, decision, child.group_key)


def apply_post_filter_run(
    attempt: GroupAttempt, decision: GroupDecision, post_filter_run: PodGroupPostFilterRun | None
) -> GroupDecision:
    """Return *decision* with the outcome of the PodGroupPostFilter plugins and the failure of each member.

    A member that was not tried fails with the status of the group before PodGroupPostFilter. *post_filter_run* is None
    if the plugins did not run.

    Source: pkg/scheduler/schedule_one_podgroup.go, completePodGroupAlgorithmResult, applyPodGroupPostFilterResult,
    Scheduler.submitPodGroupAlgorithmResult (1.37).
    """
    outcomes = complete_group_decisions(attempt.group, decision)
    reason_counts = Counter(outcome.status_owner for outcome in outcomes)
    failures: dict[str, AttemptFailure | None] = {}
    final_decisions: dict[GroupKey, GroupDecision] = {}
    for outcome in outcomes:
        final = _apply_to_group(outcome.decision, post_filter_run, reason_counts[outcome.status_owner])
        final_decisions[outcome.group.group_key] = final
        if outcome.group.is_composite:
            continue
        for index, pod in enumerate(attempt.select_child(outcome.group).pods):
            member = final.members[index] if index < len(final.members) else None
            failures[pod.uid] = _find_member_failure(final, member, outcome.decision.status)
    for uid, node_name in ({} if post_filter_run is None else post_filter_run.nominated_node_names).items():
        failure = failures.get(uid)
        if failure is not None:
            failures[uid] = replace(failure, nominated_node=node_name)
    root = final_decisions[attempt.group.group_key]
    pod_groups = attempt.group.iterate_pod_groups() if attempt.group.is_composite else ()
    return replace(
        root,
        members=decision.members,
        children=decision.children,
        member_failures=tuple(failures[pod.uid] for pod in attempt.pods),
        pod_group_statuses={group.key: final_decisions[group.group_key].status for group in pod_groups},
    )


def _apply_to_group(
    decision: GroupDecision, post_filter_run: PodGroupPostFilterRun | None, reason_count: int
) -> GroupDecision:
    """Return *decision* with the outcome of the plugins, whose message is appended *reason_count* times."""
    if post_filter_run is None:
        return decision
    status = post_filter_run.status
    reasons = (*decision.status.reasons, *(status.message,) * reason_count)
    return replace(
        decision,
        status=status if status.code is Code.ERROR else replace(decision.status, reasons=reasons),
        queue_status=decision.status if status.code is Code.ERROR else None,
        waits_for_preemption=status.is_success,
        preemption_plan=next((plan for plan in post_filter_run.plans if not isinstance(plan, ApiPlan)), None),
        api_plans=tuple(plan for plan in post_filter_run.plans if isinstance(plan, ApiPlan)),
    )


def _find_member_failure(
    decision: GroupDecision, member: MemberResult | None, untried_status: Status
) -> AttemptFailure | None:
    status = decision.status
    if status.code is Code.ERROR:
        has_own_error = member is not None and member.status.code is Code.ERROR
        return AttemptFailure(member.status if member is not None and has_own_error else status)
    if member is None:
        return AttemptFailure(untried_status, nominated_node=None)
    if not member.status.is_success:
        return AttemptFailure(member.status, member.rejectors, member.nominated_node)
    if status.is_success:
        return None
    if decision.waits_for_preemption:
        return AttemptFailure(status, nominated_node=None)
    return AttemptFailure(unschedulable_status(POD_GROUP_UNSCHEDULABLE_TEXT, status.message))
