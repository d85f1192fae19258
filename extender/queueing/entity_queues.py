"""The queues of entities: activeQ, backoffQ and the unschedulable entities. An entity is in one of them at most.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.moveToActiveQ, PriorityQueue.moveToBackoffQ,
PriorityQueue.runPreEnqueuePlugins (1.37).
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from extender.basics.heap import KeyedHeap
from extender.cache.pod_info import PodInfo
from extender.framework.events import ClusterEvent
from extender.framework.plugin_errors import SortKeyError
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status
from extender.queueing.backoff_queue import BackoffQueue
from extender.queueing.queued_entities import (
    QueuedEntity,
    QueuedPodInfo,
    get_entity_type,
    get_queued_group_key,
)
from extender.queueing.queueing_hints import QueueingHints, QueueingStrategy
from extender.queueing.unschedulable_entities import UnschedulableEntities

log = logging.getLogger("extender.queueing")

SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
"""The label of the requeue after a failed attempt.

Source: kube-scheduler/framework/types.go, ClusterEvent.Label (1.36).
"""

_LAST: Final = (math.inf,)
"""The sort key of an entity for which the QueueSort plugin fails."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Settings of the queue.

    Attributes:
        initial_backoff: the backoff after the first failure, in seconds.
        max_backoff: the maximum backoff, in seconds.
        max_in_unschedulable_pods_duration: the time after which an unschedulable pod is requeued without an event, in
            seconds.

    Source: pkg/scheduler/apis/config/validation/validation.go, ValidateKubeSchedulerConfiguration (1.36);
    pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushUnschedulablePodsLeftover (1.36);
    pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop (1.36).
    """

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    max_in_unschedulable_pods_duration: float = 300.0


PreEnqueueRunner = Callable[[PodInfo, str], Status | None]
"""Runs the PreEnqueue plugins for a pod, and returns the status of the plugin that gates it, or None.

The second argument is the name of the plugin to run first, or "".

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreEnqueuePlugins (1.36).
"""

MoveObserver = Callable[[str, str, int, str], None]
"""Called with the queue to which an entity was added (active, backoff, unschedulable), the label of the event, the
number of its pods, and the type of the entity (see `get_entity_type`).

