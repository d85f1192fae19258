"""The scheduling queue: activeQ, backoffQ, unschedulable pods and pods in flight.

The caller passes the time, in seconds of one clock. No call waits: the caller checks `can_pop` after each call.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue (1.36).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from extender.basics.heap import KeyedHeap
from extender.cache.pod_info import PodInfo
from extender.framework.events import ActionType, ClusterEvent, EventResource, make_pod_event
from extender.framework.profiles import Profile
from extender.framework.status import Status
from extender.queueing.backoff_queue import BackoffQueue
from extender.queueing.in_flight_events import InFlightEvents
from extender.queueing.queue_settings import QueueSettings
from extender.queueing.queued_pod_info import QueuedPodInfo
from extender.queueing.queueing_hints import QueueingHintObserver, QueueingHints, QueueingStrategy, is_wildcard_event

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE, POP_FROM_BACKOFF_Q = "BackoffComplete", "PopFromBackoffQ"
FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT = "ForceActivate", "UnschedulableTimeout"
"""Labels of events that do not come from the API server.

Source: kube-scheduler/framework/types.go, ClusterEvent.Label (1.36).
"""

PreEnqueueRunner = Callable[[PodInfo, str], Status | None]
"""Runs the PreEnqueue plugins for a pod, and returns the status of the plugin that gates it, or None.

The second argument is the name of the plugin to run first, or "".

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreEnqueuePlugins (1.36).
"""

MoveObserver = Callable[[str, str], None]
"""Called with the queue to which a pod was added (active, backoff, unschedulable), and the label of the event.

