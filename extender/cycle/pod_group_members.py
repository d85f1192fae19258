"""Schedule the pending members of a pod group within one set of nodes.

The members are scheduled one after another on a hypothesis in which earlier members are assumed on their nodes. The
group is schedulable once Permit allows a member. All reservations are undone at the end; the caller then assumes,
reserves and binds each member.

`schedule_members` is a generator: it yields a member with a snapshot and receives the decision, so that the caller can
do I/O between members. `pod_group_cycle.schedule_pod_group` is a caller without I/O.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from extender.api.kinds.pod import Pod
from extender.cache.group_hierarchy import GroupKey
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.binding_cycle import (
    UnreserveOutcome,
    make_assumed_pod,
    run_permit_plugins,
    run_reserve_plugins,
    run_unreserve_plugins,
)
from extender.cycle.decision import AttemptFailure, Decision, ScheduleFailure, ScheduleResult
from extender.cycle.diagnosis import format_rejection_of_one_node
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.api_plan import ApiPlan
from extender.framework.pod_group_points import Placement, PodGroupInfo
from extender.framework.profiles import Profile
from extender.framework.status import SUCCESS, Code, Status, error_status, unschedulable_status
from extender.framework.waiting_pods import WaitingPodSignal

ALL_NODES: Final = Placement()

POD_GROUP_UNSCHEDULABLE_TEXT: Final = "pod group is unschedulable"

POD_GROUP_UNSCHEDULABLE: Final = unschedulable_status(POD_GROUP_UNSCHEDULABLE_TEXT)
"""The status of a group that cannot be scheduled.

Source: pkg/scheduler/schedule_one_podgroup.go, errPodGroupUnschedulable (1.36).
"""

WAITING_FOR_PREEMPTION: Final = unschedulable_status(
    POD_GROUP_UNSCHEDULABLE_TEXT, "pod group is waiting for preemption to complete"
)
"""The status of a group that can be scheduled once its preemption victims are deleted.

Source: pkg/scheduler/schedule_one_podgroup.go, errPodGroupUnschedulable (1.36).
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MemberStep:
    """The next member to schedule.

    Attributes:
        pod: the member.
        snapshot: the snapshot with the earlier members on their nodes; valid until the decision is sent.
        profile: the profile with the plugins.
        placement: the nodes that may be selected.
        is_dry_run: whether a PodGroupPostFilter plugin tries the group on another snapshot.
    """

    pod: PodInfo
    snapshot: Snapshot
    profile: Profile
    placement: Placement
    is_dry_run: bool = False


MemberSteps: TypeAlias = Generator[MemberStep, Decision, T]
"""A generator that yields members to schedule, receives their decisions, and returns a result."""


@dataclass(frozen=True, slots=True)
class GroupAttempt:
    """The inputs of the scheduling cycle of a pod group.

    Attributes:
        group: the pod group, or a composite pod group with its child groups.
        pods: the pending members in scheduling order.
        profile: the profile of the members' scheduler name.
        runtime: the runtime that calls the plugins.
        rng: the random generator that breaks ties.
        is_dry_run: whether a PodGroupPostFilter plugin tries the group on another snapshot.
    """

    group: PodGroupInfo
    pods: tuple[PodInfo, ...]
    profile: Profile
    runtime: PluginRuntime
    rng: Random
    is_dry_run: bool = False

    def select_child(self, child: PodGroupInfo) -> "GroupAttempt":
        """Return the attempt for *child*, with its members."""
        if child is self.group:
            return self
        keys = {group.key for group in child.iterate_pod_groups()}
        return replace(self, group=child, pods=tuple(pod for pod in self.pods if get_pod_group_key(pod.pod) in keys))

    def make_step(self, pod: PodInfo, snapshot: Snapshot, placement: Placement) -> MemberStep:
        """Return the step that schedules *pod* on *snapshot*."""
        return MemberStep(pod, snapshot, self.profile, placement, self.is_dry_run)


