"""Select victims in the whole cluster for a pod group.

Release 1.36 schedules the group again after each attempt to reprieve a victim. Later releases schedule the group once,
with all potential victims removed. Then as many victims as possible are reprieved, while the members stay on the nodes
that were selected.

Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption (1.36).
"""

from collections.abc import Generator, Iterable

from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.decision import ScheduleResult
from extender.cycle.pod_group.hierarchy import has_preemption_policy_never
from extender.cycle.pod_group.post_filter import FailedGroupAttempt
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.observer import ObservedEvent
from extender.framework.pod_group_points import PodGroupPostFilterResult
from extender.framework.status import Code, Status, error_status, unresolvable_status, unschedulable_status
from extender.preemption.assignment_dry_run import Assignment, AssignmentDryRun
from extender.preemption.disruption_budgets import find_violating_units, list_budgets
from extender.preemption.eligibility import PREEMPTION_POLICY_NEVER, is_being_preempted
from extender.preemption.plan import GroupPreemptionPlan
from extender.preemption.preemption_units import (
    MissingNodeError,
    PreemptionUnit,
    get_group_priority,
    get_victim_priority,
    list_units,
    select_potential_victims,
)

_PREFIX = "pod group preemption: "
_NO_VICTIMS = "No preemption victims found for incoming preemptor"
_ONGOING = Status(Code.SUCCESS, (f"{_PREFIX}ongoing preemption on nominated nodes",))


def _find_potential_victims(attempt: FailedGroupAttempt) -> list[PreemptionUnit]:
    units, release = list_units(attempt.snapshot, attempt.profile.release), attempt.profile.release
    return select_potential_victims(units, get_group_priority(attempt.group), release)


def _list_pods(units: Iterable[PreemptionUnit]) -> tuple[AssignedPodInfo, ...]:
    return tuple(pod for unit in units for pod in unit.pods)


def _copy_without_images(snapshot: Snapshot) -> Hypothesis:
    """Return a copy in which ImageLocality gives no scores.

    kube-scheduler copies the copies of its nodes, and the second copy of an image has no number of nodes.

    Source: staging/src/k8s.io/kube-scheduler/framework/types.go, ImageStateSummary.Snapshot (1.37).
    """
    hypothesis = Hypothesis(snapshot)
    hypothesis.forget_images()
    return hypothesis


# -- 1.36


def preempt_for_pod_group(
    attempt: FailedGroupAttempt,
) -> Generator[Snapshot, GroupDecision, GroupPreemptionPlan | Status]:
    """Yield hypothetical snapshots, receive the decision for the group on each, and return the plan or the failure.

    First, all units of lower priority are removed. Then as many units as possible are reprieved, one at a time. Units
    whose eviction violates a disruption budget are tried before the others. In both classes, more important units are
    tried first.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
    """
    snapshot = attempt.snapshot
    if has_preemption_policy_never(attempt.group, attempt.pods, attempt.profile.gates):
        return unschedulable_status(PREEMPTION_POLICY_NEVER)
    potential_victims = _find_potential_victims(attempt)
    if not potential_victims:
        return unresolvable_status(_NO_VICTIMS)
    hypothesis = _copy_without_images(snapshot)
    for unit in potential_victims:
        _remove_unit(hypothesis, unit)
    status = (yield hypothesis.snapshot()).status
    if not status.is_success:
        return status
    budgets = list_budgets(snapshot, attempt.profile.release)
    is_violating = find_violating_units(budgets, [unit.pods for unit in potential_victims])
    evicted_indices: list[int] = []
    for index in sorted(range(len(potential_victims)), key=lambda index: not is_violating[index]):
        for pod in potential_victims[index].pods:
            hypothesis.restore_pod(pod)
        status = (yield hypothesis.snapshot()).status
        if not status.is_success:
            _remove_unit(hypothesis, potential_victims[index])
            evicted_indices.append(index)
    return GroupPreemptionPlan(_list_pods(potential_victims[index] for index in sorted(evicted_indices)))


def _remove_unit(hypothesis: Hypothesis, unit: PreemptionUnit) -> None:
    for pod in unit.pods:
        # kube-scheduler changes only the nodes: a removed member still counts in its group.
        hypothesis.evict_pod(pod, keep_in_group=True)


# -- since 1.37


def preempt_for_failed_group(
    attempt: FailedGroupAttempt,
) -> Generator[Snapshot, GroupDecision, PodGroupPostFilterResult]:
    """Yield a hypothetical snapshot without potential victims, receive the decision for the group, return the result.

    A group whose victims are still terminating keeps its nominations, and preempts no other pods. No group preempts
    while a group that is evicted as a whole has members both on a node and on a node that does not exist.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.Preempt (1.37).
    """
    try:
        potential_victims = _find_potential_victims(attempt)
    except MissingNodeError as error:
        return PodGroupPostFilterResult(error_status(f"{_PREFIX}failed to create domain: {error}"))
    if has_preemption_policy_never(attempt.group, attempt.pods, attempt.profile.gates):
        return PodGroupPostFilterResult(unschedulable_status(f"{_PREFIX}{PREEMPTION_POLICY_NEVER}"))
    if _is_preemption_ongoing(attempt):
        nominations = {pod.uid: pod.pod.status.nominated_node_name for pod in attempt.pods}
        return PodGroupPostFilterResult(_ONGOING, nominated_node_names=nominations)
    runner, start_time = attempt.runtime.runner, attempt.runtime.runner.start_timer()
    result = yield from _evaluate(attempt, potential_victims)
    labels = ("podgroup", result.status.code.label)
    runner.observe_duration(ObservedEvent.PREEMPTION_EVALUATION, labels, start_time)
    return result


def _evaluate(
    attempt: FailedGroupAttempt, units: list[PreemptionUnit]
) -> Generator[Snapshot, GroupDecision, PodGroupPostFilterResult]:
    """Search the victims among *units*; see `preempt_for_failed_group`.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.evaluate (1.37).
    """
    if not units:
        return PodGroupPostFilterResult(unresolvable_status(f"{_PREFIX}{_NO_VICTIMS}"))
    hypothesis = _copy_without_images(attempt.snapshot)
    for pod in _list_pods(units):
        hypothesis.evict_pod(pod)
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
    victims = _list_pods(victim_units)
    message = f"{_PREFIX}found a placement for podgroup, preempting {len(victims)} victims"
    return PodGroupPostFilterResult(
        Status(Code.SUCCESS, (message,)),
        GroupPreemptionPlan(victims, violations, sum(unit.in_group for unit in victim_units)),
        {assignment.pod.uid: assignment.node_name for assignment in assignments},
    )


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