The type is empty if the entity is requeued by a strategy into the queue of that strategy. Upstream then counts the pods
but not the entity.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, recordIncomingEntitiesMetrics (1.37).
"""

_QUEUE_OF_STRATEGY: Final = {
    QueueingStrategy.IMMEDIATELY: "active",
    QueueingStrategy.AFTER_BACKOFF: "backoff",
    QueueingStrategy.SKIP: "unschedulable",
}


class EntityQueues:
    """The queues of the entities that are not in flight.

    Attributes:
        active_q: the entities to pop next.
        backoff_q: the entities that wait after a failed attempt.
        unschedulable_entities: the entities that wait for an event, gated ones included.
        hints: the queueing hints of all plugins.
        gates: the feature gates, which are those of all profiles. With GenericWorkload, members of pod groups always
            back off after a rejection, and are not popped from the backoff queue before the next event. kube-scheduler
            pops these pods, and so retries a group endlessly while no other pod is queued.
        settings: durations.
        pops_from_backoff_q: the gate SchedulerPopFromBackoffQ.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        run_pre_enqueue: PreEnqueueRunner,
        settings: QueueSettings,
        hints: QueueingHints,
        on_move: MoveObserver | None,
    ) -> None:
        """Create empty queues; for the arguments see `make_scheduling_queue`."""
        profile = next(iter(profiles.values()))

        def sort_key(entity: QueuedEntity) -> Any:
            try:
                return profile.queue_sort.sort_key(entity.queue_sort_entry)
            except SortKeyError as error:
                self._log_sort_key_error(entity, error)
                return _LAST

        self._has_logged_sort_key_error = False
        self._run_pre_enqueue, self._on_move = run_pre_enqueue, on_move
        self.hints, self.settings, self.gates = hints, settings, profile.gates
        self.pops_from_backoff_q = "SchedulerPopFromBackoffQ" in profile.gates
        self.active_q: KeyedHeap[QueuedEntity] = KeyedHeap(lambda entity: entity.key, sort_key)
        self.backoff_q = BackoffQueue(
            sort_key,
            initial_backoff=settings.initial_backoff,
            max_backoff=settings.max_backoff,
            align_to_windows=self.pops_from_backoff_q,
        )
        self.unschedulable_entities = UnschedulableEntities()

    def _log_sort_key_error(self, entity: QueuedEntity, error: SortKeyError) -> None:
        """Log the first error only, because a plugin that fails usually fails for each pod."""
        if not self._has_logged_sort_key_error:
            self._has_logged_sort_key_error = True
            log.error("%s; pods for which it fails, such as %s, are sorted last", error, entity.key)

    def __iter__(self) -> Iterator[QueuedEntity]:
        yield from self.active_q
        yield from self.backoff_q
        yield from list(self.unschedulable_entities)

    def get(self, key: str) -> QueuedEntity | None:
        """Return the entity with *key*; None if it is in no queue."""
        return self.active_q.get(key) or self.backoff_q.get(key) or self.unschedulable_entities.get(key)

    def list_by_queue(self) -> dict[str, list[QueuedEntity]]:
        """Return the entities of each queue, gated ones apart from the unschedulable ones."""
        entities = list(self.unschedulable_entities)
        return {
            "active": list(self.active_q),
            "backoff": list(self.backoff_q),
            "unschedulable": [entity for entity in entities if not entity.gating_plugin],
            "gated": [entity for entity in entities if entity.gating_plugin],
        }

    def remove(self, key: str) -> tuple[QueuedEntity | None, QueueingStrategy]:
        """Remove the entity *key*, and return it with the strategy that requeues it where it was."""
        if (entity := self.active_q.remove(key)) is not None:
            return entity, QueueingStrategy.IMMEDIATELY
        if (entity := self.backoff_q.remove(key)) is not None:
            return entity, QueueingStrategy.AFTER_BACKOFF
        return self.unschedulable_entities.remove(key), QueueingStrategy.SKIP

    def get_strategy(self, entity: QueuedEntity, event: ClusterEvent) -> QueueingStrategy:
        """Return the maximum of the strategies for the pods of *entity*.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isEntityWorthRequeuing (1.37).
        """
        strategy = QueueingStrategy.SKIP
        for pod in entity.pods:
            if strategy is QueueingStrategy.AFTER_BACKOFF and not pod.pending_plugins:
                continue  # only pods with pending plugins are requeued immediately
            strategy = max(strategy, self.hints.is_pod_worth_requeuing(pod, event))
            if strategy is QueueingStrategy.IMMEDIATELY:
                break
        return strategy

    def requeue_with_strategy(
        self, entity: QueuedEntity, strategy: QueueingStrategy, event_label: str, now: float
    ) -> bool:
        """Add *entity* to the queue that *strategy* selects; return whether it is now in activeQ or backoffQ.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.requeuePodWithQueueingStrategy (1.36).
        """
        if strategy is QueueingStrategy.SKIP:
            self._add_to_unschedulable_entities(entity, event_label, strategy)
            return False
        if strategy is QueueingStrategy.AFTER_BACKOFF and self.backoff_q.is_pod_backing_off(entity, now):
            return self.move_to_backoff_q(entity, event_label, strategy)
        return self.move_to_active_q(entity, event_label, now, strategy=strategy)

    def move_to_backoff_q(
        self, entity: QueuedEntity, event_label: str, strategy: QueueingStrategy | None = None
    ) -> bool:
        """Move *entity* to the backoff queue unless a PreEnqueue plugin gates it; return whether it was moved.

        *strategy* is the strategy by which the entity is requeued, if there is one. A member of a pod group in 1.36 is
        not popped from the backoff queue between its failed attempt and the next event.
        """
        if self.pops_from_backoff_q and not self._passes_pre_enqueue(entity, event_label, strategy):
            return False
        self.unschedulable_entities.remove(entity.key)
        is_held = (
            event_label == SCHEDULE_ATTEMPT_FAILURE
            and isinstance(entity, QueuedPodInfo)
            and "GenericWorkload" in self.gates
            and get_queued_group_key(entity.pod_info.pod) is not None
        )
        self.backoff_q.add_or_update(entity, hold_until_event=is_held)
        self.observe_move("backoff", entity, event_label, strategy)
        return True

    def move_to_active_q(
        self,
        entity: QueuedEntity,
        event_label: str,
        now: float,
        *,
        strategy: QueueingStrategy | None = None,
        passed_pre_enqueue: bool = False,
    ) -> bool:
        """Move *entity* to the active queue unless a PreEnqueue plugin gates it; return whether it was moved.

        *event_label* is the label of the event that causes the move. *strategy* is the strategy by which the entity is
        requeued, if there is one. *passed_pre_enqueue*: the plugins already ran when the entity entered the backoff
        queue.
        """
        skip_pre_enqueue = passed_pre_enqueue and self.pops_from_backoff_q
        if not skip_pre_enqueue and not self._passes_pre_enqueue(entity, event_label, strategy):
            return False
        self.unschedulable_entities.remove(entity.key)
        self.backoff_q.remove(entity.key)
        for queued in (entity, *entity.pods):
            if queued.initial_attempt_timestamp is None:
                queued.initial_attempt_timestamp = now
        self.active_q.add_or_update(entity)
        self.observe_move("active", entity, event_label, strategy)
        return True

    def _passes_pre_enqueue(self, entity: QueuedEntity, event_label: str, strategy: QueueingStrategy | None) -> bool:
        """Return whether no PreEnqueue plugin gates a pod of *entity*; else add it to the unschedulable entities.

        The last gated pod gates the group. The gated pods before it are not checked again, because the time for a gang
        whose pods arrive one by one would else grow with the square of its size.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreEnqueuePlugins (1.37).
        """
        gated_pod: QueuedPodInfo | None = None
        for pod in reversed(entity.pods):
            if (gated_pod is None or not pod.gating_plugin) and self._is_gated(pod) and gated_pod is None:
                gated_pod = pod
        if gated_pod is None:
            entity.set_gate("", ())
            return True
        entity.set_gate(gated_pod.gating_plugin, gated_pod.gating_plugin_events)
        if self.gates.release.reevaluates_gated_pods:
            for queued in (entity, *entity.pods):
                queued.was_flushed_from_unschedulable = False
        self._add_to_unschedulable_entities(entity, event_label, strategy)
        return False

    def _is_gated(self, pod: QueuedPodInfo) -> bool:
        """Run the PreEnqueue plugins for *pod*, and return whether one of them gates it."""
        status = self._run_pre_enqueue(pod.pod_info, pod.gating_plugin)
        if status is None:
            pod.set_gate("", ())
            return False
        scheduler_name = pod.pod_info.spec.scheduler_name
        if status.code is Code.ERROR and pod.gating_plugin != status.plugin:
            names = {"pod": pod.pod_info.pod, "plugin": status.plugin}
            log.error("Unexpected error running PreEnqueue plugin", extra={**names, "err": status.message})
        pod.set_gate(status.plugin, self.hints.get_registered_events(scheduler_name, status.plugin))
        pod.unschedulable_plugins |= {status.plugin}
        return True

    def _add_to_unschedulable_entities(
        self, entity: QueuedEntity, event_label: str, strategy: QueueingStrategy | None
    ) -> None:
        is_new = entity.key not in self.unschedulable_entities
        self.unschedulable_entities.add_or_update(entity)
        if is_new:
            self.observe_move("unschedulable", entity, event_label, strategy)

    def observe_move(
        self, queue: str, entity: QueuedEntity, event_label: str, strategy: QueueingStrategy | None = None
    ) -> None:
        """Report that *entity* was added to a queue, by *strategy* if it is requeued by one."""
        if self._on_move:
            is_counted = strategy is None or _QUEUE_OF_STRATEGY[strategy] != queue
            self._on_move(queue, event_label, len(entity.pods), get_entity_type(entity) if is_counted else "")
