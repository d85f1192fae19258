"""One attempt for a whole pod group: its waiting members leave the queue together, and each is told its fate.

Source: A144 to A154.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing

from extender.carrying import take_back
from extender.cluster.groups import group_key
from extender.cluster.snapshot import Snapshot
from extender.decide.cycle import decide
from extender.decide.decision import Decision, Placed, Unplaced
from extender.decide.groupcycle import attempt_for, group_steps, turn_key
from extender.decide.podgroup import GroupAttempt, GroupDecision, Member, Turn, mixed_schedulers
from extender.framework.group_points import GroupQuery
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status, error
from extender.loop.conditions import group_scheduled, with_condition
from extender.loop.consulting import Consultation
from extender.loop.desk import Desk, log
from extender.loop.failing import failed, still_waits, written
from extender.loop.preempting import preempt, preempt_for_group
from extender.objects.groups import PodGroup
from extender.preemption.plan import GroupPreemptionPlan, PreemptionPlan
from extender.queueing.queued import QueuedPod

_SLICE = 0.05
"""Seconds after which everything else has its turn: making room for a group takes many decisions."""

Check = Callable[[QueuedPod], Profile | None]
"""The profile to decide by; None if there is nothing to do, and then the pod has left the queue."""

Place = Callable[[QueuedPod, Placed, float], None]
"""Assumes the pod on its node and begins to bind it."""


class GroupTurns:
    """Attempts for pod groups."""

    def __init__(self, desk: Desk, check: Check, place: Place) -> None:
        self._desk, self._check, self._place = desk, check, place
        self._durations: dict[str, float] = {}
        self._paused = 0.0

    async def attempt(self, first: QueuedPod) -> None:
        """Try the group of *first*, which has left the queue."""
        queued = self._gathered(first)
        try:
            await self._attempt(queued)
        except Exception as wrong:  # noqa: BLE001  logged whole; one group's fault must not end the loop
            log.exception("attempt to place the pod group of %s broke", first.key)
            status = error(f"{type(wrong).__name__}: {wrong}")
            placed, in_flight = self._desk.state.placed, self._desk.queue.in_flight
            self._all_failed([each for each in queued if each.uid in in_flight and each.uid not in placed], status)

    def _gathered(self, first: QueuedPod) -> list[QueuedPod]:
        """All members that wait and that nothing keeps out of the queue, in the order of their turns. Source: A145."""
        cluster, now = self._desk.state.snapshot(), self._desk.clock.monotonic()
        others = cluster.group(group_key(first.query.pod) or "").waiting.values()
        popped = (self._desk.queue.pop_this(cluster.query(pod), now) for pod in others if pod.key != first.key)
        members = (first, *filter(None, popped))
        return sorted(members, key=lambda each: (*turn_key(each.query.pod, each.first_active or 0.0), each.key))

    def _all_failed(self, queued: Sequence[QueuedPod], status: Status) -> None:
        for each in queued:
            failed(self._desk, each, status, status.message, frozenset(), "", self._desk.clock.monotonic())

    async def _attempt(self, queued: list[QueuedPod]) -> None:
        desk = self._desk
        mixed = mixed_schedulers([each.query for each in queued])
        if mixed is not None:
            self._all_failed(queued, mixed)
            return
        profiles = {each.uid: profile for each in queued if (profile := self._check(each)) is not None}
        queued = [each for each in queued if each.uid in profiles]
        if not queued:
            return
        began = desk.clock.monotonic()
        profile = profiles[queued[0].uid]
        engine = desk.engines[profile.scheduler_name]
        attempt = attempt_for([each.query for each in queued], profile, engine, desk.chance)
        self._durations = {}
        decision = await self._decided(attempt, desk.state.snapshot(), began)
        await self._take_back(queued, decision)
        self._submit(attempt, queued, decision)
        desk.tally.group_attempted(profile.scheduler_name, _result(decision), desk.clock.monotonic() - began)
        await self._tell(attempt.group, decision)

    # -- deciding

    async def _decided(self, attempt: GroupAttempt, cluster: Snapshot, began: float) -> GroupDecision:
        clock = self._desk.clock
        ended = self._paused = began
        with closing(group_steps(attempt, cluster)) as steps:
            try:
                turn = next(steps)
                while True:
                    decision = await self._answered(turn, attempt)
                    if turn.profile is attempt.profile:  # what follows else is to make room
                        ended = clock.monotonic()
                    turn = steps.send(decision)
            except StopIteration as end:
                self._desk.tally.group_decided(ended - began)
                whole: GroupDecision = end.value
                return whole

    async def _answered(self, turn: Turn, attempt: GroupAttempt) -> Decision:
        """The decision about one member; extenders that are interested in it are asked."""
        desk, within = self._desk, turn.placement.nodes
        began = desk.clock.monotonic()
        if began - self._paused > _SLICE:
            await asyncio.sleep(0)
            self._paused = desk.clock.monotonic()
        extenders = [extender for extender in desk.extenders if extender.interested(turn.pod.pod)]
        if extenders:
            decision = await Consultation(desk, turn.pod, turn.profile, extenders, turn.cluster, within).decided()
        else:
            decision = decide(
                turn.pod, turn.cluster, turn.profile, attempt.engine, desk.chance, desk.search, within=within
            )
        self._durations[turn.pod.uid] = desk.clock.monotonic() - began
        desk.tally.decided(self._durations[turn.pod.uid])
        return decision

    # -- what follows

    async def _take_back(self, queued: Sequence[QueuedPod], decision: GroupDecision) -> None:
        """Tell the API server what members that go nowhere give back, before they are tried again. Source: B118."""
        failing = (each.uid for turn, each in enumerate(queued) if decision.fate(turn) is not None)
        writes = [write for uid in failing for write in decision.undone.get(uid, ())]
        if writes and self._desk.leadership.may_act():
            await take_back(self._desk.api, writes, log.warning)

    def _submit(self, attempt: GroupAttempt, queued: Sequence[QueuedPod], decision: GroupDecision) -> None:
        """Victims are evicted, members placed or sent back, and the group's status says which. Source: A150, A151."""
        desk = self._desk
        group = desk.state.snapshot().find(PodGroup, attempt.group.key)
        for member in decision.members:
            _preempt(desk, member)
        if isinstance(decision.detail, GroupPreemptionPlan) and group is not None:
            preempt_for_group(desk, group, [pod.pod for pod in attempt.pods], decision.detail)
        for turn, each in enumerate(queued):
            began = desk.clock.monotonic() - self._durations.get(each.uid, 0.0)
            fate = decision.fate(turn)
            if fate is not None:
                failed(desk, each, fate.status, fate.status.message, fate.rejectors, fate.nominated, began)
            elif still_waits(desk, each):
                self._bound(each, decision.members[turn], began)

    async def _tell(self, named: GroupQuery, decision: GroupDecision) -> None:
        """Write the group's status, before the next attempt goes by it. Source: A151."""
        desk = self._desk
        group = desk.state.snapshot().find(PodGroup, named.key)
        write = None if group is None else group_scheduled(group, decision, desk.clock.now())
        if group is None or write is None or not await written(desk, write):
            return
        if desk.state.snapshot().find(PodGroup, named.key) is group:  # the watch is not that far yet
            desk.state.put_object(with_condition(group, write))

    def _bound(self, queued: QueuedPod, member: Member, began: float) -> None:
        if self._desk.state.snapshot().row(member.node) is None:  # gone while others were decided
            status = error(f'nodeinfo not found for node name "{member.node}"')
            failed(self._desk, queued, status, status.message, frozenset(), "", began)
        elif isinstance(member.decision, Placed):
            self._place(queued, member.decision, began)


def _preempt(desk: Desk, member: Member) -> None:
    """What the member wants evicted for itself goes, whatever becomes of the group. Source: A147."""
    if isinstance(member.decision, Unplaced):
        for detail in member.decision.details.values():
            if isinstance(detail, PreemptionPlan):
                preempt(desk, member.pod.pod, detail.chosen)


def _result(decision: GroupDecision) -> str:
    """As metrics name it. Source: H034."""
    if decision.waits_for_preemption:
        return "waiting_on_preemption"
    if decision.status.ok:
        return "scheduled"
    return "error" if decision.status.code is Code.ERROR else "unschedulable"
