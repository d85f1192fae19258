"""The binding cycle of one pod: wait for Permit, prepare, bind, tell; or undo everything. Source: A.3."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from extender.client.errors import ApiError, UnreachableError
from extender.client.extender_calls import ExtenderError
from extender.cluster.pods import PlacedPod
from extender.decide import committing
from extender.framework.changes import Action, Change, Resource
from extender.framework.points import Plan, PreBind, Write
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status
from extender.framework.waiting import WaitingPod
from extender.loop.conditions import nominated_only
from extender.loop.desk import Desk, log
from extender.loop.failing import failed, in_background, room_freed, written
from extender.loop.negotiating import skipped
from extender.queueing.queued import QueuedPod

_UNCLEAR = 60.0
"""Seconds after which a binding that nobody has seen is taken for lost; the API server gives up on calls sooner."""


class RejectedError(Exception):
    """The binding ends here; carries the status that says why."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


@dataclass(slots=True)
class Binding:
    """One pod on its way to a node.

    Attributes:
        queued: the pod, in flight.
        placed: as it stands in the tables.
        notes: of PreFilter, by plugin.
        began: when the attempt began, on the monotonic clock.
        permit: where it waits on Permit, if it does.
        called_off: why it must not go on; empty while it may.
    """

    queued: QueuedPod
    placed: PlacedPod
    profile: Profile
    notes: dict[str, Any]
    began: float
    permit: WaitingPod | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    called_off: str = ""

    def call_off(self, why: str) -> None:
        """Another pod needs the room; heeded at the next step, up to the bind itself. Source: A031, A033."""
        self.called_off = self.called_off or why


async def bind(desk: Desk, job: Binding) -> None:
    """Carry *job* through. Every failure ends in the failure handler; nothing is raised."""
    uid = job.queued.uid
    try:
        await _bound(desk, job)
    except RejectedError as ended:
        undo(desk, job, ended.status)
    except ApiError as wrong:
        undo(desk, job, Status(Code.ERROR, (f'running Bind plugin "DefaultBinder": {wrong}',)))
    except Exception as wrong:  # noqa: BLE001  logged whole; the pod must come back to the queue whatever broke
        log.exception("binding of pod %s to node %s broke", job.placed.key, job.placed.node_name)
        undo(desk, job, Status(Code.ERROR, (f"{type(wrong).__name__}: {wrong}",)))
    finally:
        desk.binding.pop(uid, None)


async def _bound(desk: Desk, job: Binding) -> None:
    pod, node = job.queued.query, job.placed.node_name
    engine = desk.engines[job.profile.scheduler_name]
    prepared = committing.prepare(pod, node, job.profile, engine, job.notes)
    if prepared.status is not None and prepared.status.code is not Code.SKIP:
        raise RejectedError(prepared.status)
    if desk.nominates_in_advance and (prepared.status is None or job.permit is not None):
        write = nominated_only(pod.pod, node)
        if write is not None:
            await written(desk, write, pod.pod)
    await _allowed(desk, job)
    desk.queue.done(job.queued.uid)  # from here on events are of no use to it: A030
    if prepared.status is None:
        desk.binding[job.queued.uid] = job.call_off
        for group in prepared.groups:
            await asyncio.gather(*(_prepared(desk, job, plugin) for plugin in group))
    desk.binding.pop(job.queued.uid, None)
    _goes_on(desk, job)
    if not await _bound_by_extender(desk, job):
        plan = committing.bind(pod, node, job.profile, engine)
        if isinstance(plan, Status):
            raise RejectedError(plan)
        for write in plan.writes:
            await _sent(desk, job, write)
    _done(desk, job)


async def _sent(desk: Desk, job: Binding, write: Write) -> None:
    """Make the call that binds. If its outcome is unknown the pod keeps its place until it has been seen. Source: A042.

    Raises:
        ApiError: it did not succeed, or was not seen to within `_UNCLEAR` seconds.
    """
    try:
        await desk.api.carry_out(write)
    except UnreachableError as wrong:
        end = desk.clock.monotonic() + _UNCLEAR
        while wrong.sent and desk.clock.monotonic() < end:
            there = desk.state.placed.get(job.queued.uid)
            if there is None or not there.assumed:
                break
            await desk.sleep(1.0)
        there = desk.state.placed.get(job.queued.uid)
        if there is None or there.assumed or there.node_name != job.placed.node_name:
            raise


async def _bound_by_extender(desk: Desk, job: Binding) -> bool:
    """Have the first extender bind that can and is interested; False if none did. Source: F041, F042."""
    pod = job.queued.query.pod
    for extender in desk.extenders:
        if not extender.config.bind_verb or not extender.interested(pod):
            continue
        try:
            await extender.bind(pod, job.placed.node_name)
        except ExtenderError as wrong:
            there = desk.state.placed.get(job.queued.uid)
            if there is not None and not there.assumed and there.node_name == job.placed.node_name:
                return True  # its answer was lost, what it did was not: F043
            if not skipped(extender, wrong):
                raise RejectedError(Status(Code.ERROR, (str(wrong),))) from wrong
            _goes_on(desk, job)  # that took its time
        else:
            return True
    return False


