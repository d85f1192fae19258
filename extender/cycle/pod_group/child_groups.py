"""Schedule the child groups of a composite pod group one after another, until it cannot be scheduled any more.

Members of a child group that can be scheduled are assumed on their nodes for the child groups after it.

Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.compositePodGroupSchedulingDefaultAlgorithm,
Scheduler.podGroupSchedulingRecursiveAlgorithm, Scheduler.assumeSubtreeWithRevert (1.37).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

from extender.cache.group_hierarchy import GroupKey
from extender.cache.snapshot import Snapshot
from extender.cycle.pod_group.placement_feasible import run_placement_feasible_plugins
from extender.cycle.pod_group_members import (
    POD_GROUP_UNSCHEDULABLE_TEXT,
    GroupAttempt,
    GroupDecision,
    GroupHypothesis,
    MemberSteps,
)
from extender.framework.api_plan import ApiCall
from extender.framework.pod_group_points import Placement, PlacementProgress
from extender.framework.status import Code, Status, error_status, unschedulable_status

ScheduleChild = Callable[[GroupAttempt, Snapshot, Placement], MemberSteps[GroupDecision]]
"""A function that schedules a child group on the nodes of the composite pod group's placement."""


@dataclass(slots=True)
class _Progress:
    """The decisions of the child groups so far, and the API calls of Unreserve by pod uid."""

    children: dict[GroupKey, GroupDecision] = field(default_factory=dict)
    unreserve_calls: dict[str, tuple[ApiCall, ...]] = field(default_factory=dict)

    def make_decision(self, status: Status, placement: Placement) -> GroupDecision:
        """Return the decision with *status*. After an error it has no decisions of child groups."""
        children = {} if status.code is Code.ERROR else self.children
        members = tuple(chain.from_iterable(child.members for child in children.values()))
        return GroupDecision(
            status, members, placement=placement, unreserve_calls=self.unreserve_calls, children=children
        )


def schedule_child_groups(
    attempt: GroupAttempt, snapshot: Snapshot, placement: Placement, schedule_child: ScheduleChild
) -> MemberSteps[GroupDecision]:
    """Schedule the child groups of *attempt* on the nodes of *placement*.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.compositePodGroupSchedulingDefaultAlgorithm (1.37).
    """
    group_hypothesis, result = GroupHypothesis(attempt, snapshot), _Progress()
    progress = PlacementProgress(0, len(attempt.group.children))
    status = run_placement_feasible_plugins(attempt, snapshot, progress)
    try:
        for child in attempt.group.children if status.code in {Code.SUCCESS, Code.WAIT} else ():
            decision = yield from schedule_child(
                attempt.select_child(child), group_hypothesis.hypothesis.snapshot(), placement
            )
            result.unreserve_calls |= {uid: tuple(calls) for uid, calls in decision.unreserve_calls.items()}
            error = (
                decision.status
                if decision.status.code is Code.ERROR
                else _assume_members(attempt, group_hypothesis, decision)
            )
            if error is not None:
                message = f"composite pod group evaluation failed due to child error: {error.message}"
                return result.make_decision(error_status(message), placement)
            result.children[child.group_key] = decision
            progress = PlacementProgress(progress.scheduled + decision.status.is_success, progress.remaining - 1)
            status = run_placement_feasible_plugins(attempt, snapshot, progress)
            if status.code in {Code.ERROR, Code.UNSCHEDULABLE}:
                break
    finally:
        group_hypothesis.unreserve_all()
        result.unreserve_calls |= group_hypothesis.unreserve_calls
    if status.code is Code.WAIT:
        status = unschedulable_status(POD_GROUP_UNSCHEDULABLE_TEXT, *status.reasons)
    return result.make_decision(status, placement)


def _assume_members(attempt: GroupAttempt, group_hypothesis: GroupHypothesis, decision: GroupDecision) -> Status | None:
    """Assume the scheduled members of a child group on their nodes. Return an error if a Reserve plugin rejects one."""
    for member in decision.scheduled_members:
        if attempt.is_dry_run:
            group_hypothesis.fork()  # the reprieve of victims reads the state of the member
        assumed = group_hypothesis.assume_member(member.pod, member.decision)
        if not assumed.status.is_success:
            return error_status(f"failed to assume the subtree: {assumed.status.message}")
    return None
