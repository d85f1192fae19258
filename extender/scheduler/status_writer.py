"""Write the status of pods and pod groups. A write that fails is repeated, and the newest status is written last."""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from extender.client.errors import ApiError, ConflictError, NotFoundError, ServerError, UnreachableError
from extender.framework.api_plan import ApiCall
from extender.queueing.queued_entities import QueuedPodInfo
from extender.scheduler.context import SchedulerContext, StatusWrite, log, run_in_background, start_task

_MAX_TRIES = 4
_INITIAL_DELAY_SECONDS, _DELAY_FACTOR = 0.01, 5.0
"""Seconds before the first retry of a failed status write, and the factor by which each later delay grows.

Source: pkg/scheduler/schedule_one.go, updatePod (1.36).
"""

_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 30.0
"""Shortest and longest delay before a condition is written again after all tries failed."""


async def call_with_retries(
    context: SchedulerContext, api_call: ApiCall, is_current: Callable[[], bool] = lambda: True
) -> None:
    """Make a call that patches a status. After a conflict or an error of the server or the connection, repeat it.

    It is not repeated when *is_current* returns False, because a newer status may have been written.

    Raises:
        ApiError: the last failure.

    Source: pkg/scheduler/util/utils.go, PatchPodStatus (1.37).
    """
    delay = _INITIAL_DELAY_SECONDS
    for remaining_tries in reversed(range(_MAX_TRIES)):
        try:
            return await context.api.call(api_call)
        except (ConflictError, ServerError, UnreachableError):
            if not remaining_tries:
                raise
            await context.sleep(delay * (1 + 0.1 * context.rng.random()))
            delay *= _DELAY_FACTOR
            if not is_current():
                raise
    raise AssertionError("the last try returns or raises")


async def write_status(
    context: SchedulerContext,
    api_call: ApiCall,
    is_current: Callable[[], bool] = lambda: True,
    log_level: int = logging.WARNING,
) -> bool:
    """Write a status, and return whether that succeeded; see `call_with_retries`. A failure is logged.

    Source: pkg/scheduler/schedule_one.go, updatePod (1.36).
    """
    try:
        await call_with_retries(context, api_call, is_current)
    except NotFoundError:
        return False
    except ApiError as error:
        if is_current():
            name = f"{api_call.namespace}/{api_call.name}"
            log.log(log_level, "status of %s %s could not be written: %s", api_call.kind, name, error)
        return False
    return True


def write_pod_status(context: SchedulerContext, queued_pod_info: QueuedPodInfo, patch: ApiCall) -> None:
    """Write the condition of a failed attempt in the background, after an earlier write of this pod has ended.

    If all tries fail, the write is repeated later until the pod is deleted, assumed or has a newer condition.
    kube-scheduler does neither: the last write may be an older one, and after a failure the reason is missing until the
    next attempt, perhaps for minutes.
    """
    uid, status = queued_pod_info.uid, patch.body["status"]
    queued_pod_info.sent_status = {**queued_pod_info.sent_status, **status}
    write = context.status_writes.get(uid)
    if write is None:
        write = context.status_writes[uid] = StatusWrite(patch, _MIN_RETRY_SECONDS)
    else:
        unwritten_status = write.call.body["status"]
        write.call = replace(patch, body={**patch.body, "status": {**unwritten_status, **status}})
        write.retry_delay = _MIN_RETRY_SECONDS
    if not write.is_running:
        _start_write(context, uid, write)


async def write_nomination(context: SchedulerContext, queued_pod_info: QueuedPodInfo, patch: ApiCall) -> None:
    """Write the nomination of an assumed pod and wait for it. An unfinished write of its condition is given up."""
    queued_pod_info.sent_status = {**queued_pod_info.sent_status, **patch.body["status"]}
    context.status_writes.pop(queued_pod_info.uid, None)
    await write_status(context, patch)


def _start_write(context: SchedulerContext, uid: str, write: StatusWrite) -> None:
    write.is_running = True
    run_in_background(context, _write_newest_status(context, uid, write))


async def _write_newest_status(context: SchedulerContext, uid: str, write: StatusWrite) -> None:
    """Write the status, and then each newer one that came meanwhile. If that fails, wait and start again."""
    log_level = logging.WARNING if write.retry_delay == _MIN_RETRY_SECONDS else logging.DEBUG
    patch, is_written = None, False
    try:
        while write.call is not patch:
            patch = write.call
            is_written = await write_status(context, patch, partial(_is_current, context, uid, write, patch), log_level)
    finally:
        write.is_running = False
    if is_written or not _is_current(context, uid, write, patch):
        _end_write(context, uid, write)
    else:
        start_task(context.status_retries, _retry_later(context, uid, write))


async def _retry_later(context: SchedulerContext, uid: str, write: StatusWrite) -> None:
    patch, delay = write.call, write.retry_delay
    write.retry_delay = min(2 * delay, _MAX_RETRY_SECONDS)
    await context.sleep(delay * (1 + 0.1 * context.rng.random()))
    if write.call is not patch:
        return  # the newer status has its own task
    if _is_current(context, uid, write, patch):
        _start_write(context, uid, write)
    else:
        _end_write(context, uid, write)


def _is_current(context: SchedulerContext, uid: str, write: StatusWrite, patch: ApiCall) -> bool:
    """Return whether no newer status replaces *patch* and the pod still waits for a node."""
    is_newest = context.status_writes.get(uid) is write and write.call is patch
    return is_newest and uid in context.cache.pending_pods and uid not in context.cache.assigned_pods


def _end_write(context: SchedulerContext, uid: str, write: StatusWrite) -> None:
    if context.status_writes.get(uid) is write:
        del context.status_writes[uid]