@dataclass(frozen=True, slots=True)
class MemberResult:
    """The result of one member.

    Attributes:
        pod: the member.
        decision: the decision of its scheduling cycle.
        status: SUCCESS if the member can be bound to its node now, else the failure.
        node_name: the selected node, or the node nominated by preemption; empty if there is none.
        permit_status: the status of Permit: SUCCESS or WAIT. It has no meaning for a member without a node.
        rejectors: the plugins whose events may make the member schedulable. Empty for a member that can be bound.
        nominated_node: as in `ScheduleFailure`.
    """

    pod: PodInfo
    decision: Decision
    status: Status
    node_name: str = ""
    permit_status: Status = SUCCESS
    rejectors: frozenset[str] = frozenset()
    nominated_node: str | None = None

    @property
    def waits_for_victims(self) -> bool:
        """Whether the member has a node that fits only once preemption victims are deleted."""
        return bool(self.node_name) and not isinstance(self.decision, ScheduleResult)

    @property
    def cycle_state(self) -> dict[str, Any]:
        """The PreFilter state by plugin."""
        return (
            self.decision.cycle_state
            if isinstance(self.decision, ScheduleResult)
            else self.decision.diagnosis.pre_filter_run.cycle_state
        )


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The outcome of a pod group's scheduling cycle.

    Attributes:
        status: SUCCESS if the members with nodes can be bound; UNSCHEDULABLE or ERROR if no member can.
        members: the results of the members in scheduling order. After an error, the remaining members have no result.
            For a composite pod group, the results of all pod groups that were tried.
        waits_for_preemption: whether the group can be scheduled once preemption victims are deleted.
        placement: the nodes to which the members were restricted.
        preemption_plan: the plan to preempt for the whole group; None if there is none.
        unreserve_outcomes: the outcome of Unreserve by pod uid. The caller makes the API calls, and rejects and
            activates pods, for each member that is not bound.
        api_plans: the plans of PodGroupPostFilter plugins with calls to the API server.
        member_failures: the failure of each member; None for a member that can be bound. If the tuple is empty, the
            failures follow from the other fields, as in 1.36.
        children: the decisions of the child groups that were tried; none after an error.
        pod_group_statuses: by key (`namespace/name`), the status of each pod group below a composite pod group.
        queue_status: the status by which the group is queued again; None if it is `status`. An error of a
            PodGroupPostFilter plugin does not count in the queue.
    """

    status: Status
    members: tuple[MemberResult, ...] = ()
    waits_for_preemption: bool = False
    placement: Placement = ALL_NODES
    preemption_plan: Any = None
    unreserve_outcomes: Mapping[str, UnreserveOutcome] = field(default_factory=dict)
    api_plans: tuple[ApiPlan, ...] = ()
    member_failures: tuple[AttemptFailure | None, ...] = ()
    children: "Mapping[GroupKey, GroupDecision]" = field(default_factory=dict)
    pod_group_statuses: Mapping[str, Status] = field(default_factory=dict)
    queue_status: Status | None = None

    @property
    def scheduled_members(self) -> "tuple[MemberResult, ...]":
        """The members with nodes that can be bound if all groups above this one can be scheduled too.

        Source: pkg/scheduler/schedule_one_podgroup.go, successfulLeafResults (1.37).
        """
        if not self.status.is_success:
            return ()
        if self.children:
            return tuple(member for child in self.children.values() for member in child.scheduled_members)
        return tuple(member for member in self.members if member.status.is_success)

    @property
    def is_feasible(self) -> bool:
        """Whether the group can be scheduled, now or once preemption victims are deleted."""
        return self.status.is_success or self.waits_for_preemption

    def find_member(self, pod: Pod) -> MemberResult | None:
        """Return the result of the member *pod*; None if it was not tried."""
        return next((member for member in self.members if member.pod.key == pod.key), None)

    def get_member_failure(self, index: int) -> AttemptFailure | None:
        """Return the failure of the member at *index*; None if the member can be bound.

        Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.submitPodGroupAlgorithmResult (1.36).
        """
        if self.member_failures:
            return self.member_failures[index]
        member = self.members[index] if index < len(self.members) else None
        if self.status.code is Code.ERROR:
            has_own_error = member is not None and member.status.code is Code.ERROR
            return AttemptFailure(member.status if member is not None and has_own_error else self.status)
        if member is None:
            return AttemptFailure(self.status, nominated_node=None)
        if member.node_name and not self.is_feasible:
            return AttemptFailure(unschedulable_status(POD_GROUP_UNSCHEDULABLE_TEXT, member.permit_status.message))
        if not member.status.is_success:
            return AttemptFailure(member.status, member.rejectors, member.nominated_node)
        return None if self.status.is_success else AttemptFailure(self.status, nominated_node=member.node_name)

    def list_unreserve_outcomes(self, uids: Sequence[str]) -> list[UnreserveOutcome]:
        """Return the outcomes of Unreserve that take effect: those of members that are not bound.

        *uids* are those of the members, in the order of `get_member_failure`.
        """
        unbound_uids = (uid for index, uid in enumerate(uids) if self.get_member_failure(index) is not None)
        return [self.unreserve_outcomes[uid] for uid in unbound_uids if uid in self.unreserve_outcomes]

    def list_rejections(self, uids: Sequence[str]) -> list[WaitingPodSignal]:
        """Return the waiting pods that PostFilter or the Unreserve of an unbound member rejects; *uids* as above."""
        failures = (member.decision for member in self.members if isinstance(member.decision, ScheduleFailure))
        rejections = chain.from_iterable(failure.rejections for failure in failures)
        outcomes = self.list_unreserve_outcomes(uids)
        return [*rejections, *chain.from_iterable(outcome.rejections for outcome in outcomes)]


def check_scheduler_names(pods: Sequence[PodInfo]) -> Status | None:
    """Return an error if *pods* name more than one scheduler, else None.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.frameworkForPodGroup (1.36).
    """
    first_name = pods[0].spec.scheduler_name if pods else ""
    other_name = next((pod.spec.scheduler_name for pod in pods if pod.spec.scheduler_name != first_name), None)
    if other_name is None:
        return None
    message = "all pods in a single pod group should have the same .spec.schedulerName set"
    return error_status(f'{message}, got: "{other_name}" and "{first_name}"')


def schedule_members(
    attempt: GroupAttempt, snapshot: Snapshot, placement: Placement = ALL_NODES
) -> MemberSteps[GroupDecision]:
    """Schedule the members on the nodes of *placement*.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
    """
    group_hypothesis = GroupHypothesis(attempt, snapshot)
    members: list[MemberResult] = []
    status, waits_for_preemption, needs_preemption = POD_GROUP_UNSCHEDULABLE, False, False
    try:
        for pod in attempt.pods:
            decision = yield attempt.make_step(pod, group_hypothesis.hypothesis.snapshot(), placement)
            member = group_hypothesis.assume_member(pod, decision)
            members.append(member)
            if not member.node_name:
                if member.status.is_rejected:
                    continue
                failure = error_status(f"failed to schedule other pod from a pod group: {member.status.message}")
                return GroupDecision(
                    failure, tuple(members), placement=placement, unreserve_outcomes=group_hypothesis.unreserve_outcomes
                )
            needs_preemption = needs_preemption or member.waits_for_victims
            if member.permit_status.is_success:
                status, waits_for_preemption = (WAITING_FOR_PREEMPTION, True) if needs_preemption else (SUCCESS, False)
    finally:
        group_hypothesis.unreserve_all()
    return GroupDecision(
        status, tuple(members), waits_for_preemption, placement, unreserve_outcomes=group_hypothesis.unreserve_outcomes
    )


class GroupHypothesis:
    """A hypothesis in which the scheduled members are assumed on their nodes.

    Attributes:
        unreserve_outcomes: as in `GroupDecision`.
    """

    def __init__(self, attempt: GroupAttempt, snapshot: Snapshot) -> None:
        self.hypothesis = Hypothesis(snapshot, shares_results=True)
        self.hypothesis.begin_pod_group_cycle()
        self._attempt = attempt
        self._reserved_members: list[MemberResult] = []
        self.unreserve_outcomes: dict[str, UnreserveOutcome] = {}

    def fork(self) -> None:
        """Continue on a copy: the last snapshot, and states that share its arrays, stay valid."""
        self.hypothesis = Hypothesis(self.hypothesis.snapshot())

    def assume_member(self, pod: PodInfo, decision: Decision) -> MemberResult:
        """Assume the member on its node and run Reserve, and Permit in 1.36. After a failure the result has no node."""
        if isinstance(decision, ScheduleResult):
            return self._reserve(MemberResult(pod, decision, SUCCESS, decision.suggested_host))
        nominated_node = decision.nominated_node
        has_pod_group_post_filter = self._attempt.profile.release.has_pod_group_post_filter
        if has_pod_group_post_filter and decision.status.code is Code.UNSCHEDULABLE:
            nominated_node = None  # only PodGroupPostFilter changes it
        member = MemberResult(
            pod,
            decision,
            decision.status,
            nominated_node or "",
            rejectors=decision.rejectors,
            nominated_node=nominated_node,
        )
        return self._reserve(member) if nominated_node else member

    def _reserve(self, member: MemberResult) -> MemberResult:
        pod, node_name, cycle_state = member.pod, member.node_name, member.cycle_state
        profile, runtime = self._attempt.profile, self._attempt.runtime
        assumed_pod = make_assumed_pod(pod.pod, node_name, profile, cycle_state)
        assumed_pod_info = self.hypothesis.assume_pod(self.hypothesis.snapshot().make_pod_info(assumed_pod), node_name)
        status = run_reserve_plugins(pod, node_name, self.hypothesis.snapshot(), profile, runtime, cycle_state)
        if status is None:
            permit_status = SUCCESS
            if not profile.release.uses_placement_feasible:
                outcome = run_permit_plugins(pod, node_name, self.hypothesis.snapshot(), profile, runtime, cycle_state)
                permit_status = outcome.status or SUCCESS
            if permit_status.is_success or permit_status.code is Code.WAIT:
                self.hypothesis.remove_nomination(pod)
                reserved_member = replace(member, permit_status=permit_status)
                self._reserved_members.append(reserved_member)
                return reserved_member
            status = permit_status
        self._unreserve(member)
        self.hypothesis.remove_pod(assumed_pod_info)
        if not status.is_rejected:
            return MemberResult(pod, member.decision, status, nominated_node="")
        rejection = Status(status.code, (format_rejection_of_one_node(status),), status.plugin)
        rejectors = frozenset(filter(None, (status.plugin,)))
        return MemberResult(pod, member.decision, rejection, rejectors=rejectors, nominated_node="")

    def unreserve_all(self) -> None:
        """Run Unreserve for all reserved members in reverse order.

        Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
        """
        for member in reversed(self._reserved_members):
            self._unreserve(member)

    def _unreserve(self, member: MemberResult) -> None:
        profile, runtime = self._attempt.profile, self._attempt.runtime
        outcome = run_unreserve_plugins(member.pod, member.node_name, profile, runtime, member.cycle_state)
        self.unreserve_outcomes[member.pod.uid] = outcome
