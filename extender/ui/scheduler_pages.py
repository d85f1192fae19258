"""The live pages about the scheduler of this process, Queue and Decisions: their documents and streams."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import nsmallest
from itertools import islice
from math import isfinite
from operator import attrgetter
from typing import Final

import msgspec

from extender.analysis.text_table import format_count
from extender.basics.clock import Clock
from extender.basics.visible_text import make_value_visible
from extender.queueing.queued_entities import QueuedPodInfo
from extender.queueing.scheduling_queue import SchedulingQueue
from extender.scheduler.attempt_history import MAX_SECONDS, AttemptCounts, AttemptHistory, AttemptRecord
from extender.ui.live_feed import LiveFeed
from extender.ui.waiting_view import format_seconds

SHOWN_PODS: Final = 50
"""The number of pods of a queue, and of attempts, that a page shows."""

_SHOWN_ATTEMPTS_OF_POD: Final = 10
_GET_TIME: Final = attrgetter("timestamp")
_MAX_MESSAGE: Final = 200
_SHOWN_PLUGINS: Final = 3
_MAX_PLUGIN_ROWS: Final = 8
PLOT_WIDTH, PLOT_HEIGHT = 240, 40
"""The size of a plot in its own units; it has `MAX_SECONDS` values."""


@dataclass(frozen=True, slots=True)
class LiveCell:
    """A cell of a table.

    Attributes:
        kind: `pods` or `nodes` if the text is the key of a pod or the name of a node, which is then a link; else empty.
    """

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class LiveDocument:
    """The changing parts of a page. The template and live.js put each part into the element with its name.

    Attributes:
        texts: the texts by name.
        rows: the rows of each table by its name.
        lines: the points of each plot by its name, as an SVG polyline has them.
    """

    texts: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[list[LiveCell]]] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SchedulerView:
    """The parts of a running scheduler that the pages read.

    `get_cache_age` returns the seconds since the last response of the API server for the kind that waited longest;
    `list_problems` returns a line for each missing right and each lost watch; `get_stale_time` the time of the oldest
    data while watches are lost, else None.
    """

    queue: SchedulingQueue
    attempt_history: AttemptHistory
    get_cache_age: Callable[[], float]
    clock: Clock
    list_problems: Callable[[], Sequence[str]] = tuple
    get_stale_time: Callable[[], datetime | None] = lambda: None


def _split_queue(queue: SchedulingQueue) -> dict[str, list[QueuedPodInfo]]:
    """Return the pods of each queue. The iterator of the queue yields activeQ, then backoffQ, then all others."""
    counts, pods = queue.count_pending_pods(), iter(queue)
    active, backoff = list(islice(pods, counts["active"])), list(islice(pods, counts["backoff"]))
    other_pods = list(pods)
    return {
        "active": active,
        "backoff": backoff,
        "unschedulable": [pod for pod in other_pods if not pod.gating_plugin],
        "gated": [pod for pod in other_pods if pod.gating_plugin],
    }


def _get_active_sort_key(pod: QueuedPodInfo) -> tuple[int, float]:
    return -pod.pod_info.priority, pod.timestamp


def _make_queue_row(pod: QueuedPodInfo, now: float) -> list[LiveCell]:
    reasons = pod.gating_plugin or ", ".join(sorted(pod.rejector_plugins))
    return [
        LiveCell(pod.key, "pods"),
        LiveCell(str(pod.pod_info.priority)),
        LiveCell(str(pod.attempts)),
        LiveCell(format_seconds(now - pod.timestamp)),
        LiveCell(reasons),
    ]


def _make_plugin_rows(counts: Sequence[AttemptCounts], attempt_count: int) -> list[list[LiveCell]]:
    """Return a row per plugin, the slowest first: the time per attempt, and the share of the time of all plugins."""
    seconds_by_plugin: dict[str, float] = {}
    for second in counts:
        for plugin, seconds in second.plugin_seconds.items():
            seconds_by_plugin[plugin] = seconds_by_plugin.get(plugin, 0.0) + seconds
    total = sum(seconds_by_plugin.values()) or 1.0
    ordered = sorted(seconds_by_plugin.items(), key=lambda item: (-item[1], item[0]))
    return [
        [
            LiveCell(plugin),
            LiveCell(f"{1000 * seconds / max(attempt_count, 1):.3f} ms"),
            LiveCell(f"{100 * seconds / total:.0f}%"),
        ]
        for plugin, seconds in ordered[:_MAX_PLUGIN_ROWS]
    ]


def make_attempt_row(attempt: AttemptRecord, *, with_pod: bool) -> list[LiveCell]:
    """Return the row of an attempt. If *with_pod* is true, a column has the pod, and a long message is shortened."""
    message = attempt.message
    if with_pod and len(message) > _MAX_MESSAGE:
        message = f"{message[:_MAX_MESSAGE]}..."
    slowest = nsmallest(_SHOWN_PLUGINS, attempt.plugin_seconds.items(), key=lambda item: (-item[1], item[0]))
    return [
        LiveCell(f"{datetime.fromtimestamp(attempt.time, UTC):%Y-%m-%d %H:%M:%S}"),
        *([LiveCell(attempt.pod, "pods")] if with_pod else []),
        LiveCell(attempt.result),
        LiveCell(attempt.node, "nodes" if attempt.node else ""),
        LiveCell(f"{1000 * attempt.seconds:.1f} ms"),
        LiveCell(", ".join(f"{plugin} {1000 * seconds:.2f} ms" for plugin, seconds in slowest)),
        LiveCell(str(attempt.number)),
        LiveCell(message),
    ]


def make_line(values: Sequence[float]) -> str:
    """Return the points of a polyline: the last value is at the right, and the largest at the top."""
    scale = max(values, default=0.0) or 1.0
    step = PLOT_WIDTH / (MAX_SECONDS - 1)
    start = MAX_SECONDS - len(values)
    return " ".join(
        f"{(start + index) * step:.1f},{(PLOT_HEIGHT - 1) * (1 - value / scale) + 0.5:.1f}"
        for index, value in enumerate(values)
    )


class SchedulerPages:
    """The documents and the streams of the pages Queue and Decisions."""

    def __init__(self, view: SchedulerView) -> None:
        """Create the pages of a scheduler; the feeds start with their first readers."""
        self._view = view
        self._cache_ages: list[float] = []  # one per document of the page Decisions, for its plot
        self.queue_feed = LiveFeed(lambda: self._encode(self.make_queue_document()), time.monotonic)
        self.decisions_feed = LiveFeed(lambda: self._encode(self.make_decisions_document()), time.monotonic)

    def make_queue_document(self) -> LiveDocument:
        """Return the document of the page Queue: the first pods of each queue, and the number of pods in it."""
        queue, now, document = self._view.queue, self._view.clock.monotonic(), LiveDocument()
        for name, pods in _split_queue(queue).items():
            first_pods = nsmallest(SHOWN_PODS, pods, key=_get_active_sort_key if name == "active" else _GET_TIME)
            document.rows[name] = [_make_queue_row(pod, now) for pod in first_pods]
            more = f"; the first {SHOWN_PODS} are shown" if len(pods) > SHOWN_PODS else ""
            document.texts[name] = f"{format_count(len(pods), 'pod')}{more}"
        document.texts["in-flight"] = format_count(len(queue.in_flight_events), "pod")
        return document

    def make_decisions_document(self) -> LiveDocument:
        """Return the document of the page Decisions: the last attempts, and plots of the last minute."""
        view = self._view
        cache_age = view.get_cache_age()
        if isfinite(cache_age):
            self._cache_ages = [*self._cache_ages, cache_age][-MAX_SECONDS:]
        counts = view.attempt_history.count_per_second(view.clock.now())
        rates = [float(second.scheduled) for second in counts]
        durations = [1000 * second.total_seconds / max(second.attempts, 1) for second in counts]
        attempt_count = sum(second.attempts for second in counts)
        mean_duration = 1000 * sum(second.total_seconds for second in counts) / max(attempt_count, 1)
        plugin_rows = _make_plugin_rows(counts, attempt_count)
        return LiveDocument(
            {
                "rate": f"{rates[-1]:.0f} in the last second, {sum(rates):.0f} in the last minute",
                "duration": f"{mean_duration:.1f} ms on average in the last minute" if attempt_count else "no attempt",
                "plugins": "in the last minute, per attempt" if plugin_rows else "no attempt in the last minute",
                "rate-top": f"{max(rates):.0f}",
                "duration-top": f"{max(durations):.1f} ms",
                "cache-age-top": f"{max(self._cache_ages, default=0.0):.1f} s",
                "cache-age": f"{cache_age:.1f} s" if isfinite(cache_age) else "no response yet",
            },
            {
                "plugins": plugin_rows,
                "attempts": [
                    make_attempt_row(attempt, with_pod=True)
                    for attempt in view.attempt_history.list_attempts(SHOWN_PODS)
                ],
            },
            {"rate": make_line(rates), "duration": make_line(durations), "cache-age": make_line(self._cache_ages)},
        )

    def list_attempt_rows(self, uid: str) -> list[list[LiveCell]]:
        """Return the rows of the last attempts to schedule a pod, the newest first."""
        attempts = self._view.attempt_history.list_attempts_of_pod(uid)
        return [make_attempt_row(attempt, with_pod=False) for attempt in attempts[:_SHOWN_ATTEMPTS_OF_POD]]

    def _encode(self, document: LiveDocument) -> bytes:
        """Return the event with a document, and with the problems, which are above all pages."""
        problems, stale_time = list(self._view.list_problems()), self._view.get_stale_time()
        values = {
            **msgspec.to_builtins(document),
            "problems": problems,
            "staleTime": stale_time.isoformat() if stale_time else "",
        }
        return msgspec.json.encode(make_value_visible(values))

    def close(self) -> None:
        """End all streams, because the process stops."""
        self.queue_feed.close()
        self.decisions_feed.close()
