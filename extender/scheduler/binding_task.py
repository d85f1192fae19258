"""The binding cycle of one pod: wait on Permit, run PreBind and Bind, and record the result.

After a failure, all steps are undone and the pod is requeued.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from typing import Any

from extender.api.kinds.node import Node
from extender.cache.pod_info import AssignedPodInfo
from extender.client.extender_transport import ExtenderError
from extender.cycle import binding_cycle
from extender.cycle.decision import AttemptFailure
from extender.cycle.diagnosis import format_rejection_of_one_node
from extender.framework.api_plan import ApiCall
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status, error_status
from extender.framework.waiting_pods import WaitingPod
from extender.queueing.queued_entities import QueuedPodInfo
from extender.scheduler import log_messages
from extender.scheduler.api_writer import PodEvent
from extender.scheduler.attempt_history import AttemptRecord
from extender.scheduler.binder import Binder, BindingError, make_unreserve_calls
from extender.scheduler.context import SchedulerContext, log, run_in_background
from extender.scheduler.extender_preemption import is_error_ignored
from extender.scheduler.failure_handler import handle_scheduling_failure, requeue_after_pod_removal
from extender.scheduler.plugin_effects import apply_plugin_effects
from extender.scheduler.status_patches import make_nomination_patch
from extender.scheduler.status_writer import write_nomination


class AttemptStage(Enum):
    """The stage of the attempt of a pod that was assumed on a node."""

    SCHEDULING_CYCLE = auto()
    WAITING_ON_PERMIT = auto()
    BINDING = auto()


@dataclass(slots=True)
class BindingTask:
    """The binding cycle of one pod.

    Attributes:
        queued_pod_info: the pod in the queue, which is in flight.
        assigned_pod_info: the pod in the cache, which is assumed on its node.
        profile: the profile with the plugins.
        cycle_state: the PreFilter state by plugin name.
        start_time: the start of the attempt, in seconds on the monotonic clock.
        stage: how far the attempt is.
        waiting_pod: the pod's entry in `WaitingPods` if it waits on Permit.
        permit_decided: the event that is set when Permit is decided.
        cancel_reason: the reason why the binding is cancelled; empty if it is not.
        cancelled: the event that is set when the binding is cancelled, which ends the wait of PreBind.
        node_at_decision: the node object in the scheduling cycle; None if the node may have changed since then.
        evaluated_nodes, feasible_nodes: as in `ScheduleResult`.
        is_on_other_node: whether another scheduler bound the pod.
    """

    queued_pod_info: QueuedPodInfo
    assigned_pod_info: AssignedPodInfo
    profile: Profile
    cycle_state: dict[str, Any]
    start_time: float
    stage: AttemptStage = AttemptStage.SCHEDULING_CYCLE
    waiting_pod: WaitingPod | None = None
    permit_decided: asyncio.Event = field(default_factory=asyncio.Event)
    cancel_reason: str = ""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    node_at_decision: Node | None = None
    evaluated_nodes: int = 0
    feasible_nodes: int = 0
    is_on_other_node: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether Permit has not decided about the pod yet.

        Permit of the last member that a gang needs allows the other members, often before their bindings start.
        """
        return self.waiting_pod is not None and self.waiting_pod.status is None

    def cancel(self, reason: str) -> None:
        """Cancel the binding at its next step, because the pod is a preemption victim. A wait of PreBind ends now.

        Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle;
        pkg/scheduler/framework/runtime/pods_in_prebind_map.go, podInPreBind.MarkPrebound (1.36).
        """
        self.cancel_reason = self.cancel_reason or reason
        self.cancelled.set()


