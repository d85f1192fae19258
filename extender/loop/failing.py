"""After an attempt that did not place its pod: back to the queue, told to the user, written into its status.

Source: A.4.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec

from extender.client.errors import ApiError, ConflictError, NotFoundError, ServerError, UnreachableError
from extender.client.events import cut
from extender.cluster.pods import PlacedPod
from extender.framework.changes import Action, Change, Resource
from extender.framework.points import Write
from extender.framework.verdict import Code, Status
from extender.loop import narrating
from extender.loop.conditions import not_scheduled
from extender.loop.desk import Desk, log
from extender.queueing.queued import QueuedPod

_TRIES = 4
_FIRST_WAIT, _FACTOR = 0.01, 5.0
"""Seconds before a status is written again, and how that grows. Source: A045."""


def in_background(desk: Desk, job: Coroutine[Any, Any, Any]) -> None:
    """Let *job* run beside everything else; the desk knows it until it ends."""
    task = asyncio.get_running_loop().create_task(job)
    desk.jobs.add(task)
    task.add_done_callback(desk.jobs.discard)


def failed(
    desk: Desk,
    queued: QueuedPod,
    status: Status,
    message: str,
    rejectors: frozenset[str],
    nominated: str | None,
    began: float,
) -> None:
    """The attempt of *queued* came to nothing.

    Args:
        desk: the scheduler's.
        queued: the pod, in flight.
        status: why; ERROR, or a rejection.
        message: in full.
        rejectors: the plugins that turned it away; empty after an error.
        nominated: the node it shall wait for; None leaves its nomination alone, the empty name clears it.
        began: when the attempt began, on the monotonic clock.
    """
    pod = queued.query.pod
    rejected = status.rejected
    reason = "Unschedulable" if rejected else "SchedulerError"
    profile = pod.spec.scheduler_name
    now = desk.clock.monotonic()
    desk.tally.attempted(profile, "unschedulable" if rejected else "error", now - began)
    (narrating.refused if rejected else narrating.broken)(pod, message)
    queued.pending = rejectors if status.code is Code.PENDING else frozenset()
    queued.rejectors = rejectors - queued.pending
    there = _back_to_queue(desk, queued, now)
    if not there and _made_again(desk, queued.key):
        return
    newest = queued.query.pod
    desk.recorder.event(newest, warning=True, reason="FailedScheduling", action="Scheduling", note=cut(message))
    if not there:
        return
    if nominated is not None:
        desk.state.nominate(newest, nominated)
    write = not_scheduled(newest, reason, message, nominated, desk.clock.now())
    if write is not None:
        in_background(desk, written(desk, write))


def _back_to_queue(desk: Desk, queued: QueuedPod, now: float) -> bool:
    """Put the newest version of the pod back, unless it has a node; False if it is gone. Source: A042."""
    newest = desk.state.waiting.get(queued.uid)
    if newest is None:
        desk.queue.done(queued.uid)
        return queued.uid in desk.state.placed
    queued.query = desk.state.snapshot().query(newest)
    desk.queue.came_back(queued, now)
    desk.wake()
    return True


def _made_again(desk: Desk, key: str) -> bool:
    """Whether there is a pod *key*; what became of the one before it is not its concern."""
    waits = any(pod.key == key for pod in desk.state.waiting.values())
    return waits or any(pod.key == key for pod in desk.state.placed.values())


def still_waits(desk: Desk, queued: QueuedPod) -> bool:
    """Whether the pod waits after others were asked about it; if it is gone or bound it has left the queue."""
    newest = desk.state.waiting.get(queued.uid)
    if newest is not None and newest.metadata.deletion_timestamp is None:
        return True
    desk.queue.done(queued.uid)
    return False


async def written(desk: Desk, write: Write) -> bool:
    """Write a status, again a few times if that may help; whether it was written. What fails is logged.

    Source: A045.
    """
    wait = _FIRST_WAIT
    for left in reversed(range(_TRIES)):
        try:
            await desk.api.carry_out(write)
        except NotFoundError:
            break
        except (ConflictError, ServerError, UnreachableError) as wrong:
            if not left:
                _unwritten(write, wrong)
                break
        except ApiError as wrong:
            _unwritten(write, wrong)
            break
        else:
            return True
        await desk.sleep(wait * (1 + 0.1 * desk.chance.random()))
        wait *= _FACTOR
    return False


def _unwritten(write: Write, wrong: ApiError) -> None:
    log.warning("status of %s %s/%s could not be written: %s", write.kind, write.namespace, write.name, wrong)


def room_freed(desk: Desk, gone: PlacedPod, *, but: str = "") -> None:
    """*gone* left its node: pods that waited for room are tried again, all but the one whose uid is *but*."""
    # Hints pass over a pod that was on no node; ours has its node only in the tables.
    spec = msgspec.structs.replace(gone.pod.spec, node_name=gone.node_name)
    change = Change(Resource.ASSIGNED_POD, Action.DELETE, msgspec.structs.replace(gone.pod, spec=spec), None)
    desk.queue.happened(change, desk.clock.monotonic(), (lambda pod: pod.uid != but) if but else None)
    desk.wake()
