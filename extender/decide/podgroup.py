"""The waiting members of a pod group decided together, within one set of nodes. Source: A146 to A150.

The members are decided one after another on a hypothesis, where each stands on its node when the next has its turn.
Permit has the last word: as soon as it allows a member the group can be scheduled. All reservations are given back at
the end; the caller assumes, reserves and binds, member by member.

Everything here is done in steps: a generator says whose turn it is and on what cluster, and is told the decision. So
whoever runs it may wait between turns; `groupcycle.decide_group` does not.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from extender.cluster.hypothesis import Hypothesis
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.committing import assumed, permit, reserve, unreserve
from extender.decide.decision import Decision, Placed
from extender.decide.engine import Engine
from extender.framework.group_points import GroupQuery, Placement
from extender.framework.points import Write
from extender.framework.profiles import Profile
from extender.framework.verdict import SUCCESS, Code, Status, error, unschedulable

ALL_NODES: Final = Placement()

_UNSCHEDULABLE: Final = "pod group is unschedulable"

UNSCHEDULABLE: Final = unschedulable(_UNSCHEDULABLE)
"""What a group is told that cannot be scheduled. Source: A149."""

WAITS: Final = unschedulable(_UNSCHEDULABLE, "pod group is waiting for preemption to complete")
"""What a group is told that can be scheduled once victims are gone. Source: A149."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turn:
    """A member that is to be decided now.

    Attributes:
        pod: the member.
        cluster: with the members before it on their nodes; good until the answer is given.
        profile: to decide by.
        placement: the nodes that may be chosen.
    """

    pod: PodQuery
    cluster: Snapshot
    profile: Profile
    placement: Placement


Steps: TypeAlias = Generator[Turn, Decision, T]


@dataclass(frozen=True, slots=True)
class GroupAttempt:
    """A group that is to be decided, and by what.

    Attributes:
        group: its name.
        pods: its members that wait, in the order of their turns.
        profile: of their scheduler name.
        engine: calls the plugins.
        chance: breaks ties.
    """

    group: GroupQuery
    pods: tuple[PodQuery, ...]
    profile: Profile
    engine: Engine
    chance: Random


@dataclass(frozen=True, slots=True)
class Member:
    """What became of one member.

    Attributes:
        pod: the member.
        decision: of the scheduling cycle.
        status: SUCCESS: it has a node; else why not.
        node: where it goes, or shall go once victims are gone; empty for nowhere.
        permitted: what Permit said; SUCCESS or WAIT if there is a node.
        rejectors: the plugins whose events may help, if it has no node.
        nominated: as in `Unplaced`.
    """

    pod: PodQuery
    decision: Decision
    status: Status
    node: str = ""
    permitted: Status = SUCCESS
    rejectors: frozenset[str] = frozenset()
    nominated: str | None = None

    @property
    def preempts(self) -> bool:
        """Whether it has a node once victims are gone."""
        return bool(self.node) and not isinstance(self.decision, Placed)

    @property
    def notes(self) -> dict[str, Any]:
        """Of PreFilter, by plugin."""
        return self.decision.notes if isinstance(self.decision, Placed) else self.decision.attempt.before.notes


@dataclass(frozen=True, slots=True)
class Fate:
    """Why a member goes back to the queue.

    Attributes:
        status: ERROR or a rejection, with the whole message.
        rejectors: the plugins whose events may help; empty after an error, and where the group is at fault.
        nominated: as in `Unplaced`.
    """

    status: Status
    rejectors: frozenset[str] = frozenset()
    nominated: str | None = None


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """What became of a group.

    Attributes:
        status: SUCCESS: its members with nodes can be bound; UNSCHEDULABLE or ERROR: none of them.
        members: in the order of their turns; fewer than the group has if something went wrong.
        waits_for_preemption: it could be scheduled once victims are gone.
        placement: within which it was decided.
        detail: what is to be done to make room for the group as a whole.
        undone: by uid, what plugins want written as a reservation was taken back; it counts for those who go nowhere.
    """

    status: Status
    members: tuple[Member, ...] = ()
    waits_for_preemption: bool = False
    placement: Placement = ALL_NODES
    detail: Any = None
    undone: Mapping[str, Sequence[Write]] = field(default_factory=dict)

    @property
    def feasible(self) -> bool:
        """Whether the group can be scheduled, now or once victims are gone."""
        return self.status.ok or self.waits_for_preemption

    def fate(self, turn: int) -> Fate | None:
        """What the member of that turn is told in the end; None: it is bound to its node. Source: A150."""
        member = self.members[turn] if turn < len(self.members) else None
        if self.status.code is Code.ERROR:
            own = member is not None and member.status.code is Code.ERROR
            return Fate(member.status if member is not None and own else self.status, nominated="")
        if member is None:
            return Fate(self.status)
        if member.node and not self.feasible:
            return Fate(unschedulable(_UNSCHEDULABLE, member.permitted.message), nominated="")
        if not member.status.ok:
            return Fate(member.status, member.rejectors, member.nominated)
        return None if self.status.ok else Fate(self.status, nominated=member.node)