async def run_binding_cycle(context: SchedulerContext, task: BindingTask) -> None:
    """Run the binding cycle of *task*. Failures are passed to the failure handler, so nothing is raised."""
    uid = task.queued_pod_info.uid
    task.stage = AttemptStage.WAITING_ON_PERMIT
    try:
        await _run_steps(context, task)
    except BindingError as error:
        task.is_on_other_node = error.is_on_other_node
        fail_binding(context, task, error.status)
    except Exception as error:  # noqa: BLE001  logged with its traceback; the pod must return to the queue
        assigned_pod_info = task.assigned_pod_info
        log.exception("binding of pod %s to node %s failed", assigned_pod_info.key, assigned_pod_info.node_name)
        fail_binding(context, task, error_status(f"{type(error).__name__}: {error}"))
    finally:
        context.pre_bind_cancel_functions.pop(uid, None)
        if task.waiting_pod is not None and task.waiting_pod.reject("", "the binding cycle ended"):
            context.wake()  # PreBindPreFlight failed, so nothing waits for the decision any more


async def _run_steps(context: SchedulerContext, task: BindingTask) -> None:
    pod, node = task.queued_pod_info.pod_info, task.assigned_pod_info.node_name
    runtime = context.runtimes[task.profile.scheduler_name]

    def record_event(reason: str, note: str) -> None:
        context.recorder.event(pod.pod, PodEvent(reason, "Scheduling", note))

    binder = Binder(
        pod,
        node,
        task.node_at_decision,
        task.profile,
        runtime,
        task.cycle_state,
        context.cache,
        context.api,
        context.clock,
        partial(_sleep_until_cancelled, context, task),
        ensure_still_valid=lambda: _ensure_still_valid(context, task),
        on_pre_bind_call=partial(_count_pre_bind_call, context),
        record_event=record_event,
        check_node_freshness=context.check_node_freshness,
        on_wait_end=partial(_observe_device_bindings, context, task.profile.scheduler_name),
        get_cancel_reason=lambda: task.cancel_reason,
    )
    pre_flights = binding_cycle.PreFlightOutcome(None, tuple((plugin,) for plugin in task.profile.pre_bind_plugins))
    if "NominatedNodeNameForExpectation" in context.gates:
        pre_flights = await _nominate(context, task)
    await _wait_on_permit(context, task)
    context.queue.done(task.queued_pod_info.uid)  # from here on, cluster events cannot help this pod
    task.stage = AttemptStage.BINDING
    if pre_flights.status is None:
        context.pre_bind_cancel_functions[task.queued_pod_info.uid] = task.cancel
    await binder.run_pre_bind_plugins(pre_flights.groups)
    context.pre_bind_cancel_functions.pop(task.queued_pod_info.uid, None)
    if problem := await context.check_node_freshness(node):
        raise BindingError(error_status(problem))
    _ensure_still_valid(context, task)
    binder.ensure_node_still_fits()
    if not await _bind_by_extender(context, task):
        await binder.bind()
    _finish_binding(context, task)


async def _sleep_until_cancelled(context: SchedulerContext, task: BindingTask, seconds: float) -> None:
    """Wait for *seconds*, or until the binding is cancelled.

    Source: apimachinery/pkg/util/wait/poll.go, PollUntilContextTimeout (1.37).
    """
    waits = {asyncio.ensure_future(context.sleep(seconds)), asyncio.ensure_future(task.cancelled.wait())}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _nominate(context: SchedulerContext, task: BindingTask) -> binding_cycle.PreFlightOutcome:
    """Run PreBindPreFlight. If the pod is not bound at once, nominate it for its node.

    Raises:
        BindingError: a PreBindPreFlight plugin failed.

    Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle (1.36).
    """
    pod, node = task.queued_pod_info.pod_info, task.assigned_pod_info.node_name
    runtime = context.runtimes[task.profile.scheduler_name]
    outcome = binding_cycle.run_pre_bind_pre_flights(pod, node, task.profile, runtime, task.cycle_state)
    if outcome.status is not None and outcome.status.code is not Code.SKIP:
        raise BindingError(outcome.status)
    if outcome.status is None or task.is_waiting:
        patch = make_nomination_patch(pod.pod, node, task.queued_pod_info.sent_status)
        if patch is not None:
            await write_nomination(context, task.queued_pod_info, patch)
    return outcome


