"""One scheduling cycle for the waiting members of a pod group together. Source: A146 to A150, A152.

The members are decided one after another on a hypothesis, where each stands on its node when the next has its turn.
Permit has the last word: as soon as it allows a member the group can be scheduled. All reservations are given back at
the end; the caller assumes, reserves and binds, member by member. Workload-aware preemption is not tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from extender.cluster.hypothesis import Hypothesis
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.committing import permit, reserve, unreserve
from extender.decide.cycle import decide
from extender.decide.decision import Decision, Placed
from extender.decide.engine import Engine
from extender.decide.sampling import Search
from extender.framework.points import Placement, Queued
from extender.framework.profiles import Profile
from extender.framework.verdict import SUCCESS, Code, Status, error, unschedulable

ALL_NODES: Final = Placement()

UNSCHEDULABLE = unschedulable("pod group is unschedulable")
"""What a group is told that cannot be scheduled. Source: A149."""

WAITS = unschedulable("pod group is waiting for preemption to complete")
"""What a group is told that can be scheduled once victims are gone. Source: A149."""


@dataclass(frozen=True, slots=True)
class Member:
    """What became of one member.

    Attributes:
        pod: the member.
        decision: of the scheduling cycle.
        status: SUCCESS: it has a node; else why not.
        node: where it goes, or shall go once victims are gone; empty for nowhere.
        permitted: what Permit said; SUCCESS or WAIT if there is a node.
        preempts: it needs victims gone.
    """

    pod: PodQuery
    decision: Decision
    status: Status
    node: str = ""
    permitted: Status = SUCCESS
    preempts: bool = False


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """What became of a group.

    Attributes:
        status: SUCCESS: its members with nodes can be bound; UNSCHEDULABLE or ERROR: none of them.
        members: in the order of their turns; fewer than the group has if something went wrong.
        waits_for_preemption: it could be scheduled once victims are gone.
        placement: within which it was decided.
    """

    status: Status
    members: tuple[Member, ...] = ()
    waits_for_preemption: bool = False
    placement: Placement = ALL_NODES

    def fate(self, member: Member) -> Status:
        """What *member* is told in the end: SUCCESS to be bound, else why it goes back to the queue. Source: A150."""
        if self.status.code is Code.ERROR:
            return member.status if member.status.code is Code.ERROR else self.status
        if member.status.ok:
            if self.status.ok or self.waits_for_preemption:
                return self.status
            return unschedulable(member.permitted.message)
        if member.preempts and not self.waits_for_preemption:
            return unschedulable(member.permitted.message)
        return member.status


def in_order(members: Sequence[Queued]) -> list[PodQuery]:
    """The members in the order of their turns: by priority, then by the time of their first attempt. Source: A145."""
    return [each.pod for each in sorted(members, key=lambda each: (-each.pod.priority, each.since))]


def mixed_schedulers(pods: Sequence[PodQuery]) -> Status | None:
    """Why *pods* cannot be decided together: they name several schedulers. None if they can. Source: A146."""
    first = pods[0].spec.scheduler_name if pods else ""
    other = next((pod.spec.scheduler_name for pod in pods if pod.spec.scheduler_name != first), None)
    if other is None:
        return None
    said = "all pods in a single pod group should have the same .spec.schedulerName set"
    return error(f'{said}, got: "{other}" and "{first}"')


def decide_group(
    pods: Sequence[PodQuery],
    cluster: Snapshot,
    profile: Profile,
    engine: Engine,
    chance: Random,
    search: Search,
    placement: Placement = ALL_NODES,
) -> GroupDecision:
    """Where the members of a group go, all within *placement*, or why the group goes nowhere.

    Args:
        pods: the members that wait, in the order of their turns.
        cluster: as it is.
        profile: of their scheduler name.
        engine: calls the plugins.
        chance: breaks ties.
        search: where a search that stops early goes on.
        placement: the nodes that may be chosen.
    """
    cycle = _GroupCycle(cluster, profile, engine, chance, search, placement)
    try:
        return cycle.run(pods)
    finally:
        cycle.undo()


class _GroupCycle:
    """One cycle in progress."""

    def __init__(
        self,
        cluster: Snapshot,
        profile: Profile,
        engine: Engine,
        chance: Random,
        search: Search,
        placement: Placement,
    ) -> None:
        self._imagined = Hypothesis(cluster)
        self._profile, self._engine, self._chance, self._search = profile, engine, chance, search
        self._placement = placement
        self._reserved: list[Member] = []

    def run(self, pods: Sequence[PodQuery]) -> GroupDecision:
        """Give every member its turn. Source: A147, A148."""
        members: list[Member] = []
        status, waits, preempts = UNSCHEDULABLE, False, False
        for pod in pods:
            member = self._turn(pod)
            members.append(member)
            if not member.node:
                if member.status.rejected:
                    continue
                wrong = error(f"failed to schedule other pod from a pod group: {member.status.message}")
                return GroupDecision(wrong, tuple(members), placement=self._placement)
            preempts = preempts or member.preempts
            if member.permitted.ok:
                status, waits = (WAITS, True) if preempts else (SUCCESS, False)
        return GroupDecision(status, tuple(members), waits, self._placement)

    def _turn(self, pod: PodQuery) -> Member:
        within = self._placement.nodes
        decision = decide(
            pod, self._imagined.snapshot(), self._profile, self._engine, self._chance, self._search, within=within
        )
        if isinstance(decision, Placed):
            return self._settled(Member(pod, decision, SUCCESS, decision.node), decision.notes)
        if decision.nominated:
            member = Member(pod, decision, decision.status, decision.nominated, preempts=True)
            return self._settled(member, decision.attempt.before.notes)
        return Member(pod, decision, decision.status)

    def _settled(self, member: Member, notes: dict[str, object]) -> Member:
        """*member* on its node with all it needs set aside; or, where that fails, without a node."""
        pod, node = member.pod, member.node
        there = self._imagined.place(pod, node)
        status = reserve(pod, node, self._imagined.snapshot(), self._profile, self._engine, notes)
        if status is None:
            answer = permit(pod, node, self._imagined.snapshot(), self._profile, self._engine, notes)
            permitted = answer.status or SUCCESS
            if permitted.ok or permitted.code is Code.WAIT:
                settled = Member(pod, member.decision, member.status, node, permitted, member.preempts)
                self._reserved.append(settled)
                return settled
            unreserve(pod, node, self._profile, self._engine, notes)
            status = permitted
        self._imagined.remove(there)
        if status.rejected:
            said = f"0/1 nodes are available: 1 {status.message}."
            status = Status(status.code, (said,), status.plugin)
        return Member(pod, member.decision, status)

    def undo(self) -> None:
        """Give all reservations back, last first. Source: A147."""
        for member in reversed(self._reserved):
            decision = member.decision
            notes = decision.notes if isinstance(decision, Placed) else decision.attempt.before.notes
            unreserve(member.pod, member.node, self._profile, self._engine, notes)