async def _allowed(desk: Desk, job: Binding) -> None:
    """Wait until Permit lets the pod go. Source: A029."""
    if job.permit is None:
        return
    since = desk.clock.monotonic()
    await job.settled.wait()
    outcome = job.permit.outcome
    if outcome is None:
        raise RejectedError(Status(Code.ERROR, ("waiting on permit for pod: ended without an outcome",)))
    desk.tally.waited(outcome.code.label, desk.clock.monotonic() - since)
    if not outcome.ok:
        raise RejectedError(outcome)


async def _prepared(desk: Desk, job: Binding, plugin: PreBind) -> None:
    """Carry out what one PreBind plugin wants. Source: A072, B099."""
    engine = desk.engines[job.profile.scheduler_name]
    answer = committing.pre_bind(
        plugin, job.queued.query, job.placed.node_name, desk.state.snapshot(), engine, job.notes
    )
    if isinstance(answer, Status):
        if answer.ok:
            return
        raise RejectedError(answer)
    try:
        for write in answer.writes:
            _goes_on(desk, job)
            await desk.api.carry_out(write)
    except ApiError as wrong:
        raise RejectedError(
            Status(Code.ERROR, (f'running PreBind plugin "{plugin.name}": {wrong}',), plugin.name)
        ) from wrong
    await _come_about(desk, job, plugin.name, answer)


async def _come_about(desk: Desk, job: Binding, plugin: str, plan: Plan) -> None:
    """Wait for what *plan* waits for: asked once a second, as kube-scheduler does. Source: B099."""
    if plan.wait_for is None:
        return
    deadline = desk.clock.monotonic() + plan.timeout
    while True:
        _goes_on(desk, job)
        answer = plan.wait_for(desk.state.snapshot())
        if answer is None and desk.clock.monotonic() >= deadline:
            answer = plan.late
        if answer is not None:
            if answer.ok:
                return
            text = f'running PreBind plugin "{plugin}": {answer.message}'
            raise RejectedError(answer.by(plugin) if answer.rejected else Status(Code.ERROR, (text,), plugin))
        await desk.sleep(1.0)


def _goes_on(desk: Desk, job: Binding) -> None:
    """Stop if the room was taken, the pod or its assumption is gone, or we may not act any more.

    Raises:
        RejectedError: it must not go on.
    """
    if job.called_off:
        raise RejectedError(Status(Code.ERROR, (job.called_off,)))
    if not desk.state.is_assumed(job.queued.uid):
        raise RejectedError(Status(Code.ERROR, ("pod does not exist any more",)))
    if not desk.leadership.may_act():
        raise RejectedError(Status(Code.ERROR, ("the lease is lost, so nothing is bound",)))


def _done(desk: Desk, job: Binding) -> None:
    """Source: A036."""
    pod, node = job.queued.query, job.placed.node_name
    now = desk.clock.monotonic()
    note = f"Successfully assigned {pod.key} to {node}"
    desk.recorder.event(pod.pod, warning=False, reason="Scheduled", action="Binding", note=note)
    first = job.queued.first_active
    desk.tally.bound(job.queued.attempts, now - (first if first is not None else job.began))
    desk.tally.attempted(job.profile.scheduler_name, "scheduled", now - job.began)
    if job.queued.flushed:
        desk.tally.bound_after_flush()
    engine = desk.engines[job.profile.scheduler_name]
    for wrong in committing.post_bind(pod, node, job.profile, engine, job.notes):
        log.warning("%s", wrong)


def undo(desk: Desk, job: Binding, status: Status) -> None:
    """The pod does not go to the node after all: take everything back, then hand it to the failure handler.

    Source: A023, A037.
    """
    pod, node = job.queued.query, job.placed.node_name
    for wrong in committing.unreserve(pod, node, job.profile, desk.engines[job.profile.scheduler_name], job.notes):
        log.warning("%s", wrong)
    desk.state.forget(pod.pod)
    freed = Change(Resource.ASSIGNED_POD, Action.DELETE, job.placed.pod, None)
    rejectors = frozenset({status.plugin}) if status.rejected and status.plugin else frozenset()
    message = f"0/1 nodes are available: 1 {status.message}." if status.rejected else status.message
    if not status.rejected:
        room_freed(desk, freed)
    failed(desk, job.queued, status, message, rejectors, "", job.began)
    if status.rejected:
        room_freed(desk, freed, but=job.queued.uid)


def start(desk: Desk, job: Binding) -> None:
    """Begin the binding cycle of *job* in the background."""
    in_background(desk, bind(desk, job))
