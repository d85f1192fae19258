"""The scheduling loop: one pod after another, from the queue to a decision, an assumption and a binding cycle.

Source: A.2.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from extender.client.extenders import HttpExtender
from extender.decide import committing
from extender.decide.cycle import decide
from extender.decide.decision import Placed, Unplaced
from extender.decide.rechecking import node_now
from extender.framework.changes import Action, Change, Resource
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status
from extender.loop import narrating
from extender.loop.binding import Binding, start, undo
from extender.loop.consulting import Consultation
from extender.loop.desk import Desk, log
from extender.loop.failing import failed, room_freed, still_waits
from extender.loop.grouping import GroupTurns
from extender.loop.preempting import preempt
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.preemption.plan import PreemptionPlan
from extender.queueing.queued import QueuedPod

FLUSH_BACKOFF, FLUSH_PARKED = 1.0, 30.0
"""Seconds between looks at pods that backed off, and at pods that were parked too long. Source: D025, D027."""


class Scheduler:
    """Runs the loop, and hears what the feed tells (it is a `feed.handlers.Listener`)."""

    def __init__(self, desk: Desk) -> None:
        """Take over *desk*; its `wake` must set the event that `wake` gives."""
        self._desk = desk
        self._bindings: dict[str, Binding] = {}
        rules = [profile.groups for profile in desk.profiles.values() if profile.groups is not None]
        self._groups = GroupTurns(desk, self._profile, self._placed) if rules else None
        self._gangs = any(rule.gangs for rule in rules)
        self._parked_flush = desk.clock.monotonic() + FLUSH_PARKED

    # -- the loop

    async def run(self, woken: asyncio.Event, stopping: asyncio.Event) -> None:
        """Schedule until *stopping* is set; *woken* says that there may be something to do."""
        while not stopping.is_set():
            self.tick()
            while not stopping.is_set() and self._desk.leadership.may_act() and await self.turn():
                await asyncio.sleep(0)  # watches, bindings and probes have their turn
            woken.clear()
            try:
                await asyncio.wait_for(woken.wait(), FLUSH_BACKOFF)
            except TimeoutError:
                continue

    def tick(self) -> None:
        """Time has passed: end backoffs, try parked pods again, settle those on Permit."""
        now = self._desk.clock.monotonic()
        self._desk.queue.flush_backoff(now)
        if now >= self._parked_flush:
            self._desk.queue.flush_parked(now)
            self._parked_flush = now + FLUSH_PARKED
        self.settle()

    def settle(self) -> None:
        """Pods on Permit whose fate is sealed go on."""
        for waiting in self._desk.waiting.settled(self._desk.clock.monotonic()):
            job = self._bindings.pop(waiting.pod.uid, None)
            if job is not None:
                job.settled.set()

    async def turn(self) -> bool:
        """Try the next pod; False if none waits. Only a pod that extenders are interested in makes this wait."""
        queued = self._desk.queue.pop()
        if queued is None:
            return False
        narrating.attempting(queued.query.pod)
        if self._groups is not None and queued.query.spec.scheduling_group is not None:
            await self._meanwhile(self._groups.attempt(queued))
            return True
        try:
            extenders = [extender for extender in self._desk.extenders if extender.interested(queued.query.pod)]
            if extenders:
                await self._meanwhile(self._consult(queued, extenders))
            else:
                self._attempt(queued)
        except Exception as wrong:  # noqa: BLE001  logged whole; one pod's fault must not end the loop
            log.exception("attempt to place pod %s broke", queued.key)
            status = Status(Code.ERROR, (f"{type(wrong).__name__}: {wrong}",))
            failed(self._desk, queued, status, status.message, frozenset(), "", self._desk.clock.monotonic())
        return True

    def _attempt(self, queued: QueuedPod) -> None:
        desk, began = self._desk, self._desk.clock.monotonic()
        profile = self._profile(queued)
        if profile is None:
            return
        engine = desk.engines[profile.scheduler_name]
        cluster = desk.state.snapshot()
        decision = decide(queued.query, cluster, profile, engine, desk.chance, desk.search)
        desk.tally.decided(desk.clock.monotonic() - began)
        del cluster  # else what follows would have to copy the tables
        if isinstance(decision, Unplaced):
            self._unplaced(queued, decision, began)
        else:
            self._placed(queued, decision, began, node_now(desk.state, decision.node))

    async def _consult(self, queued: QueuedPod, extenders: Sequence[HttpExtender]) -> None:
        """As `_attempt`, with extenders asked in between."""
        desk, began = self._desk, self._desk.clock.monotonic()
        profile = self._profile(queued)
        if profile is None:
            return
        decision = await Consultation(desk, queued.query, profile, extenders, desk.state.snapshot()).settled()
        desk.tally.decided(desk.clock.monotonic() - began)
        if not still_waits(desk, queued):
            return
        if isinstance(decision, Unplaced):
            self._unplaced(queued, decision, began)
        else:
            self._placed(queued, decision, began)

    async def _meanwhile(self, job: Coroutine[Any, Any, None]) -> None:
        """Carry out *job*; time passes for all others while it waits."""
        task = asyncio.create_task(job)
        try:
            while not (await asyncio.wait({task}, timeout=FLUSH_BACKOFF))[0]:
                self.tick()
        finally:
            task.cancel()
        task.result()

    def _profile(self, queued: QueuedPod) -> Profile | None:
        """The profile to decide by; None if there is nothing to do, and then the pod has left the queue."""
        profile = self._desk.profiles.get(queued.query.spec.scheduler_name)
        if profile is None:
            log.error("profile not found for scheduler name %r", queued.query.spec.scheduler_name)
        elif not self._is_skipped(queued):
            return profile
        self._desk.queue.done(queued.uid)
        return None

    def _is_skipped(self, queued: QueuedPod) -> bool:
        """Whether there is nothing to do for the pod. Source: A011, A012."""
        pod = queued.query.pod
        if pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.key}"
            self._desk.recorder.event(pod, warning=True, reason="FailedScheduling", action="Scheduling", note=note)
            return True
        return queued.uid in self._desk.state.placed

    def _unplaced(self, queued: QueuedPod, decision: Unplaced, began: float) -> None:
        pod = queued.query.pod
        failed(self._desk, queued, decision.status, decision.message, decision.rejectors, decision.nominated, began)
        for detail in decision.details.values():
            if isinstance(detail, PreemptionPlan):
                preempt(self._desk, pod, detail.chosen)

    def _placed(self, queued: QueuedPod, decision: Placed, began: float, node: Node | None = None) -> None:
        """Assume, reserve, ask Permit, and let the binding cycle begin. Source: A022 to A024.

        Args:
            queued: the pod.
            decision: where it goes.
            began: when the attempt began, on the monotonic clock.
            node: as it was decided on; None if it may have changed since.
        """
        desk, query = self._desk, queued.query
        profile = desk.profiles[query.spec.scheduler_name]
        engine = desk.engines[profile.scheduler_name]
        pod = committing.assumed(query.pod, decision.node, profile, decision.notes)
        placed = desk.state.assume(pod, decision.node)
        job = Binding(queued, placed, profile, decision.notes, began, node=node)
        status = committing.reserve(query, decision.node, desk.state.snapshot(), profile, engine, decision.notes)
        if status is not None:
            undo(desk, job, status)
            return
        permitted = committing.permit(query, decision.node, desk.state.snapshot(), profile, engine, decision.notes)
        self._heed(permitted)
        if permitted.timeouts:
            job.permit = desk.waiting.add(query, decision.node, permitted.timeouts, desk.clock.monotonic())
            self._bindings[queued.uid] = job
        elif permitted.status is not None:
            undo(desk, job, permitted.status)
            return
        start(desk, job)

    def _heed(self, permitted: committing.Permitted) -> None:
        """What Permit wants for other pods than the one it was asked about. Source: B131."""
        desk = self._desk
        for plugin, uid in permitted.allows:
            waiting = desk.waiting.get(uid)
            if waiting is not None:
                waiting.allow(plugin)
        if permitted.allows:
            self.settle()
        if permitted.activates:
            cluster = desk.state.snapshot()
            desk.queue.activate(map(cluster.query, permitted.activates), desk.clock.monotonic())

    # -- what the feed tells

    def pod_waits(self, pod: Pod) -> None:
        """A pod appeared that waits for one of our profiles."""
        if pod.status.nominated_node_name:
            self._desk.state.nominate(pod, pod.status.nominated_node_name)
        self._desk.queue.add(self._desk.state.snapshot().query(pod), self._desk.clock.monotonic())
        if self._gangs:  # it may be the one that a gang waited for: B132
            added = Change(Resource.UNSCHEDULED_POD, Action.ADD, None, pod)
            self._desk.queue.happened(added, self._desk.clock.monotonic())
        self._desk.wake()

    def pod_changed(self, old: Pod, new: Pod, changes: list[Change]) -> None:
        """Such a pod changed. Its nomination follows its status if that changed. Source: D047."""
        if old.status.nominated_node_name != new.status.nominated_node_name:
            self._desk.state.nominate(new, new.status.nominated_node_name)
        self._desk.queue.update(self._desk.state.snapshot().query(new), changes, self._desk.clock.monotonic())
        self._desk.wake()

    def pod_left(self, pod: Pod) -> None:
        """Such a pod is gone, or has its node."""
        self._desk.queue.delete(pod.key)

    def assumed_pod_left(self, pod: Pod) -> None:
        """A pod that we placed is being deleted: its binding stops. Source: A124."""
        waiting, placed = self._desk.waiting.get(pod.metadata.uid), self._desk.state.placed.get(pod.metadata.uid)
        if waiting is not None:
            waiting.reject("", "removed")
            self.settle()
        else:
            self._desk.state.forget(pod)
        if placed is not None:
            room_freed(self._desk, placed)

    def happened(self, change: Change, *, priority: int | None = None) -> None:
        """Something happened that may help pods of at most that priority."""
        concerns = None if priority is None else (lambda waiting: waiting.query.priority <= priority)
        self._desk.queue.happened(change, self._desk.clock.monotonic(), concerns)
        self._desk.wake()
