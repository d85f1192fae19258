"""Select victims in the whole cluster for a pod group, as releases since 1.37 do.

The group is scheduled once, with all potential victims removed. Then as many victims as possible are reprieved, while
the members stay on the nodes that were selected.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.Preempt,
PodGroupEvaluator.selectVictimsOnDomain (1.37).
"""

from collections.abc import Generator

from extender.cache.hypothesis import Hypothesis
from extender.cache.snapshot import Snapshot
from extender.cycle.decision import ScheduleResult
from extender.cycle.pod_group.post_filter import FailedGroupAttempt
from extender.cycle.pod_group.validation import has_preemption_policy_never
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.observer import ObservedEvent
from extender.framework.pod_group_points import PodGroupPostFilterResult
from extender.framework.status import Code, Status, unresolvable_status, unschedulable_status
from extender.preemption.assignment_dry_run import Assignment, AssignmentDryRun
from extender.preemption.disruption_budgets import list_budgets
from extender.preemption.eligibility import is_being_preempted
from extender.preemption.plan import GroupPreemptionPlan
from extender.preemption.preemption_units import PreemptionUnit, get_group_priority, get_victim_priority, list_units

_PREFIX = "pod group preemption: "
_PREEMPTION_POLICY_NEVER = unschedulable_status(f"{_PREFIX}not eligible due to preemptionPolicy=Never.")
_NO_VICTIMS = unresolvable_status(f"{_PREFIX}No preemption victims found for incoming preemptor")
_ONGOING = Status(Code.SUCCESS, (f"{_PREFIX}ongoing preemption on nominated nodes",))


def preempt_for_failed_group(
    attempt: FailedGroupAttempt,
) -> Generator[Snapshot, GroupDecision, PodGroupPostFilterResult]:
    """Yield a hypothetical snapshot without potential victims, receive the decision for the group, return the result.

    A group whose victims are still terminating keeps its nominations, and preempts no other pods.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.Preempt (1.37).
    """
    settings = attempt.profile.get_pod_group_settings()
    if has_preemption_policy_never(attempt.group, attempt.pods, settings):
        return PodGroupPostFilterResult(_PREEMPTION_POLICY_NEVER)
    if _is_preemption_ongoing(attempt):
        nominations = {pod.uid: pod.pod.status.nominated_node_name for pod in attempt.pods}
        return PodGroupPostFilterResult(_ONGOING, nominated_node_names=nominations)
    runner, start_time = attempt.runtime.runner, attempt.runtime.runner.start_timer()
    result = yield from _evaluate(attempt)
    labels = ("podgroup", result.status.code.label)
    runner.observe_duration(ObservedEvent.PREEMPTION_EVALUATION, labels, start_time)
    return result


def _evaluate(attempt: FailedGroupAttempt) -> Generator[Snapshot, GroupDecision, PodGroupPostFilterResult]:
    """Search the victims; see `preempt_for_failed_group`.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.evaluate (1.37).
    """
    units = _find_potential_victims(attempt)
    if not units:
        return PodGroupPostFilterResult(_NO_VICTIMS)
    hypothesis = Hypothesis(attempt.snapshot)
    for unit in units:
        for pod in unit.pods:
            hypothesis.remove_pod(pod)
    decision = yield hypothesis.snapshot()
    if not decision.status.is_success:
        return PodGroupPostFilterResult(Status(decision.status.code, (f"{_PREFIX}{decision.status.message}",)))
    assignments = [
        Assignment(member.pod, member.node_name, member.decision.cycle_state, member.decision.skipped_plugins)
        for member in decision.members
        if member.status.is_success and isinstance(member.decision, ScheduleResult)
    ]
    dry_run = AssignmentDryRun(hypothesis.snapshot(), assignments, attempt.profile, attempt.runtime)
    victim_units, violations = dry_run.reprieve_units(units, list_budgets(attempt.snapshot, attempt.profile.release))
    victims = tuple(pod for unit in victim_units for pod in unit.pods)
    message = f"{_PREFIX}found a placement for podgroup, preempting {len(victims)} victims"
    return PodGroupPostFilterResult(
        Status(Code.SUCCESS, (message,)),
        GroupPreemptionPlan(victims, violations, sum(unit.is_group for unit in victim_units)),
        {assignment.pod.uid: assignment.node_name for assignment in assignments},
    )


def _find_potential_victims(attempt: FailedGroupAttempt) -> list[PreemptionUnit]:
    """Return the units of lower priority, the most important first."""
    priority, release = get_group_priority(attempt.group), attempt.profile.release
    units = (unit for unit in list_units(attempt.snapshot, release) if unit.priority < priority)
    return sorted(units, key=lambda unit: unit.get_importance_key(release))


def _is_preemption_ongoing(attempt: FailedGroupAttempt) -> bool:
    """Return whether a pod of lower priority is being preempted on a node that is nominated for a member.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.isOngoingPreemption (1.37).
    """
    snapshot, priority = attempt.snapshot, get_group_priority(attempt.group)
    node_names = {pod.pod.status.nominated_node_name for pod in attempt.pods}
    return any(
        is_being_preempted(pod) and get_victim_priority(pod, snapshot) < priority
        for node_name in node_names
        if node_name and snapshot.row(node_name) is not None
        for pod in snapshot.pods_on(node_name).values()
    )
