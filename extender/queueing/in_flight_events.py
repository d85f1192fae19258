"""Pods in flight, and the cluster events that occurred since they were popped.

Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue, activeQueue.unlockedDone;
pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Done (1.36).
"""

from collections import Counter, deque
from collections.abc import Iterator

from extender.framework.events import ClusterEvent
from extender.queueing.queued_entities import QueuedPodInfo


class InFlightEvents:
    """A store of cluster events. It keeps an event while a pod that was popped before the event is in flight.

    Attributes:
        pods_with_own_event: the uids of the pods in flight for which an event is stored that concerns only them.
    """

    def __init__(self) -> None:
        self._events: deque[ClusterEvent] = deque()
        self._first_event_number = 0  # the number of the first event in the deque
        self._event_number_at_pop: dict[str, int] = {}  # in ascending order
        self.pods_with_own_event: set[str] = set()

    def __len__(self) -> int:
        return len(self._event_number_at_pop)

    def __contains__(self, uid: object) -> bool:
        return uid in self._event_number_at_pop

    def count_by_label(self) -> Counter[str]:
        """Return the number of stored events by label."""
        return Counter(event.label for event in self._events)

    def add_pod(self, pod: QueuedPodInfo) -> bool:
        """Add a popped pod; return False if its uid is already in flight.

        Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedMovePodToInFlight (1.36).
        """
        if pod.uid in self._event_number_at_pop:
            return False
        self._event_number_at_pop[pod.uid] = self._first_event_number + len(self._events)
        return True

    def add_event(self, event: ClusterEvent) -> None:
        """Store *event* if a pod is in flight."""
        if self._event_number_at_pop:
            self._events.append(event)

    def add_own_event(self, uid: str, event: ClusterEvent) -> None:
        """Store *event*, which concerns only the pod in flight with *uid*."""
        self.pods_with_own_event.add(uid)
        self._events.append(event)

    def get_events_since_pop(self, uid: str) -> Iterator[ClusterEvent] | None:
        """Return the events since the pod with *uid* was popped, oldest first; None if the pod is not in flight."""
        event_number = self._event_number_at_pop.get(uid)
        if event_number is None:
            return None
        skipped_count = event_number - self._first_event_number
        return (event for position, event in enumerate(list(self._events)) if position >= skipped_count)

    def done(self, uid: str) -> None:
        """Remove the pod with *uid*, and the events that no other pod in flight needs."""
        if self._event_number_at_pop.pop(uid, None) is None:
            return
        self.pods_with_own_event.discard(uid)
        oldest_number = next(iter(self._event_number_at_pop.values()), self._first_event_number + len(self._events))
        while self._first_event_number < oldest_number:
            self._events.popleft()
            self._first_event_number += 1
