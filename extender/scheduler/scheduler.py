"""The scheduling loop: pop a pod, schedule it, assume it and start its binding cycle.

Source: pkg/scheduler/schedule_one.go, Scheduler.ScheduleOne (1.36).
"""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.pod_info import AssignedPodInfo
from extender.client.extender import HttpExtender
from extender.cycle import binding_cycle
from extender.cycle.decision import AttemptFailure, ScheduleFailure, ScheduleResult
from extender.cycle.pre_filter import find_size_error
from extender.cycle.scheduling_cycle import schedule_pod
from extender.event_loop.cooperative_iteration import pause_after
from extender.event_loop.turn_budget import begin_step, compute_pause, wait_for_turn
from extender.framework.events import ActionType, ClusterEvent, EventResource, make_pod_event
from extender.framework.profiles import Profile
from extender.framework.status import Status, error_status
from extender.queueing.queued_entities import QueuedPodInfo
from extender.scheduler import log_messages
from extender.scheduler.api_writer import PodEvent
from extender.scheduler.binding_task import BindingTask, fail_binding, run_binding_cycle
from extender.scheduler.context import SchedulerContext, log, run_in_background
from extender.scheduler.event_handlers import EventHandler
from extender.scheduler.evictions import execute_post_filter_plans
from extender.scheduler.extender_cycle import recheck_selected_node, schedule_with_extenders
from extender.scheduler.failure_handler import (
    handle_scheduling_failure,
    is_deferred_resize,
    is_still_pending,
    requeue_after_pod_removal,
)
from extender.scheduler.plugin_effects import apply_plugin_effects, resume_decided_pods
from extender.scheduler.pod_groups import PodGroupScheduler

FLUSH_BACKOFF_SECONDS, FLUSH_UNSCHEDULABLE_SECONDS = 1.0, 30.0
"""Seconds between flushes of backoffQ, and between flushes of the unschedulable pods.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushBackoffQCompleted,
PriorityQueue.flushUnschedulablePodsLeftover (1.36).
"""

_MIN_WAIT_SECONDS = 0.001
"""Shortest wait for a flush. A timer may fire a moment early, and the loop must not turn until the clock has moved."""


