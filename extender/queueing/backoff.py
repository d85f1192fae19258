"""Pods that wait for their backoff to pass: rejected ones, and, apart from them, those that met an error.

Source: D001, D021 to D026.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from extender.basics.backoff import delay
from extender.basics.heap import KeyedHeap
from extender.queueing.queued import QueuedPod

WINDOW = 1.0
"""Seconds within which backoffs count as ending together, so that priority decides between them. Source: D023."""


class BackoffQueue:
    """Two heaps by end of backoff. A pod is in at most one of them; rejected ones can be held beside others."""

    __slots__ = ("_after_error", "_held", "_initial", "_most", "_rejected", "_windows")

    def __init__(self, order: Callable[[QueuedPod], Any], *, initial: float, most: float, windows: bool = True) -> None:
        """Nobody backs off.

        Args:
            order: of the active queue, among rejected pods whose backoff ends together.
            initial: seconds after the first failure.
            most: seconds at the most; 0 switches backoff off.
            windows: whether ends are cut down to whole seconds (gate SchedulerPopFromBackoffQ).
        """
        self._initial, self._most, self._windows = initial, most, windows
        rejected = (lambda pod: (self.ends(pod), order(pod))) if windows else self.ends
        self._rejected: KeyedHeap[QueuedPod] = KeyedHeap(lambda pod: pod.key, rejected)
        self._after_error: KeyedHeap[QueuedPod] = KeyedHeap(lambda pod: pod.key, self.ends)
        self._held: dict[str, QueuedPod] = {}

    def __len__(self) -> int:
        return len(self._rejected) + len(self._after_error)

    def __contains__(self, key: object) -> bool:
        return key in self._rejected or key in self._after_error

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._rejected
        yield from self._after_error

    def ends(self, pod: QueuedPod) -> float:
        """When the backoff of *pod* ends; minus infinity if it need not wait."""
        if self._most == 0 or pod.failures == 0:
            return -math.inf
        return self._aligned(pod.since + delay(pod.failures, self._initial, self._most))

    def _aligned(self, moment: float) -> float:
        return math.floor(moment / WINDOW) * WINDOW if self._windows else moment

    def backs_off(self, pod: QueuedPod, now: float) -> bool:
        """Whether the backoff of *pod* has not passed. Source: D024."""
        return self.ends(pod) >= self._aligned(now)

    def put(self, pod: QueuedPod, *, held: bool = False) -> None:
        """*pod* backs off: among those that met an error if no plugin rejected it, or, until `release`, if *held*."""
        if self._held.pop(pod.key, None) is not None:
            self._after_error.remove(pod.key)
        if held and pod.all_rejectors:
            self._held[pod.key] = pod
        (self._after_error if held or not pod.all_rejectors else self._rejected).put(pod)

    def release(self) -> None:
        """Something happened: the pods that were held are like all that were rejected."""
        for pod in list(self._held.values()):
            self.put(pod)

    def get(self, key: str) -> QueuedPod | None:
        """The pod *key*, or None."""
        return self._rejected.get(key) or self._after_error.get(key)

    def remove(self, key: str) -> QueuedPod | None:
        """Take out the pod *key*; None if it is not here."""
        self._held.pop(key, None)
        return self._rejected.remove(key) or self._after_error.remove(key)

    def pop_early(self) -> QueuedPod | None:
        """The rejected pod whose backoff ends first, though it has not; pods that met an error are left waiting.

        Source: D007.
        """
        return self._rejected.pop()

    @property
    def can_pop_early(self) -> bool:
        """Whether `pop_early` has one."""
        return len(self._rejected) > 0

    def pop_completed(self, now: float) -> list[QueuedPod]:
        """Take out the pods whose backoff has passed at *now*. Source: D025."""
        done: list[QueuedPod] = []
        for heap in (self._rejected, self._after_error):
            while (head := heap.peek()) is not None and not self.backs_off(head, now):
                heap.pop()
                self._held.pop(head.key, None)
                done.append(head)
        return done

    def next_end(self) -> float | None:
        """When the first backoff ends; None if nobody backs off."""
        heads = [head for heap in (self._rejected, self._after_error) if (head := heap.peek()) is not None]
        return min((self.ends(head) for head in heads), default=None)
