"""The scheduling queue: activeQ, backoffQ, unschedulable pods and pods in flight.

The caller passes the time, in seconds of one clock. No call waits: the caller checks `can_pop` after each call.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from extender.api.kinds.pod import Pod
from extender.cache.group_hierarchy import Group
from extender.cache.pod_info import PodInfo
from extender.framework.events import ActionType, ClusterEvent, EventResource, make_pod_event
from extender.queueing.entity_queues import SCHEDULE_ATTEMPT_FAILURE, EntityQueues
from extender.queueing.in_flight_events import InFlightEvents
from extender.queueing.queued_entities import (
    QueuedEntity,
    QueuedPodGroupInfo,
    QueuedPodInfo,
    get_entity_type,
    get_queued_group_key,
)
from extender.queueing.queueing_hints import QueueingStrategy, is_wildcard_event

BACKOFF_COMPLETE, POP_FROM_BACKOFF_Q = "BackoffComplete", "PopFromBackoffQ"
FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT = "ForceActivate", "UnschedulableTimeout"
"""Labels of events that do not come from the API server.

Source: kube-scheduler/framework/types.go, ClusterEvent.Label (1.36).
"""


class SchedulingQueue:
    """A queue of pods, each in at most one of activeQ, backoffQ, the unschedulable pods and the pods in flight.

    Gated pods are among the unschedulable pods. The entities of this class are pods; those of its subclass
    `PodGroupQueue` are also pod groups.

    Attributes:
        release: the emulated release, which is that of all profiles.
        in_flight_events: the pods in flight and the events since they were popped; read-only for others.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue (1.36).
    """

    def __init__(self, queues: EntityQueues) -> None:
        """Create a queue from empty *queues*."""
        self._queues, self.in_flight_events = queues, InFlightEvents()
        self._queueing_hints, self._settings, self.release = queues.hints, queues.settings, queues.gates.release

    # -- read

    @property
    def can_pop(self) -> bool:
        """Whether `pop` returns a pod.

        Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop (1.36).
        """
        return len(self._queues.active_q) > 0 or (
            self._queues.pops_from_backoff_q and self._queues.backoff_q.can_pop_backoff
        )

    def count_pending_pods(self) -> dict[str, int]:
        """Return the number of pods in each queue, with the queue names of the metric pending_pods.

        Source: pkg/scheduler/metrics/metrics.go, pendingPods; pkg/scheduler/backend/queue/unschedulable_pods.go,
        unschedulablePods.updateMetricsOnStateChange (1.36).
        """
        counts = {
            queue: sum(len(entity.pods) for entity in entities)
            for queue, entities in self._queues.list_by_queue().items()
        }
        return counts | dict.fromkeys(("incomplete", "pending") if self.release.queues_pod_groups else (), 0)

    def count_entities(self) -> dict[tuple[str, str], int]:
        """Return the number of entities by queue and type, with the labels of the metric queued_entities.

        Source: pkg/scheduler/metrics/metrics.go, queuedEntities (1.37).
        """
        return {
            (queue, kind): sum(get_entity_type(entity) == kind for entity in entities)
            for queue, entities in self._queues.list_by_queue().items()
            for kind in ("pod", "podgroup")
        }

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        for entity in self._queues:
            yield from entity.pods

    def get_pod(self, key: str) -> QueuedPodInfo | None:
        """Return the queued pod with *key* (`namespace/name`); None if the pod is in flight or not in the queue."""
        entity = self.find_entity(key)
        return next((pod for pod in entity.pods if pod.key == key), None) if entity is not None else None

    def find_entity(self, key: str) -> QueuedEntity | None:
        """Return the queued entity that has the pod *key*; None if the pod is in flight or not in the queue."""
        return self._queues.get(key)

    def get_backoff_seconds(self, key: str, now: float) -> float:
        """Return the seconds until the backoff of the queued pod *key*, or of its group, ends; 0 if it has ended."""
        entity = self.find_entity(key)
        return 0.0 if entity is None else max(0.0, self._queues.backoff_q.get_backoff_expiration(entity) - now)

    # -- add, update and delete

    def add(self, pod_info: PodInfo, now: float) -> None:
        """Add a new pod. Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Add (1.36)."""
        event = make_pod_event(self.release, EventResource.UNSCHEDULED_POD, ActionType.ADD)
        self._add_pod(QueuedPodInfo(pod_info, timestamp=now), event.label, now)

    def _add_pod(self, pod: QueuedPodInfo, event_label: str, now: float) -> None:
        self._queues.move_to_active_q(pod, event_label, now)

    def update(self, pod_info: PodInfo, events: Iterable[ClusterEvent], now: float) -> None:
        """Update a pod; *events* has one event for each changed property.

        Source: pkg/scheduler/backend/queue/active_queue.go, unlockedActiveQueue.addEventsIfPodInFlight;
        pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Update (1.36).
        """
        if pod_info.uid in self.in_flight_events:
            for event in events:
                self.in_flight_events.add_event(event)
            return
        queued_pod = self.get_pod(pod_info.key)
        if queued_pod is None or queued_pod.uid != pod_info.uid:
            self.add(pod_info, now)
            return
        queued_pod.pod_info = pod_info
        entity = self.find_entity(pod_info.key)
        if entity is None:
            return
        if entity.key in self._queues.unschedulable_entities:
            self._queues.unschedulable_entities.add_or_update(entity)
        for heap in (self._queues.active_q, self._queues.backoff_q):
            if entity.key in heap:
                heap.add_or_update(entity)
                return
        for event in events:
            if self._queues.requeue_with_strategy(entity, self._queues.get_strategy(entity, event), event.label, now):
                return

    def delete(self, pod: Pod, now: float) -> None:
        """Remove a pod that was deleted or assigned.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Delete (1.36).
        """
        del now  # only the queue of a subclass changes otherwise
        self._queues.remove(pod.key)

    def update_pod_group(self, old: Group | None, new: Group | None, now: float) -> None:
        """Handle a group that was added, changed or deleted: *old* is None, neither, or *new* is None."""

    # -- attempts

    def pop(self) -> QueuedEntity | None:
        """Pop the next entity, whose pods are then in flight; return None if none can be popped.

        Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop,
        activeQueue.unlockedMovePodToInFlight (1.36).
        """
        while True:
            entity = self._queues.active_q.pop()
            if entity is None and self._queues.pops_from_backoff_q:
                entity = self._queues.backoff_q.pop_backoff()
                if entity is not None:
                    self._queues.observe_move("active", entity, POP_FROM_BACKOFF_Q)
            if entity is None or self._move_to_in_flight(entity):
                return entity

    def _move_to_in_flight(self, entity: QueuedEntity) -> bool:
        """Move the pods of *entity* to the pods in flight; return False if all of them were there already.

        Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedMoveEntityToInFlight (1.37).
        """
        entity.attempts += 1
        for pod in tuple(entity.pods):
            if not self.in_flight_events.add_pod(pod):
                if not isinstance(entity, QueuedPodGroupInfo):
                    return False
                entity.members.remove(pod)
            elif pod is not entity:
                pod.attempts += 1
        return len(entity.pods) > 0

    def pop_specific_pod(self, pod_info: PodInfo, now: float) -> QueuedPodInfo | None:
        """Pop the pod *pod_info*, which is then in flight; return None if the pod is not queued or is gated.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.PopSpecificPod (1.36).
        """
        self._activate(pod_info.key, now)
        pod = self._queues.active_q.remove(pod_info.key)
        return pod if isinstance(pod, QueuedPodInfo) and self._move_to_in_flight(pod) else None

    def done(self, uid: str) -> None:
        """Remove the pod with *uid* from the pods in flight, after it was assumed, bound or deleted.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Done (1.36).
        """
        self.in_flight_events.done(uid)

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
            pod.count_failure(is_rejected=bool(pod.rejector_plugins))
            pod.timestamp, pod.was_flushed_from_unschedulable = now, False
            events: Iterable[ClusterEvent] | None = self.in_flight_events.get_events_since_pop(pod.uid)
            strategy = QueueingStrategy.AFTER_BACKOFF
            group_key = get_queued_group_key(pod.pod_info.pod) if "GenericWorkload" in self._queues.gates else None
            if pod.rejector_plugins and events is not None and group_key is None:
                strategy = self._queueing_hints.get_strategy_for_events(pod, events)
            self._queues.requeue_with_strategy(pod, strategy, SCHEDULE_ATTEMPT_FAILURE, now)
            events = self.in_flight_events.get_events_since_pop(pod.uid) or ()
            if pod.gating_plugin and self._queueing_hints.get_strategy_for_events(pod, events):
                pod.event_while_gated = SCHEDULE_ATTEMPT_FAILURE
        finally:
            self.in_flight_events.done(pod.uid)

    # -- moves

    def move_all_to_active_or_backoff_queue(
        self, event: ClusterEvent, now: float, pre_check: Callable[[QueuedPodInfo], bool] | None = None
    ) -> None:
        """Requeue the unschedulable pods that *event* may make schedulable.

        *pre_check* selects the pods to consider; None considers all.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.moveAllToActiveOrBackoffQueue,
        PriorityQueue.isPodWorthRequeuing, PriorityQueue.movePodsToActiveOrBackoffQueue;
        pkg/scheduler/framework/types.go, MatchClusterEvents (1.36).
        """
        self._queues.backoff_q.release_held_pods()
        if self._queueing_hints.is_event_of_interest(event):
            filters = [] if "CompositePodGroup" in self._queues.gates else self._queueing_hints.find_filters(event)
            entities = [
                entity
                for entity in self._queues.unschedulable_entities.list_entities(
                    partial(self._queueing_hints.may_concern, event),
                    partial(self._queueing_hints.may_concern_equal_pods, event),
                    partial(self._queueing_hints.find_concerned, event),
                )
                if any(
                    (pre_check is None or pre_check(pod))
                    and (not filters or any(concerns(pod.pod_info) for concerns in filters))
                    for pod in entity.pods
                )
            ]
            self._move_to_active_or_backoff_queue(entities, event, now)

    def _move_to_active_or_backoff_queue(self, entities: list[QueuedEntity], event: ClusterEvent, now: float) -> None:
        for entity in entities:
            if entity.gating_plugin and not self._may_ungate(entity, event):
                continue
            strategy = self._queues.get_strategy(entity, event)
            if strategy is not QueueingStrategy.SKIP:
                # Removed first, so that `on_move` is called if it is gated again.
                self._queues.unschedulable_entities.remove(entity.key)
                self._queues.requeue_with_strategy(entity, strategy, event.label, now)
                entity.event_while_gated = event.label if entity.gating_plugin else ""
        self.in_flight_events.add_event(event)

    def _may_ungate(self, entity: QueuedEntity, event: ClusterEvent) -> bool:
        if self.release.reevaluates_gated_pods and is_wildcard_event(event):
            return True
        return any(registered_event.matches(event) for registered_event in entity.gating_plugin_events)

    def retry_gated_pod(self, key: str, now: float) -> None:
        """Requeue the gated entity of pod *key* if an event would have requeued it while it was gated."""
        entity = self.find_entity(key)
        if entity is not None and entity.gating_plugin and entity.event_while_gated:
            self._queues.requeue_with_strategy(entity, QueueingStrategy.AFTER_BACKOFF, entity.event_while_gated, now)

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        """Move *pods* to the active queue. Pods in flight are moved when they are requeued.

        A gang activates all its members again for each member, so members in flight get only one event.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Activate (1.36).
        """
        pods_with_event = self.in_flight_events.pods_with_own_event
        for pod in [pod for pod in pods if pod.metadata.uid not in pods_with_event]:
            uid = pod.metadata.uid
            if uid not in self.in_flight_events:
                self._activate_pod(pod, now)
            else:
                event = ClusterEvent(EventResource.ANY, ActionType.ALL, new=pod, label_override=FORCE_ACTIVATE)
                self.in_flight_events.add_own_event(uid, event)

    def _activate_pod(self, pod: Pod, now: float) -> None:
        self._activate(pod.key, now)

    def _activate(self, key: str, now: float) -> bool:
        """Move an entity from backoffQ or the unschedulable ones to activeQ; return whether it was there and moved."""
        was_backing_off = key in self._queues.backoff_q
        entity = self._queues.backoff_q.remove(key) or self._queues.unschedulable_entities.get(key)
        if entity is None:
            return False
        return self._queues.move_to_active_q(entity, FORCE_ACTIVATE, now, passed_pre_enqueue=was_backing_off)

    def flush_backoff_q_completed(self, now: float) -> None:
        """Move the pods whose backoff has expired to the active queue. Called every second.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushBackoffQCompleted (1.36).
        """
        for entity in self._queues.backoff_q.pop_all_backoff_completed(now):
            self._queues.move_to_active_q(entity, BACKOFF_COMPLETE, now, passed_pre_enqueue=True)

    def flush_unschedulable_pods_leftover(self, now: float) -> None:
        """Requeue the pods that were unschedulable for too long. Called every 30 seconds.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushUnschedulablePodsLeftover,
        PriorityQueue.movePodsToActiveOrBackoffQueue (1.36); PriorityQueue.flushUnschedulableEntitiesLeftover (1.37).
        """
        max_seconds = self._settings.max_in_unschedulable_pods_duration
        leftover_entities = [
            entity
            for entity in self._queues.unschedulable_entities
            if now - max(entity.timestamp, entity.flush_timestamp) > max_seconds
        ]
        for entity in leftover_entities:
            for queued in (entity, *entity.pods):
                queued.was_flushed_from_unschedulable = True
            if self.release.reevaluates_gated_pods:
                entity.flush_timestamp = now
        if leftover_entities:
            event = ClusterEvent(EventResource.ANY, ActionType.ALL, label_override=UNSCHEDULABLE_TIMEOUT)
            self._move_to_active_or_backoff_queue(leftover_entities, event, now)
