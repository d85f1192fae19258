"""The last attempts to schedule pods, and the numbers of attempts per second, for pages about a running scheduler."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

MAX_ATTEMPTS: Final = 1000
MAX_SECONDS: Final = 60
"""The limits of the history: the number of attempts, and the number of seconds with counts."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """A finished attempt to schedule a pod.

    Attributes:
        time: the end of the attempt, in seconds since 1970.
        pod: the key of the pod, `namespace/name`.
        uid: the uid of the pod.
        result: `scheduled`, `unschedulable` or `error`, as in the metric schedule_attempts_total.
        node: the node of a scheduled pod; empty otherwise.
        message: the message of a failed attempt; empty otherwise.
        seconds: the duration, with the binding cycle of a scheduled pod.
        number: the number of times the pod was popped, this attempt included.
    """

    time: float
    pod: str
    uid: str
    result: str
    node: str
    message: str
    seconds: float
    number: int


@dataclass(slots=True)
class AttemptCounts:
    """The attempts that ended in one second.

    Attributes:
        second: the second since 1970.
        scheduled: the number of attempts with the result `scheduled`.
        attempts: the number of attempts.
        total_seconds: the sum of the durations.
    """

    second: int
    scheduled: int = 0
    attempts: int = 0
    total_seconds: float = 0.0


@dataclass(slots=True)
class AttemptHistory:
    """The last `MAX_ATTEMPTS` attempts, and the counts of the last `MAX_SECONDS` seconds with an attempt."""

    _attempts: deque[AttemptRecord] = field(default_factory=lambda: deque(maxlen=MAX_ATTEMPTS))
    _counts: deque[AttemptCounts] = field(default_factory=lambda: deque(maxlen=MAX_SECONDS))

    def record(self, attempt: AttemptRecord) -> None:
        """Add an attempt."""
        self._attempts.append(attempt)
        second = int(attempt.time)
        if not self._counts or self._counts[-1].second != second:
            self._counts.append(AttemptCounts(second))
        counts = self._counts[-1]
        counts.attempts += 1
        counts.scheduled += attempt.result == "scheduled"
        counts.total_seconds += attempt.seconds

    def list_attempts(self, limit: int) -> list[AttemptRecord]:
        """Return the last *limit* attempts, the newest first."""
        return [self._attempts[-1 - index] for index in range(min(limit, len(self._attempts)))]

    def list_attempts_of_pod(self, uid: str) -> list[AttemptRecord]:
        """Return the last attempts of a pod, the newest first."""
        return [attempt for attempt in reversed(self._attempts) if attempt.uid == uid]

    def count_per_second(self, now: float) -> Sequence[AttemptCounts]:
        """Return the counts of the `MAX_SECONDS` seconds before the current one, oldest first; *now* is the time."""
        by_second = {counts.second: counts for counts in self._counts}
        seconds = range(int(now) - MAX_SECONDS, int(now))
        return [by_second.get(second) or AttemptCounts(second) for second in seconds]
