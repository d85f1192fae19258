"""The last attempts to schedule pods, and the numbers of attempts per second, for pages about a running scheduler."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from extender.basics.input_limits import shorten
from extender.framework.observer import PluginObserver
from extender.framework.status import Code

MAX_ATTEMPTS: Final = 1000
MAX_SECONDS: Final = 60
"""The limits of the history: the number of attempts, and the number of seconds with counts."""

MAX_MESSAGE_LENGTH: Final = 16 * 1024
"""The limit of the characters of a message. The message of an HTTP extender may have 64 MiB."""

_CYCLE_POINTS: Final = frozenset(
    ("PreFilter", "Filter", "PostFilter", "PreScore", "Score", "NormalizeScore", "Reserve", "Permit")
)
"""The extension points of the scheduling cycle, with those that kube-scheduler runs before the binding cycle."""


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
        plugin_seconds: the time of each plugin in the scheduling cycle; empty unless a `PluginTimer` measures it.
    """

    time: float
    pod: str
    uid: str
    result: str
    node: str
    message: str
    seconds: float
    number: int
    plugin_seconds: Mapping[str, float] = field(default_factory=dict)


class PluginTimer(PluginObserver):
    """Sums the time of each plugin in each scheduling cycle.

    The scheduling cycle ends before the binding cycle begins, so the cycles of two pods never overlap. For a pod group,
    the time of all members counts for the first one.
    """

    def __init__(self) -> None:
        self._current: dict[str, float] = {}
        self._seconds_by_uid: dict[str, dict[str, float]] = {}

    def start_cycle(self, uid: str) -> None:
        """Start the scheduling cycle of a pod."""
        self._current = {}
        self._seconds_by_uid.pop(uid, None)  # a new entry is the last one
        self._seconds_by_uid[uid] = self._current
        if len(self._seconds_by_uid) > MAX_ATTEMPTS:  # pods that are deleted before their attempt ends
            del self._seconds_by_uid[next(iter(self._seconds_by_uid))]

    def take_seconds(self, uid: str) -> Mapping[str, float]:
        """Return the time of each plugin in the last cycle of a pod, once."""
        return self._seconds_by_uid.pop(uid, {})

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:  # noqa: ARG002  interface
        """Add the time of a call in a scheduling cycle; calls of binding cycles are ignored."""
        if point in _CYCLE_POINTS:
            self._current[plugin] = self._current.get(plugin, 0.0) + seconds


@dataclass(slots=True)
class AttemptCounts:
    """The attempts that ended in one second.

    Attributes:
        second: the second since 1970.
        scheduled: the number of attempts with the result `scheduled`.
        attempts: the number of attempts.
        total_seconds: the sum of the durations.
        plugin_seconds: the sum of the time of each plugin.
    """

    second: int
    scheduled: int = 0
    attempts: int = 0
    total_seconds: float = 0.0
    plugin_seconds: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class AttemptHistory:
    """The last `MAX_ATTEMPTS` attempts, and the counts of the last `MAX_SECONDS` seconds with an attempt.

    Attributes:
        plugin_timer: measures the time of each plugin; None if nobody reads it.
    """

    plugin_timer: PluginTimer | None = None

    _attempts: deque[AttemptRecord] = field(default_factory=lambda: deque(maxlen=MAX_ATTEMPTS))
    _counts: deque[AttemptCounts] = field(default_factory=lambda: deque(maxlen=MAX_SECONDS))

    def record(self, attempt: AttemptRecord) -> None:
        """Add an attempt."""
        if self.plugin_timer is not None:
            attempt = replace(attempt, plugin_seconds=self.plugin_timer.take_seconds(attempt.uid))
        if len(attempt.message) > MAX_MESSAGE_LENGTH:
            attempt = replace(attempt, message=shorten(attempt.message, MAX_MESSAGE_LENGTH))
        self._attempts.append(attempt)
        second = int(attempt.time)
        if not self._counts or self._counts[-1].second != second:
            self._counts.append(AttemptCounts(second))
        counts = self._counts[-1]
        counts.attempts += 1
        counts.scheduled += attempt.result == "scheduled"
        counts.total_seconds += attempt.seconds
        for plugin, seconds in attempt.plugin_seconds.items():
            counts.plugin_seconds[plugin] = counts.plugin_seconds.get(plugin, 0.0) + seconds

    def start_cycle(self, uid: str) -> None:
        """Start the scheduling cycle of a pod."""
        if self.plugin_timer is not None:
            self.plugin_timer.start_cycle(uid)

    def list_attempts(self, limit: int) -> list[AttemptRecord]:
        """Return the last *limit* attempts, the newest first."""
        return list(islice(reversed(self._attempts), limit))

    def list_attempts_of_pod(self, uid: str) -> list[AttemptRecord]:
        """Return the last attempts of a pod, the newest first."""
        return [attempt for attempt in reversed(self._attempts) if attempt.uid == uid]

    def count_per_second(self, now: float) -> Sequence[AttemptCounts]:
        """Return the counts of the `MAX_SECONDS` seconds before the current one, oldest first; *now* is the time."""
        by_second = {counts.second: counts for counts in self._counts}
        seconds = range(int(now) - MAX_SECONDS, int(now))
        return [by_second.get(second) or AttemptCounts(second) for second in seconds]
