"""The backoff queue: entities that wait until their backoff expires, in separate heaps for rejections and errors.

An entity is a pod or, since 1.37, a pod group, which counts as one with an error.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue; pkg/scheduler/backend/queue/backoff_queue.go,
backoffQueue.calculateBackoffDuration (1.36).
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from extender.basics.heap import KeyedHeap
from extender.queueing.queued_entities import QueuedEntity

ORDERING_WINDOW = 1.0
"""The length of a window in seconds. Pods whose backoffs expire in one window are ordered by priority.

Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.getBackoffTime (1.36).
"""


class BackoffQueue:
    """Two heaps ordered by backoff expiration: one of rejected pods, one of pods with an error.

    A pod is in at most one heap. `pop_backoff` pops only from the heap of rejected pods. A rejected pod is held if
    it must not be popped before the next event: it is in the heap of errors until `release_held_pods` is called.
    """

    def __init__(
        self,
        sort_key: Callable[[QueuedEntity], Any],
        *,
        initial_backoff: float,
        max_backoff: float,
        align_to_windows: bool = True,
    ) -> None:
        """Create an empty queue.

        *sort_key* is that of the active queue; it orders rejected pods whose backoffs expire in the same window. The
        backoff is *initial_backoff* seconds after the first failure, and at most *max_backoff*; 0 disables backoff.
        With *align_to_windows* (gate SchedulerPopFromBackoffQ), expirations are rounded down to whole windows.
        """
        self._initial_backoff, self._max_backoff = initial_backoff, max_backoff
        self._align_to_windows = align_to_windows

        def get_window_key(pod: QueuedEntity) -> Any:
            return self.get_backoff_expiration(pod), sort_key(pod)

        heap_sort_key = get_window_key if align_to_windows else self.get_backoff_expiration
        self._pod_backoff_q: KeyedHeap[QueuedEntity] = KeyedHeap(lambda pod: pod.key, heap_sort_key)
        self._error_backoff_q: KeyedHeap[QueuedEntity] = KeyedHeap(lambda pod: pod.key, self.get_backoff_expiration)
        self._held_pods: dict[str, QueuedEntity] = {}

    def __len__(self) -> int:
        return len(self._pod_backoff_q) + len(self._error_backoff_q)

    def __contains__(self, key: object) -> bool:
        return key in self._pod_backoff_q or key in self._error_backoff_q

    def __iter__(self) -> Iterator[QueuedEntity]:
        yield from self._pod_backoff_q
        yield from self._error_backoff_q

    def get_backoff_expiration(self, pod: QueuedEntity) -> float:
        """Return the time at which the backoff of *pod* expires; minus infinity if it has no backoff."""
        if self._max_backoff == 0 or pod.backoff_count == 0:
            return -math.inf
        max_backoff = self._max_backoff * math.sqrt(pod.backoff_size)
        return self._round_down_to_window(
            pod.timestamp + calculate_backoff(pod.backoff_count, self._initial_backoff, max_backoff)
        )

    def _round_down_to_window(self, time: float) -> float:
        return math.floor(time / ORDERING_WINDOW) * ORDERING_WINDOW if self._align_to_windows else time

    def is_pod_backing_off(self, pod: QueuedEntity, now: float) -> bool:
        """Return whether the backoff of *pod* has not expired.

        Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.isPodBackingoff (1.36).
        """
        return self.get_backoff_expiration(pod) >= self._round_down_to_window(now)

    def add_or_update(self, pod: QueuedEntity, *, hold_until_event: bool = False) -> None:
        """Add *pod* to the heap of errors if it is held or no plugin rejected it, else to the heap of rejected pods."""
        if self._held_pods.pop(pod.key, None) is not None:
            self._error_backoff_q.remove(pod.key)
        if hold_until_event and pod.rejector_plugins:
            self._held_pods[pod.key] = pod
        uses_error_heap = hold_until_event or not pod.rejector_plugins
        (self._error_backoff_q if uses_error_heap else self._pod_backoff_q).add_or_update(pod)

    def release_held_pods(self) -> None:
        """Move the held pods to the heap of rejected pods."""
        for pod in list(self._held_pods.values()):
            self.add_or_update(pod)

    def get(self, key: str) -> QueuedEntity | None:
        """Return the pod with *key*, or None."""
        return self._pod_backoff_q.get(key) or self._error_backoff_q.get(key)

    def remove(self, key: str) -> QueuedEntity | None:
        """Remove and return the pod with *key*; None if it is not in the queue."""
        self._held_pods.pop(key, None)
        return self._pod_backoff_q.remove(key) or self._error_backoff_q.remove(key)

    def pop_backoff(self) -> QueuedEntity | None:
        """Pop the rejected pod whose backoff expires first, without waiting for its expiration.

        Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop (1.36).
        """
        return self._pod_backoff_q.pop()

    @property
    def can_pop_backoff(self) -> bool:
        """Whether `pop_backoff` returns a pod."""
        return len(self._pod_backoff_q) > 0

    def pop_all_backoff_completed(self, now: float) -> list[QueuedEntity]:
        """Pop all pods whose backoff has expired at *now*.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.flushBackoffQCompleted (1.36).
        """
        completed_pods: list[QueuedEntity] = []
        for heap in (self._pod_backoff_q, self._error_backoff_q):
            while (pod := heap.peek()) is not None and not self.is_pod_backing_off(pod, now):
                heap.pop()
                self._held_pods.pop(pod.key, None)
                completed_pods.append(pod)
        return completed_pods


def calculate_backoff(failures: int, initial: float, maximum: float) -> float:
    """Return the seconds to wait before the next attempt after *failures* consecutive failures.

    The wait is *initial* after the first failure. Each further failure doubles it, up to *maximum*. The wait is 0 if
    there was no failure.
    """
    if failures <= 0:
        return 0.0
    if failures > 60:  # a much larger power would overflow a float
        return maximum
    return min(initial * 2.0 ** (failures - 1), maximum)