async def _bind_by_extender(context: SchedulerContext, task: BindingTask) -> bool:
    """Bind with the first interested extender that has a bind verb; return False if no extender bound the pod.

    Source: pkg/scheduler/schedule_one.go, Scheduler.extendersBinding (1.36).
    """
    pod = task.queued_pod_info.pod_info.pod
    for extender in context.extenders:
        if not extender.config.bind_verb or not extender.is_interested(pod):
            continue
        try:
            await extender.bind(pod, task.assigned_pod_info.node_name)
        except ExtenderError as error:
            if context.cache.find_bound_node(task.queued_pod_info.uid) == task.assigned_pod_info.node_name:
                return True  # the response was lost, but the extender bound the pod
            if not is_error_ignored(extender, error):
                raise BindingError(error_status(str(error))) from error
            _ensure_still_valid(context, task)  # the call may have taken a long time
        else:
            return True
    return False


async def _wait_on_permit(context: SchedulerContext, task: BindingTask) -> None:
    """Wait until Permit allows the pod.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.WaitOnPermit (1.36).
    """
    if task.waiting_pod is None:
        return
    wait_start = context.clock.monotonic()
    await task.permit_decided.wait()
    permit_status = task.waiting_pod.status
    if permit_status is None:
        raise BindingError(error_status("waiting on permit for pod: ended without an outcome"))
    context.metrics.observe_permit_wait(permit_status.code.label, context.clock.monotonic() - wait_start)
    if not permit_status.is_success:
        raise BindingError(permit_status)


def _count_pre_bind_call(context: SchedulerContext, api_call: ApiCall, succeeded: bool) -> None:
    """Count the creation of a ResourceClaim.

    Source: pkg/scheduler/metrics/metrics.go, ResourceClaimCreatesTotal (1.36).
    """
    if (api_call.verb, api_call.kind) == ("create", "ResourceClaim"):
        context.metrics.count_claim_creation(succeeded=succeeded)


def _observe_device_bindings(
    context: SchedulerContext, profile: str, devices: Sequence[tuple[str, bool]], outcome: Status, seconds: float
) -> None:
    """Observe the duration and the outcome of a wait for devices.

    Source: pkg/scheduler/metrics/metrics.go, DRABindingConditionsAllocationsTotal (1.36).
    """
    label = "success" if outcome.is_success else "error"
    if outcome.message.startswith("device binding timeout"):
        label = "timeout"
    elif outcome.message.startswith("device binding failed"):
        label = "failure"
    for driver, has_conditions in devices:
        context.metrics.observe_device_binding(profile, driver, label, seconds, count_binding=has_conditions)


def _ensure_still_valid(context: SchedulerContext, task: BindingTask) -> None:
    """Check that the binding is not cancelled, the pod is still assumed and this process still leads.

    Raises:
        BindingError: the binding is cancelled, the pod is no longer assumed, or this process is not the leader.
    """
    if task.cancel_reason:
        raise BindingError(error_status(task.cancel_reason))
    if not context.cache.is_assumed(task.queued_pod_info.uid):
        bind_plugin = next((plugin.name for plugin in task.profile.bind_plugins), "")
        message = (
            f'running Bind plugin "{bind_plugin}": pods "{task.queued_pod_info.pod_info.pod.metadata.name}" not found'
        )
        raise BindingError(error_status(message))
    if not context.may_act():
        raise BindingError(error_status("the lease is lost, so nothing is bound"))