class Scheduler(EventHandler):
    """Runs the scheduling loop and handles events."""

    def __init__(self, context: SchedulerContext) -> None:
        """Create the scheduler of *context*. The function `context.wake` must set the `wake_event` of `run`."""
        self._context = context
        self._pod_group_scheduler = (
            PodGroupScheduler(context, self._find_profile, self._assume_and_bind)
            if "GenericWorkload" in context.gates
            else None
        )
        self._gang_scheduling_enabled = "GangScheduling" in context.gates
        self._next_backoff_flush = context.clock.monotonic()
        self._next_unschedulable_flush = self._next_backoff_flush + FLUSH_UNSCHEDULABLE_SECONDS

    # -- loop

    async def run(self, wake_event: asyncio.Event, stop_event: asyncio.Event) -> None:
        """Schedule pods until *stop_event* is set; *wake_event* is set when there may be work."""
        while not stop_event.is_set():
            wake_event.clear()
            self.run_periodic_tasks()
            begin_step()
            while not stop_event.is_set() and self._may_schedule() and await self.schedule_one():
                if self._context.clock.monotonic() >= self._next_backoff_flush:
                    self.run_periodic_tasks()
                # Watches, probes, and the bindings of resumed pods run now.
                await asyncio.sleep(compute_pause(begin_step()))
                await wait_for_turn()
            seconds_to_flush = self._next_backoff_flush - self._context.clock.monotonic()
            try:
                async with asyncio.timeout(max(seconds_to_flush, _MIN_WAIT_SECONDS)):
                    await wake_event.wait()
            except TimeoutError:
                continue

    def _may_schedule(self) -> bool:
        return self._context.may_act() and self._context.has_api_capacity()

    def run_periodic_tasks(self) -> None:
        """Flush backoffQ and the unschedulable pods if due, and resume pods whose Permit is decided.

        The flushes of backoffQ are at whole seconds, when a window of its order ends.

        Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.waitUntilAlignedWithOrderingWindow (1.36).
        """
        now = self._context.clock.monotonic()
        self._context.queue.flush_backoff_q_completed(now)
        self._next_backoff_flush = (now // FLUSH_BACKOFF_SECONDS + 1) * FLUSH_BACKOFF_SECONDS
        if now >= self._next_unschedulable_flush:
            self._context.queue.flush_unschedulable_pods_leftover(now)
            self._next_unschedulable_flush = now + FLUSH_UNSCHEDULABLE_SECONDS
        resume_decided_pods(self._context)

    async def schedule_one(self) -> bool:
        """Schedule the next pod or pod group, and await extender calls. Return False if no pod can be popped."""
        entity = self._context.queue.pop()
        if entity is None:
            return False
        queued_pod_info = entity.pods[0]
        self._context.attempt_history.start_cycle(queued_pod_info.uid)
        pod = queued_pod_info.pod_info.pod
        is_group_member = pod.spec.scheduling_group is not None and not is_deferred_resize(self._context, pod)
        if self._pod_group_scheduler is not None and is_group_member:
            await self._run_with_periodic_tasks(self._pod_group_scheduler.attempt(entity))
            return True
        log_messages.log_attempt(pod)
        try:
            extenders = [
                extender for extender in self._context.extenders if extender.is_interested(queued_pod_info.pod_info.pod)
            ]
            if extenders or "SchedulerAsyncPreemption" not in self._context.gates:
                await self._run_with_periodic_tasks(self._attempt_with_extenders(queued_pod_info, extenders))
            else:
                self._attempt(queued_pod_info)
        except Exception as error:  # noqa: BLE001  logged with its traceback; one pod's error must not end the loop
            log.exception("scheduling pod %s failed", queued_pod_info.key)
            status = error_status(f"{type(error).__name__}: {error}")
            failure = AttemptFailure(status)
            handle_scheduling_failure(self._context, queued_pod_info, failure, self._context.clock.monotonic())
        return True

    def _attempt(self, queued_pod_info: QueuedPodInfo) -> None:
        context, start_time = self._context, self._context.clock.monotonic()
        profile = self._find_profile(queued_pod_info)
        if profile is None:
            return
        runtime = context.runtimes[profile.scheduler_name]
        with context.cache.read() as snapshot:
            decision = schedule_pod(
                queued_pod_info.pod_info, snapshot, profile, runtime, context.rng, context.node_sampler
            )
        context.metrics.observe_scheduling_algorithm(context.clock.monotonic() - start_time)
        if isinstance(decision, ScheduleFailure):
            self._handle_failure(queued_pod_info, decision, start_time)
        else:
            self._assume_and_bind(
                queued_pod_info, decision, start_time, context.cache.get_node(decision.suggested_host)
            )

    async def _attempt_with_extenders(self, queued_pod_info: QueuedPodInfo, extenders: Sequence[HttpExtender]) -> None:
        """Schedule the pod with the calls of extenders, and with evictions if the cycle waits for them."""
        context, start_time = self._context, self._context.clock.monotonic()
        profile = self._find_profile(queued_pod_info)
        if profile is None:
            return
        pod_info = queued_pod_info.pod_info
        with context.cache.read() as snapshot:
            decision = await schedule_with_extenders(context, pod_info, profile, extenders, snapshot)
            if isinstance(decision, ScheduleResult):
                decision = recheck_selected_node(context, pod_info, profile, snapshot, decision)
        context.metrics.observe_scheduling_algorithm(context.clock.monotonic() - start_time)
        if not is_still_pending(context, queued_pod_info):
            if isinstance(decision, ScheduleFailure):
                apply_plugin_effects(context, decision.rejections)
            context.queue.done(queued_pod_info.uid)
            return
        if isinstance(decision, ScheduleFailure):
            self._handle_failure(queued_pod_info, decision, start_time)
        else:
            self._assume_and_bind(queued_pod_info, decision, start_time)

    async def _run_with_periodic_tasks(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Await *coroutine* and run the periodic tasks meanwhile."""
        task = asyncio.create_task(pause_after(coroutine))
        try:
            while not (await asyncio.wait({task}, timeout=FLUSH_BACKOFF_SECONDS))[0]:
                self.run_periodic_tasks()
        finally:
            task.cancel()
        task.result()

    def _find_profile(self, queued_pod_info: QueuedPodInfo) -> Profile | None:
        """Return the profile of the pod. If the pod needs no scheduling, take it out of the queue and return None.

        A pod that exceeds a limit of `pod_limits` is requeued as after an error.
        """
        pod_info = queued_pod_info.pod_info
        profile = self._context.profiles.get(pod_info.spec.scheduler_name)
        if profile is None:
            log.error("profile not found for scheduler name %r", pod_info.spec.scheduler_name)
        elif not self._skip_pod_schedule(queued_pod_info):
            status = find_size_error(pod_info)
            if status is None:
                return profile
            failure = AttemptFailure(status)
            handle_scheduling_failure(self._context, queued_pod_info, failure, self._context.clock.monotonic())
            return None
        self._context.queue.done(queued_pod_info.uid)
        return None

    def _skip_pod_schedule(self, queued_pod_info: QueuedPodInfo) -> bool:
        """Return whether to skip the pod, because it is terminating or assigned. Record an event if it is terminating.

        A terminating pod is in no queue from now on, so that its nomination no longer counts.

        Source: pkg/scheduler/schedule_one.go, Scheduler.skipPodSchedule;
        pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.nominatedPodToInfo (1.36).
        """
        pod = queued_pod_info.pod_info.pod
        if pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.key}"
            self._context.recorder.event(pod, PodEvent("FailedScheduling", "Scheduling", note, warning=True))
            if not pod.spec.node_name:
                self._context.cache.nominate(pod, "")
            return True
        cache = self._context.cache
        if is_deferred_resize(self._context, pod):
            return cache.is_assumed(queued_pod_info.uid)
        return queued_pod_info.uid in cache.assigned_pods

    def _handle_failure(self, queued_pod_info: QueuedPodInfo, decision: ScheduleFailure, start_time: float) -> None:
        pod = queued_pod_info.pod_info.pod
        failure = AttemptFailure(
            decision.status,
            decision.rejectors,
            decision.nominated_node,
            decision.diagnosis.pending_rejectors & decision.rejectors,
        )
        # The evictions start first, so that PreEnqueue gates the pod until they end, whatever happened in the attempt.
        execute_post_filter_plans(self._context, pod, decision.post_filter_plans.values())
        apply_plugin_effects(self._context, decision.rejections)
        handle_scheduling_failure(self._context, queued_pod_info, failure, start_time)

    def _assume_and_bind(
        self,
        queued_pod_info: QueuedPodInfo,
        decision: ScheduleResult,
        start_time: float,
        node_at_decision: Node | None = None,
    ) -> None:
        """Assume the pod, run Reserve and Permit, and start the binding cycle.

        *start_time* is the start of the attempt, on the monotonic clock. *node_at_decision* is the node object in the
        scheduling cycle; None if the node may have changed since then.

        Source: pkg/scheduler/schedule_one.go, Scheduler.assume, Scheduler.assumeAndReserve,
        Scheduler.prepareForBindingCycle (1.36).
        """
        context, pod_info = self._context, queued_pod_info.pod_info
        if queued_pod_info.uid in context.cache.assigned_pods:  # a deferred resize that fits
            message = f"pod {pod_info.uid}({pod_info.key}) is in the cache, so can't be assumed"
            failure = AttemptFailure(error_status(message))
            handle_scheduling_failure(context, queued_pod_info, failure, start_time)
            return
        profile = context.profiles[pod_info.spec.scheduler_name]
        pod = binding_cycle.make_assumed_pod(pod_info.pod, decision.suggested_host, profile, decision.cycle_state)
        assigned_pod_info = context.cache.assume(pod, decision.suggested_host)
        task = BindingTask(queued_pod_info, assigned_pod_info, profile, decision.cycle_state, start_time)
        task.node_at_decision = node_at_decision
        task.evaluated_nodes, task.feasible_nodes = decision.evaluated_nodes, decision.feasible_nodes
        try:
            status = self._reserve_and_permit(task)
        except Exception as error:  # noqa: BLE001  logged with its traceback; the pod must not stay assumed
            log.exception("scheduling pod %s failed", queued_pod_info.key)
            status = error_status(f"{type(error).__name__}: {error}")
        if status is not None:
            fail_binding(context, task, status)
            return
        run_in_background(context, run_binding_cycle(context, task))

    def _reserve_and_permit(self, task: BindingTask) -> Status | None:
        """Run Reserve and Permit; return the status that ends the attempt, or None if the binding cycle begins."""
        context, pod_info, node_name = self._context, task.queued_pod_info.pod_info, task.assigned_pod_info.node_name
        arguments = task.profile, context.runtimes[task.profile.scheduler_name], task.cycle_state
        with context.cache.read() as snapshot:
            status = binding_cycle.run_reserve_plugins(pod_info, node_name, snapshot, *arguments)
        if status is not None:
            return status
        with context.cache.read() as snapshot:
            permit_outcome = binding_cycle.run_permit_plugins(pod_info, node_name, snapshot, *arguments)
        apply_plugin_effects(context, permit_outcome.signals, permit_outcome.pods_to_activate)
        if not permit_outcome.timeouts:
            return permit_outcome.status
        now = context.clock.monotonic()
        task.waiting_pod = context.waiting_pods.add(pod_info, node_name, permit_outcome.timeouts, now)
        context.permit_decided_events[pod_info.uid] = task.permit_decided
        return None

    # -- events

    def _time_pod_event(self, pod: Pod, *actions: ActionType) -> ExitStack:
        """Return a context that measures the handling of *actions* on a pod without a node.

        Its own updates have the labels of other pods' updates.

        Source: pkg/scheduler/eventhandlers.go, Scheduler.updatePodInSchedulingQueue (1.37).
        """
        release, stack = self._context.profiles[pod.spec.scheduler_name].release, ExitStack()
        for label in {make_pod_event(release, EventResource.UNSCHEDULED_POD, action).label for action in actions}:
            stack.enter_context(self._context.metrics.time_event_handling(label))
        return stack

    def on_pending_pod_add(self, pod: Pod) -> None:
        """Add a new pod without a node, or a pod whose resize was deferred, to the queue.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.moveToActiveQ (1.36),
        PriorityQueue.addPod (1.37).
        """
        with self._time_pod_event(pod, ActionType.ADD):
            self._context.queue.add(self._context.cache.make_pod_info(pod), self._context.clock.monotonic())
            if pod.status.nominated_node_name and not pod.spec.node_name and self._may_be_nominated(pod):
                self._context.cache.nominate(pod, pod.status.nominated_node_name)
            if self._gang_scheduling_enabled:  # the new pod may complete a gang
                release = self._context.profiles[pod.spec.scheduler_name].release
                event = make_pod_event(release, EventResource.UNSCHEDULED_POD, ActionType.ADD, None, pod)
                self._context.queue.move_all_to_active_or_backoff_queue(event, self._context.clock.monotonic())
            self._context.wake()

    def _may_be_nominated(self, pod: Pod) -> bool:
        """Return whether a new pod counts as nominated. In 1.36 a gated one does not, until it is updated."""
        queued_pod = self._context.queue.get_pod(pod.key)
        is_gated = queued_pod is not None and queued_pod.gating_plugin != ""
        return not is_gated or self._context.profiles[pod.spec.scheduler_name].release.nominates_gated_pods

    def on_pending_pod_update(self, old: Pod, new: Pod, events: list[ClusterEvent]) -> None:
        """Update a pending pod in the queue, and its nomination. A nomination that no status has stays.

        Source: pkg/scheduler/backend/queue/nominator.go, nominator.UpdateNominatedPod (1.36).
        """
        with self._time_pod_event(new, ActionType.UPDATE, *(event.action for event in events)):
            has_nomination = old.status.nominated_node_name or new.status.nominated_node_name
            if has_nomination and not new.spec.node_name:
                self._context.cache.nominate(new, new.status.nominated_node_name)
            self._context.queue.update(self._context.cache.make_pod_info(new), events, self._context.clock.monotonic())
            self._context.wake()

    def on_pending_pod_delete(self, pod: Pod) -> None:
        """Remove from the queue a pod that was deleted, got a node, or whose resize is not deferred any more."""
        with self._time_pod_event(pod, ActionType.DELETE):
            self._context.queue.delete(pod, self._context.clock.monotonic())

    def on_assigned_pod_update(self, events: list[ClusterEvent]) -> None:
        """Handle the *events* of a changed pod on a node, and measure that as one update."""
        with self._context.metrics.time_event_handling("AssignedPodUpdate"):
            super().on_assigned_pod_update(events)

    def on_assumed_pod_update(self, pod: Pod, events: list[ClusterEvent]) -> None:
        """Measure the update of an assumed pod, which changes nothing in the queue."""
        with self._time_pod_event(pod, ActionType.UPDATE, *(event.action for event in events)):
            pass

    def on_assumed_pod_delete(self, assumed_pod: AssignedPodInfo) -> None:
        """Stop the binding of an assumed pod that is terminating or deleted, and requeue pods that may fit without it.

        Source: pkg/scheduler/eventhandlers.go, Scheduler.handleAssumedPodDeletion (1.36).
        """
        waiting_pod = self._context.waiting_pods.get(assumed_pod.uid)
        if waiting_pod is not None:
            waiting_pod.reject("", "removed")
            resume_decided_pods(self._context)
        else:
            self._context.cache.forget(assumed_pod.pod)
        requeue_after_pod_removal(self._context, assumed_pod)

    def on_cluster_event(self, event: ClusterEvent, *, max_priority: int | None = None) -> None:
        """Requeue the pods of at most *max_priority* that the event may make schedulable; None means no limit.

        An event with a limit is a part of another event, which is measured.
        """
        with nullcontext() if max_priority is not None else self._context.metrics.time_event_handling(event.label):
            if event.resource in (EventResource.POD_GROUP, EventResource.COMPOSITE_POD_GROUP):
                self._context.queue.update_pod_group(event.old, event.new, self._context.clock.monotonic())
            pre_check = (
                None
                if max_priority is None
                else (lambda queued_pod_info: queued_pod_info.pod_info.priority <= max_priority)
            )
            self._context.queue.move_all_to_active_or_backoff_queue(event, self._context.clock.monotonic(), pre_check)
            self._context.wake()
