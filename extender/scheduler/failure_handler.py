"""Handle a failed attempt: requeue the pod, record an event and patch the pod's status."""

from collections.abc import Callable
from typing import Final

from extender.api.kinds.pod import Pod
from extender.api.requests import is_resize_deferred
from extender.basics.input_limits import shorten
from extender.cache.pod_info import AssignedPodInfo
from extender.client.events import truncate_note
from extender.cycle.decision import AttemptFailure
from extender.framework.events import ActionType, ClusterEvent, EventResource, make_lost_nomination_event
from extender.queueing.queued_entities import QueuedPodInfo
from extender.scheduler import log_messages
from extender.scheduler.api_writer import PodEvent
from extender.scheduler.attempt_history import AttemptRecord
from extender.scheduler.context import SchedulerContext
from extender.scheduler.status_patches import make_pod_scheduled_patch
from extender.scheduler.status_writer import write_pod_status

MAX_MESSAGE_LENGTH: Final = 3 * 2**19
"""The limit of the characters of a message: etcd limits a pod to 1.5 MiB, and an HTTP extender may send 64 MiB."""


def handle_scheduling_failure(
    context: SchedulerContext, queued_pod_info: QueuedPodInfo, failure: AttemptFailure, start_time: float
) -> None:
    """Handle the failed attempt of *queued_pod_info*, which is in flight.

    *start_time* is the start of the attempt, on the monotonic clock.
    """
    pod = queued_pod_info.pod_info.pod
    status, nominated_node = failure.status, failure.nominated_node
    message = shorten(status.message, MAX_MESSAGE_LENGTH)
    is_rejected = status.is_rejected
    reason = "Unschedulable" if is_rejected else "SchedulerError"
    scheduler_name = pod.spec.scheduler_name
    now = context.clock.monotonic()
    result = "unschedulable" if is_rejected else "error"
    seconds, attempts = now - start_time, queued_pod_info.attempts
    context.metrics.observe_attempt(scheduler_name, result, seconds)
    context.attempt_history.record(
        AttemptRecord(context.clock.now(), pod.key, queued_pod_info.uid, result, "", message, seconds, attempts)
    )
    if is_rejected:
        has_rejectors = bool(failure.rejectors or failure.pending_rejectors)
        log_messages.log_unschedulable(pod, message, has_rejectors=has_rejectors)
    else:
        log_messages.log_error(pod, message)
    queued_pod_info.pending_plugins = failure.pending_rejectors
    queued_pod_info.unschedulable_plugins = failure.rejectors - failure.pending_rejectors
    still_exists = _requeue(context, queued_pod_info, now)
    if is_deferred_resize(context, pod):
        return  # the pod runs: it gets no event, condition or nomination
    if not still_exists and _has_pod_with_key(context, queued_pod_info.key):
        return
    newest_pod = queued_pod_info.pod_info.pod
    context.recorder.event(newest_pod, PodEvent("FailedScheduling", "Scheduling", truncate_note(message), warning=True))
    if not still_exists or failure.is_on_other_node or queued_pod_info.uid in context.cache.assigned_pods:
        # A pod on a node has the condition PodScheduled=True. kube-scheduler overwrites it.
        return
    if nominated_node is not None:
        _nominate(context, newest_pod, nominated_node)
    status_patch = make_pod_scheduled_patch(
        newest_pod, reason, message, nominated_node, context.clock.now(), queued_pod_info.sent_status
    )
    if status_patch is not None:
        write_pod_status(context, queued_pod_info, status_patch)


def _nominate(context: SchedulerContext, pod: Pod, node_name: str) -> None:
    """Nominate *pod* for *node_name*; "" clears its nomination.

    If the status of the pod had the old nomination, the watch will show its end, and other pods are requeued then. A
    nomination whose write failed is only in memory, so they are requeued here. In kube-scheduler they wait for another
    event, or for five minutes.
    """
    old_node_name = context.cache.find_nominated_node(pod.metadata.uid)
    context.cache.nominate(pod, node_name)
    if old_node_name in ("", node_name, pod.status.nominated_node_name):
        return
    uid, priority = pod.metadata.uid, pod.spec.priority or 0
    _requeue_other_pods(
        context,
        make_lost_nomination_event(pod, old_node_name),
        lambda queued_pod: queued_pod.uid != uid and queued_pod.pod_info.priority <= priority,
    )


def _requeue(context: SchedulerContext, queued_pod_info: QueuedPodInfo, now: float) -> bool:
    """Requeue the newest version of the pod if it is still pending; return False if the pod was deleted.

    Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure (1.36).
    """
    newest_pod = find_waiting_pod(context, queued_pod_info.pod_info.pod)
    if newest_pod is None:
        context.queue.done(queued_pod_info.uid)
        return queued_pod_info.uid in context.cache.assigned_pods
    queued_pod_info.pod_info = context.cache.make_pod_info(newest_pod)
    context.queue.add_unschedulable_if_not_present(queued_pod_info, now)
    context.wake()
    return True


def is_deferred_resize(context: SchedulerContext, pod: Pod) -> bool:
    """Return whether *pod* is on a node and is scheduled again only because its resize is deferred.

    Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure (1.37).
    """
    profile = context.profiles.get(pod.spec.scheduler_name)
    return profile is not None and profile.resize_preemption and is_resize_deferred(pod)


def find_waiting_pod(context: SchedulerContext, pod: Pod) -> Pod | None:
    """Return the newest version of *pod* if it still waits for a node or for its deferred resize; else None."""
    pending_pod = context.cache.pending_pods.get(pod.metadata.uid)
    assigned_pod_info = context.cache.assigned_pods.get(pod.metadata.uid)
    if pending_pod is not None or assigned_pod_info is None or not pod.spec.node_name:
        return pending_pod
    assigned_pod = assigned_pod_info.pod_with_node_name
    return assigned_pod if is_deferred_resize(context, assigned_pod) else None


def _has_pod_with_key(context: SchedulerContext, key: str) -> bool:
    """Return whether a pod with *key* (`namespace/name`) exists, possibly with another uid."""
    is_pending = any(pod.key == key for pod in context.cache.pending_pods.values())
    return is_pending or any(pod.key == key for pod in context.cache.assigned_pods.values())


def is_still_pending(context: SchedulerContext, queued_pod_info: QueuedPodInfo) -> bool:
    """Return whether the pod still waits and is not terminating. This may change during extender calls."""
    newest_pod = find_waiting_pod(context, queued_pod_info.pod_info.pod)
    return newest_pod is not None and newest_pod.metadata.deletion_timestamp is None


def requeue_after_pod_removal(context: SchedulerContext, removed_pod: AssignedPodInfo, *, except_uid: str = "") -> None:
    """Requeue the pods that may fit without *removed_pod*, except the pod with the uid *except_uid*."""
    # The queueing hints ignore a deleted pod without a node name.
    event = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, removed_pod.pod_with_node_name, None)
    pre_check = (lambda pod: pod.uid != except_uid) if except_uid else None
    _requeue_other_pods(context, event, pre_check)


def _requeue_other_pods(
    context: SchedulerContext, event: ClusterEvent, pre_check: Callable[[QueuedPodInfo], bool] | None
) -> None:
    """Requeue the pods that *pre_check* accepts, if *event* may make them schedulable."""
    context.queue.move_all_to_active_or_backoff_queue(event, context.clock.monotonic(), pre_check)
    context.wake()