def _finish_binding(context: SchedulerContext, task: BindingTask) -> None:
    """Record the event, log line and metrics of a bound pod, then run PostBind.

    Source: pkg/scheduler/schedule_one.go, Scheduler.finishBinding (1.36).
    """
    pod, node = task.queued_pod_info.pod_info, task.assigned_pod_info.node_name
    now = context.clock.monotonic()
    note = f"Successfully assigned {pod.key} to {node}"
    context.recorder.event(pod.pod, PodEvent("Scheduled", "Binding", note))
    log_messages.log_bound(pod.pod, node, task.evaluated_nodes, task.feasible_nodes)
    first_active_time = task.queued_pod_info.initial_attempt_timestamp
    context.metrics.observe_bound_pod(
        task.queued_pod_info.attempts, now - (first_active_time if first_active_time is not None else task.start_time)
    )
    seconds, attempts = now - task.start_time, task.queued_pod_info.attempts
    context.metrics.observe_attempt(task.profile.scheduler_name, "scheduled", seconds)
    context.attempt_history.record(
        AttemptRecord(context.clock.now(), pod.key, pod.uid, "scheduled", node, "", seconds, attempts)
    )
    if task.queued_pod_info.was_flushed_from_unschedulable:
        context.metrics.count_bound_after_flush()
    runtime = context.runtimes[task.profile.scheduler_name]
    outcome = binding_cycle.run_post_bind_plugins(pod, node, task.profile, runtime, task.cycle_state)
    for error in outcome.errors:
        log.warning("%s", error)
    apply_plugin_effects(context, (), outcome.pods_to_activate)


def fail_binding(context: SchedulerContext, task: BindingTask, status: Status) -> None:
    """Run Unreserve, forget the pod and call the failure handler.

    Source: pkg/scheduler/schedule_one.go, Scheduler.assumeAndReserve, Scheduler.handleBindingCycleError (1.36).
    """
    pod, node = task.queued_pod_info.pod_info, task.assigned_pod_info.node_name
    runtime = context.runtimes[task.profile.scheduler_name]
    outcome = binding_cycle.run_unreserve_plugins(pod, node, task.profile, runtime, task.cycle_state)
    for error in outcome.errors:
        log.warning("%s", error)
    apply_plugin_effects(context, outcome.rejections, outcome.pods_to_activate)
    # Another scheduler bound the pod, and may have written the same. kube-scheduler undoes that.
    is_bound = task.is_on_other_node or bool(context.cache.find_bound_node(pod.uid))
    if outcome.api_calls and context.may_act() and not is_bound:
        run_in_background(context, _make_unreserve_calls_and_requeue(context, task, status, outcome.api_calls))
    else:
        _forget_and_requeue(context, task, status, frees_node=task.stage is not AttemptStage.SCHEDULING_CYCLE)


async def _make_unreserve_calls_and_requeue(
    context: SchedulerContext, task: BindingTask, status: Status, api_calls: tuple[ApiCall, ...]
) -> None:
    """Make the API calls of Unreserve before the pod is requeued, so that the next attempt sees their effect.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Unreserve (1.36).
    """
    await make_unreserve_calls(context.api, api_calls, log.warning)
    _forget_and_requeue(context, task, status, frees_node=True)


def _forget_and_requeue(context: SchedulerContext, task: BindingTask, status: Status, *, frees_node: bool) -> None:
    """Forget the assumed pod and return it to the queue.

    With *frees_node*, other pods may have been rejected because of it, so they are requeued too.
    """
    pod = task.queued_pod_info.pod_info
    context.cache.forget(pod.pod)
    if frees_node and not status.is_rejected:
        requeue_after_pod_removal(context, task.assigned_pod_info)
    handle_scheduling_failure(context, task.queued_pod_info, _make_failure(task, status), task.start_time)
    if frees_node and status.is_rejected:
        requeue_after_pod_removal(context, task.assigned_pod_info, except_uid=task.queued_pod_info.uid)


def _make_failure(task: BindingTask, status: Status) -> AttemptFailure:
    """Return the failure of the attempt. A rejection by PreBind or Bind has no rejectors, so that the pod is retried.

    Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle (1.36).
    """
    if status.is_rejected and task.stage is not AttemptStage.BINDING:
        rejectors = frozenset({status.plugin})
        pending_rejectors = rejectors if status.code is Code.PENDING else frozenset()
        status = replace(status, reasons=(format_rejection_of_one_node(status),))
        return AttemptFailure(status, rejectors, pending_rejectors=pending_rejectors)
    return AttemptFailure(status, is_on_other_node=task.is_on_other_node)
