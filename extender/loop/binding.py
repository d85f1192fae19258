"""The binding cycle of one pod: wait for Permit, prepare, bind, tell; or undo everything. Source: A.3."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from extender.carrying import Carrier, RejectedError, take_back
from extender.client.extender_calls import ExtenderError
from extender.cluster.pods import PlacedPod
from extender.decide import committing
from extender.framework.points import Write
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status
from extender.framework.waiting import WaitingPod
from extender.loop import narrating
from extender.loop.conditions import nominated_only
from extender.loop.desk import Desk, log
from extender.loop.failing import failed, in_background, room_freed, written
from extender.loop.negotiating import skipped
from extender.objects.node import Node
from extender.queueing.queued import QueuedPod


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
        node: as it was when it was chosen; None: not known, as time has passed since.
    """

    queued: QueuedPod
    placed: PlacedPod
    profile: Profile
    notes: dict[str, Any]
    began: float
    permit: WaitingPod | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    called_off: str = ""
    node: Node | None = None

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
    except Exception as wrong:  # noqa: BLE001  logged whole; the pod must come back to the queue whatever broke
        log.exception("binding of pod %s to node %s broke", job.placed.key, job.placed.node_name)
        undo(desk, job, Status(Code.ERROR, (f"{type(wrong).__name__}: {wrong}",)))
    finally:
        desk.binding.pop(uid, None)


async def _bound(desk: Desk, job: Binding) -> None:
    pod, node = job.queued.query, job.placed.node_name
    engine = desk.engines[job.profile.scheduler_name]

    def announce(reason: str, note: str) -> None:
        desk.recorder.event(pod.pod, warning=False, reason=reason, action="Scheduling", note=note)

    carrier = Carrier(
        pod, node, job.node, job.profile, engine, job.notes, desk.state, desk.api, desk.clock, desk.sleep,
        lambda: _goes_on(desk, job), lambda write, well: _counted(desk, write, well=well), announce,
        partial(_attached, desk, job.profile.scheduler_name),
    )  # fmt: skip
    prepared = committing.prepare(pod, node, job.profile, engine, job.notes)
    if prepared.status is not None and prepared.status.code is not Code.SKIP:
        raise RejectedError(prepared.status)
    if desk.nominates_in_advance and (prepared.status is None or job.permit is not None):
        write = nominated_only(pod.pod, node)
        if write is not None:
            await written(desk, write)
    await _allowed(desk, job)
    desk.queue.done(job.queued.uid)  # from here on events are of no use to it: A030
    if prepared.status is None:
        desk.binding[job.queued.uid] = job.call_off
        await carrier.prepare(prepared.groups)
    desk.binding.pop(job.queued.uid, None)
    _goes_on(desk, job)
    carrier.still_fits()
    if not await _bound_by_extender(desk, job):
        await carrier.bind()
    _done(desk, job)


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


def _counted(desk: Desk, write: Write, *, well: bool) -> None:
    """A call of PreBind was made. Source: H031."""
    if (write.verb, write.kind) == ("create", "ResourceClaim"):
        desk.tally.created_claim(well=well)


def _attached(desk: Desk, profile: str, devices: Sequence[tuple[str, bool]], outcome: Status, seconds: float) -> None:
    """The wait for devices is over. Source: H032."""
    told = "success" if outcome.ok else "error"
    if outcome.message.startswith("device binding timeout"):
        told = "timeout"
    elif outcome.message.startswith("device binding failed"):
        told = "failure"
    for driver, waited in devices:
        desk.tally.attached(profile, driver, told, seconds, counts=waited)


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
    narrating.bound(pod.pod, node)
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
    undone = committing.unreserve(pod, node, job.profile, desk.engines[job.profile.scheduler_name], job.notes)
    for wrong in undone.faults:
        log.warning("%s", wrong)
    if undone.writes and desk.leadership.may_act():
        in_background(desk, _taken_back(desk, job, status, undone.writes))
    else:
        _given_up(desk, job, status)


async def _taken_back(desk: Desk, job: Binding, status: Status, writes: tuple[Write, ...]) -> None:
    """Tell the API server first: the next attempt must not be overtaken by what is left of this one. Source: B118."""
    await take_back(desk.api, writes, log.warning)
    _given_up(desk, job, status)


def _given_up(desk: Desk, job: Binding, status: Status) -> None:
    """The node does not count on the pod any more, and the pod goes back to the queue."""
    pod = job.queued.query
    desk.state.forget(pod.pod)
    rejectors = frozenset({status.plugin}) if status.rejected and status.plugin else frozenset()
    message = f"0/1 nodes are available: 1 {status.message}." if status.rejected else status.message
    if not status.rejected:
        room_freed(desk, job.placed)
    failed(desk, job.queued, status, message, rejectors, "", job.began)
    if status.rejected:
        room_freed(desk, job.placed, but=job.queued.uid)


def start(desk: Desk, job: Binding) -> None:
    """Begin the binding cycle of *job* in the background."""
    in_background(desk, bind(desk, job))