Source: pkg/scheduler/metrics/metrics.go, SchedulerQueueIncomingPods (1.36).
"""


class SchedulingQueue:
    """A queue of pods, each in at most one of activeQ, backoffQ, the unschedulable pods and the pods in flight.

    Gated pods are among the unschedulable pods.

    Attributes:
        release: the emulated release, which is that of all profiles.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue (1.36).
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        run_pre_enqueue: PreEnqueueRunner,
        settings: QueueSettings,
        *,
        on_hint: QueueingHintObserver | None = None,
        on_move: MoveObserver | None = None,
    ) -> None:
        """Create an empty queue.

        Args:
            profiles: the profiles by scheduler name; all have the same QueueSort plugin.
            run_pre_enqueue: runs the PreEnqueue plugins.
            settings: durations and gates.
            on_hint: called after every queueing hint.
            on_move: called for every pod that is added to a queue.
        """
        profile = next(iter(profiles.values()))

        def sort_key(pod: QueuedPodInfo) -> Any:
            return profile.queue_sort.sort_key(pod.queue_sort_entry)

        self._run_pre_enqueue, self._settings, self._on_move = run_pre_enqueue, settings, on_move
        self.release = profile.release
        self._active_q: KeyedHeap[QueuedPodInfo] = KeyedHeap(lambda pod: pod.key, sort_key)
        self._backoff_q = BackoffQueue(
            sort_key,
            initial_backoff=settings.initial_backoff,
            max_backoff=settings.max_backoff,
            align_to_windows=settings.pop_from_backoff_q,
        )
        self._unschedulable_pods: dict[str, QueuedPodInfo] = {}
        self._in_flight_events = InFlightEvents()
        self._queueing_hints = QueueingHints(profiles, on_hint)

    # -- read

    @property
    def can_pop(self) -> bool:
        """Whether `pop` returns a pod.

        Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop (1.36).
        """
        return len(self._active_q) > 0 or (self._settings.pop_from_backoff_q and self._backoff_q.can_pop_backoff)

    def count_pending_pods(self) -> dict[str, int]:
        """Return the number of pods in each queue, with the queue names of the metric pending_pods.

        Source: pkg/scheduler/metrics/metrics.go, pendingPods; pkg/scheduler/backend/queue/unschedulable_pods.go,
        unschedulablePods.updateMetricsOnStateChange (1.36).
        """
        gated_count = sum(1 for pod in self._unschedulable_pods.values() if pod.gating_plugin)
        return {
            "active": len(self._active_q),
            "backoff": len(self._backoff_q),
            "unschedulable": len(self._unschedulable_pods) - gated_count,
            "gated": gated_count,
        }

    @property
    def in_flight_events(self) -> InFlightEvents:
        """The pods in flight and the events since they were popped; do not modify them."""
        return self._in_flight_events

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from self._active_q
        yield from self._backoff_q
        yield from list(self._unschedulable_pods.values())

    def get_pod(self, key: str) -> QueuedPodInfo | None:
        """Return the queued pod with *key* (`namespace/name`); None if the pod is in flight or not in the queue."""
        return self._active_q.get(key) or self._backoff_q.get(key) or self._unschedulable_pods.get(key)

    # -- add, update and delete

    def add(self, pod_info: PodInfo, now: float) -> None:
        """Add a new pod. Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Add (1.36)."""
        event = make_pod_event(self.release, EventResource.UNSCHEDULED_POD, ActionType.ADD)
        self._move_to_active_q(QueuedPodInfo(pod_info, now), event.label, now)

    def update(self, pod_info: PodInfo, events: Iterable[ClusterEvent], now: float) -> None:
        """Update a pod; *events* has one event for each changed property.

        Source: pkg/scheduler/backend/queue/active_queue.go, unlockedActiveQueue.addEventsIfPodInFlight;
        pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Update (1.36).
        """
        if pod_info.uid in self._in_flight_events:
            for event in events:
                self._in_flight_events.add_event(event)
            return
        queued_pod = self.get_pod(pod_info.key)
        if queued_pod is None or queued_pod.uid != pod_info.uid:
            self.add(pod_info, now)
            return
        queued_pod.pod_info = pod_info
        for heap in (self._active_q, self._backoff_q):
            if pod_info.key in heap:
                heap.add_or_update(queued_pod)
                return
        for event in events:
            strategy = self._queueing_hints.is_pod_worth_requeuing(queued_pod, event)
            if self._requeue_with_strategy(queued_pod, strategy, event.label, now):
                return

    def delete(self, key: str) -> None:
        """Remove a pod that was deleted or assigned.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Delete (1.36).
        """
        if self._active_q.remove(key) is None and self._backoff_q.remove(key) is None:
            self._unschedulable_pods.pop(key, None)

    # -- attempts

    def pop(self) -> QueuedPodInfo | None:
        """Pop the next pod, which is then in flight; return None if no pod can be popped.

        Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop,
        activeQueue.unlockedMovePodToInFlight (1.36).
        """
        while True:
            pod = self._active_q.pop()
            if pod is None and self._settings.pop_from_backoff_q:
                pod = self._backoff_q.pop_backoff()
                if pod is not None:
                    self._observe_move("active", POP_FROM_BACKOFF_Q)
            if pod is None:
                return None
            if self._in_flight_events.add_pod(pod):
                pod.attempts += 1
                return pod

    def pop_specific_pod(self, pod_info: PodInfo, now: float) -> QueuedPodInfo | None:
        """Pop the pod *pod_info*, which is then in flight; return None if the pod is not queued or is gated.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.PopSpecificPod (1.36).
        """
        self._activate(pod_info, now)
        pod = self._active_q.remove(pod_info.key)
        if pod is None or not self._in_flight_events.add_pod(pod):
            return None
        pod.attempts += 1
        return pod

    def done(self, uid: str) -> None:
        """Remove the pod with *uid* from the pods in flight, after it was assumed, bound or deleted.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Done (1.36).
        """
        self._in_flight_events.done(uid)

    def add_unschedulable_if_not_present(self, pod: QueuedPodInfo, now: float) -> None:
        """Requeue a popped pod that could not be scheduled.

        A rejected pod backs off if an event during the attempt may make it schedulable. Otherwise it waits for such an
        event among the unschedulable pods.

        The caller has set `unschedulable_plugins` and `pending_plugins`. If both are empty, the attempt ended with an
        error and the pod backs off.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.AddUnschedulableIfNotPresent,
        PriorityQueue.determineSchedulingHintForInFlightPod (1.36).
        """
        try:
            if self.get_pod(pod.key) is not None:
                return
            if pod.rejector_plugins:
                pod.unschedulable_count, pod.consecutive_error_count = pod.unschedulable_count + 1, 0
            else:
                pod.consecutive_error_count += 1
            pod.timestamp, pod.was_flushed_from_unschedulable = now, False
            events: Iterable[ClusterEvent] | None = self._in_flight_events.get_events_since_pop(pod.uid)
            strategy = QueueingStrategy.AFTER_BACKOFF
            if pod.rejector_plugins and events is not None and not self._is_pod_group_member(pod):
                strategy = self._queueing_hints.get_strategy_for_events(pod, events)
            self._requeue_with_strategy(pod, strategy, SCHEDULE_ATTEMPT_FAILURE, now)
            events = self._in_flight_events.get_events_since_pop(pod.uid) or ()
            if pod.gating_plugin and self._queueing_hints.get_strategy_for_events(pod, events):
                pod.event_while_gated = SCHEDULE_ATTEMPT_FAILURE
        finally:
            self._in_flight_events.done(pod.uid)

    def _is_pod_group_member(self, pod: QueuedPodInfo) -> bool:
        return self._settings.generic_workload and pod.pod_info.spec.scheduling_group is not None

    # -- moves

    def move_all_to_active_or_backoff_queue(
        self, event: ClusterEvent, now: float, pre_check: Callable[[QueuedPodInfo], bool] | None = None
    ) -> None:
        """Requeue the unschedulable pods that *event* may make schedulable.

        Args:
            event: the cluster event.
            now: the time in seconds.
            pre_check: selects the pods to consider; None considers all.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.moveAllToActiveOrBackoffQueue,
        PriorityQueue.isPodWorthRequeuing, PriorityQueue.movePodsToActiveOrBackoffQueue;
        pkg/scheduler/framework/types.go, MatchClusterEvents (1.36).
        """
        self._backoff_q.release_held_pods()
        if self._queueing_hints.is_event_of_interest(event):
            pods = [pod for pod in self._unschedulable_pods.values() if pre_check is None or pre_check(pod)]
            self._move_to_active_or_backoff_queue(pods, event, now)

    def _move_to_active_or_backoff_queue(self, pods: list[QueuedPodInfo], event: ClusterEvent, now: float) -> None:
        for pod in pods:
            if pod.gating_plugin and not self._may_ungate(pod, event):
                continue
            strategy = self._queueing_hints.is_pod_worth_requeuing(pod, event)
            if strategy is not QueueingStrategy.SKIP:
                self._unschedulable_pods.pop(pod.key)  # so that `on_move` is called if the pod is gated again
                self._requeue_with_strategy(pod, strategy, event.label, now)
                pod.event_while_gated = event.label if pod.gating_plugin else ""
        self._in_flight_events.add_event(event)

    def _may_ungate(self, pod: QueuedPodInfo, event: ClusterEvent) -> bool:
        if self.release.reevaluates_gated_pods and is_wildcard_event(event):
            return True
        return any(registered_event.matches(event) for registered_event in pod.gating_plugin_events)

    def retry_gated_pod(self, key: str, now: float) -> None:
        """Requeue the gated pod with *key* if an event would have requeued it while it was gated."""
        pod = self._unschedulable_pods.get(key)
        if pod is not None and pod.event_while_gated:
            self._requeue_with_strategy(pod, QueueingStrategy.AFTER_BACKOFF, pod.event_while_gated, now)

    def activate(self, pod_infos: Iterable[PodInfo], now: float) -> None:
        """Move *pod_infos* to the active queue. Pods in flight are moved when they are requeued.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Activate (1.36).
        """
        for pod_info in pod_infos:
            if not self._activate(pod_info, now) and pod_info.uid in self._in_flight_events:
                event = ClusterEvent(EventResource.ANY, ActionType.ALL, new=pod_info.pod, label_override=FORCE_ACTIVATE)
                self._in_flight_events.add_event(event)

    def _activate(self, pod_info: PodInfo, now: float) -> bool:
        """Move a pod from backoffQ or the unschedulable pods to activeQ; return whether the pod was there."""
        was_backing_off = pod_info.key in self._backoff_q
        pod = self._backoff_q.remove(pod_info.key) or self._unschedulable_pods.get(pod_info.key)
        if pod is not None:
            self._move_to_active_q(pod, FORCE_ACTIVATE, now, passed_pre_enqueue=was_backing_off)
        return pod is not None

    def flush_backoff_q_completed(self, now: float) -> None:
        """Move the pods whose backoff has expired to the active queue. Called every second.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushBackoffQCompleted (1.36).
        """
        for pod in self._backoff_q.pop_all_backoff_completed(now):
            self._move_to_active_q(pod, BACKOFF_COMPLETE, now, passed_pre_enqueue=True)

    def flush_unschedulable_pods_leftover(self, now: float) -> None:
        """Requeue the pods that were unschedulable for too long. Called every 30 seconds.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushUnschedulablePodsLeftover,
        PriorityQueue.movePodsToActiveOrBackoffQueue (1.36); PriorityQueue.flushUnschedulableEntitiesLeftover (1.37).
        """
        max_seconds = self._settings.max_in_unschedulable_pods_duration
        pods = self._unschedulable_pods.values()
        leftover_pods = [pod for pod in pods if now - max(pod.timestamp, pod.flush_timestamp) > max_seconds]
        for pod in leftover_pods:
            pod.was_flushed_from_unschedulable = True
            if self.release.reevaluates_gated_pods:
                pod.flush_timestamp = now
        if leftover_pods:
            event = ClusterEvent(EventResource.ANY, ActionType.ALL, label_override=UNSCHEDULABLE_TIMEOUT)
            self._move_to_active_or_backoff_queue(leftover_pods, event, now)

    def _requeue_with_strategy(
        self, pod: QueuedPodInfo, strategy: QueueingStrategy, event_label: str, now: float
    ) -> bool:
        """Add *pod* to the queue that *strategy* selects; return whether the pod is now in activeQ or backoffQ.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.requeuePodWithQueueingStrategy (1.36).
        """
        if strategy is QueueingStrategy.SKIP:
            self._add_to_unschedulable_pods(pod, event_label)
            return False
        if strategy is QueueingStrategy.AFTER_BACKOFF and self._backoff_q.is_pod_backing_off(pod, now):
            if self._settings.pop_from_backoff_q and not self._passes_pre_enqueue(pod, event_label):
                return False
            self._unschedulable_pods.pop(pod.key, None)
            self._backoff_q.add_or_update(pod, hold_until_event=self._is_pod_group_member(pod))
            self._observe_move("backoff", event_label)
            return True
        return self._move_to_active_q(pod, event_label, now)

    def _move_to_active_q(
        self, pod: QueuedPodInfo, event_label: str, now: float, *, passed_pre_enqueue: bool = False
    ) -> bool:
        """Move *pod* to the active queue unless a PreEnqueue plugin gates it; return whether it was moved.

        *passed_pre_enqueue* means that the plugins already ran when the pod entered the backoff queue.
        """
        skip_pre_enqueue = passed_pre_enqueue and self._settings.pop_from_backoff_q
        if not skip_pre_enqueue and not self._passes_pre_enqueue(pod, event_label):
            return False
        self._unschedulable_pods.pop(pod.key, None)
        self._backoff_q.remove(pod.key)
        if pod.initial_attempt_timestamp is None:
            pod.initial_attempt_timestamp = now
        self._active_q.add_or_update(pod)
        self._observe_move("active", event_label)
        return True

    def _passes_pre_enqueue(self, pod: QueuedPodInfo, event_label: str) -> bool:
        """Return whether no PreEnqueue plugin gates *pod*; a gated pod is added to the unschedulable pods."""
        status = self._run_pre_enqueue(pod.pod_info, pod.gating_plugin)
        if status is None:
            pod.gating_plugin, pod.gating_plugin_events, pod.event_while_gated = "", (), ""
            return True
        if self.release.reevaluates_gated_pods:
            pod.was_flushed_from_unschedulable = False
        pod.gating_plugin = status.plugin
        pod.gating_plugin_events = self._queueing_hints.get_registered_events(
            pod.pod_info.spec.scheduler_name, status.plugin
        )
        pod.unschedulable_plugins |= {status.plugin}
        self._add_to_unschedulable_pods(pod, event_label)
        return False

    def _add_to_unschedulable_pods(self, pod: QueuedPodInfo, event_label: str) -> None:
        if pod.key not in self._unschedulable_pods:
            self._unschedulable_pods[pod.key] = pod
            self._observe_move("unschedulable", event_label)

    def _observe_move(self, queue: str, event_label: str) -> None:
        if self._on_move:
            self._on_move(queue, event_label)
