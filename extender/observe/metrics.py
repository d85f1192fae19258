"""Metrics of plugins under kube-scheduler's own names, so that its dashboards and alerts fit.

Source: H008, H010 to H013.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from extender.framework.verdict import Code

SAMPLED = 0.1
"""The share of plugin calls whose duration is recorded. Source: H012."""

_EVALUATIONS = frozenset(("PreFilter", "Filter", "PreScore", "Score"))
_UPSTREAM_POINTS = {"NormalizeScore": "ScoreExtensionNormalize"}


def exponential(start: float, factor: float, count: int) -> list[float]:
    """*count* bucket bounds, each *factor* times the one before."""
    return [start * factor**step for step in range(count)]


def new_registry() -> CollectorRegistry:
    """An empty registry of our own; it holds what Python's process says of itself, and never a `_created` series."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """All metrics as text, in the format Prometheus reads."""
    return generate_latest(registry)


def in_all_profiles(profiles: Iterable[str]) -> str:
    """The value of the label `profile` for calls that are not told apart by profile."""
    return ",".join(profiles)


class PluginMetrics:
    """A `framework.observer.Observer` that counts plugin calls and times one in ten of them.

    The runner does not say for which profile it calls a plugin, so the label `profile` of the counter names all
    profiles in force, joined by commas; with one profile, which is the ordinary case, it is that profile as upstream.
    """

    def __init__(
        self, registry: CollectorRegistry, profiles: Sequence[str], chance: Callable[[], float] | None = None
    ) -> None:
        """Register with *registry*; *chance* gives numbers from 0 up to 1 and decides which calls are timed."""
        self._chance = chance or Random().random  # noqa: S311  a sample, no secret
        self._profile = in_all_profiles(profiles)
        self._durations = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            ("plugin", "extension_point", "status"),
            buckets=exponential(0.00001, 1.5, 20),
            registry=registry,
        )
        self._points = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            buckets=exponential(0.0001, 2, 12),
            registry=registry,
        )
        self._evaluations = Counter(
            "scheduler_plugin_evaluation",
            "Number of attempts to schedule pods by each plugin and the extension point.",
            ("plugin", "extension_point", "profile"),
            registry=registry,
        )
        # Looking a labelled child up takes a lock and a tuple of strings each time; these do not change.
        self._timers: dict[tuple[str, str, Code], Histogram] = {}
        self._counters: dict[tuple[str, str], Counter] = {}

    def called(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """A plugin was called at an extension point and took *seconds*."""
        if point in _EVALUATIONS:
            counter = self._counters.get((plugin, point))
            if counter is None:
                counter = self._counters[plugin, point] = self._evaluations.labels(plugin, point, self._profile)
            counter.inc()
        if self._chance() < SAMPLED:
            timer = self._timers.get((plugin, point, code))
            if timer is None:
                named = _UPSTREAM_POINTS.get(point, point)
                timer = self._timers[plugin, point, code] = self._durations.labels(plugin, named, code.label)
            timer.observe(seconds)

    def passed(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """All plugins of an extension point were run for one pod."""
        self._points.labels(_UPSTREAM_POINTS.get(point, point), code.label, profile).observe(seconds)