def mixed_schedulers(pods: Sequence[PodQuery]) -> Status | None:
    """Why *pods* cannot be decided together: they name several schedulers. None if they can. Source: A146."""
    first = pods[0].spec.scheduler_name if pods else ""
    other = next((pod.spec.scheduler_name for pod in pods if pod.spec.scheduler_name != first), None)
    if other is None:
        return None
    said = "all pods in a single pod group should have the same .spec.schedulerName set"
    return error(f'{said}, got: "{other}" and "{first}"')


def within(attempt: GroupAttempt, cluster: Snapshot, placement: Placement = ALL_NODES) -> Steps[GroupDecision]:
    """Where the members go, all within *placement*, or why the group goes nowhere. Source: A147, A148."""
    trial = _Trial(attempt, cluster)
    members: list[Member] = []
    status, waits, preempts = UNSCHEDULABLE, False, False
    try:
        for pod in attempt.pods:
            decision = yield Turn(pod, trial.imagined.snapshot(), attempt.profile, placement)
            member = trial.settled(pod, decision)
            members.append(member)
            if not member.node:
                if member.status.rejected:
                    continue
                wrong = error(f"failed to schedule other pod from a pod group: {member.status.message}")
                return GroupDecision(wrong, tuple(members), placement=placement, undone=trial.undone)
            preempts = preempts or member.preempts
            if member.permitted.ok:
                status, waits = (WAITS, True) if preempts else (SUCCESS, False)
    finally:
        trial.undo()
    return GroupDecision(status, tuple(members), waits, placement, undone=trial.undone)


class _Trial:
    """The cluster with the members decided so far on their nodes."""

    def __init__(self, attempt: GroupAttempt, cluster: Snapshot) -> None:
        self.imagined = Hypothesis(cluster)
        self._attempt = attempt
        self._reserved: list[Member] = []
        self.undone: dict[str, tuple[Write, ...]] = {}

    def settled(self, pod: PodQuery, decision: Decision) -> Member:
        """The member on its node with all it needs set aside; or, where that fails, without a node."""
        if isinstance(decision, Placed):
            return self._reserved_for(Member(pod, decision, SUCCESS, decision.node))
        nominated, rejectors = decision.nominated, decision.rejectors
        member = Member(pod, decision, decision.status, nominated or "", rejectors=rejectors, nominated=nominated)
        return self._reserved_for(member) if nominated else member

    def _reserved_for(self, member: Member) -> Member:
        pod, node, notes = member.pod, member.node, member.notes
        profile, engine = self._attempt.profile, self._attempt.engine
        changed = assumed(pod.pod, node, profile, notes)
        there = self.imagined.place(self.imagined.snapshot().query(changed), node)
        status = reserve(pod, node, self.imagined.snapshot(), profile, engine, notes)
        if status is None:
            answer = permit(pod, node, self.imagined.snapshot(), profile, engine, notes)
            permitted = answer.status or SUCCESS
            if permitted.ok or permitted.code is Code.WAIT:
                self.imagined.withdraw(pod)
                kept = replace(member, permitted=permitted)
                self._reserved.append(kept)
                return kept
            self._unreserve(member)
            status = permitted
        self.imagined.remove(there)
        if not status.rejected:
            return Member(pod, member.decision, status, nominated="")
        said = Status(status.code, (f"0/1 nodes are available: 1 {status.message}.",), status.plugin)
        return Member(pod, member.decision, said, rejectors=frozenset(filter(None, (status.plugin,))), nominated="")

    def undo(self) -> None:
        """Give all reservations back, last first. Source: A147."""
        for member in reversed(self._reserved):
            self._unreserve(member)

    def _unreserve(self, member: Member) -> None:
        profile, engine = self._attempt.profile, self._attempt.engine
        self.undone[member.pod.uid] = unreserve(member.pod, member.node, profile, engine, member.notes).writes
