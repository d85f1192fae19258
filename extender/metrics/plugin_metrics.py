"""Metrics of plugin calls, with kube-scheduler's names and labels.

Source: pkg/scheduler/metrics/metrics.go, PodSchedulingAttempts, FrameworkExtensionPointDuration, ExtensionPoints
(1.36).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from random import Random
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from extender.config.releases import DEFAULT_RELEASE, Release
from extender.framework.observer import PluginObserver
from extender.framework.profiles import Profile
from extender.framework.status import Code
from extender.metrics.families import MetricFamilies, select_families
from extender.metrics.scheduler_families import PLUGIN_FAMILIES

PLUGIN_METRICS_SAMPLE_RATE: Final = 0.1
"""The share of plugin calls whose duration is observed.

Source: pkg/scheduler/metrics/metrics.go, PluginExecutionDuration (1.36).
"""

_COUNTED_EXTENSION_POINTS: Final = frozenset(("PreFilter", "Filter", "PreScore", "Score"))
_UPSTREAM_EXTENSION_POINTS: Final = {"NormalizeScore": "ScoreExtensionNormalize"}


class PluginMetrics(PluginObserver, Collector):
    """Counts plugin calls and samples their durations.

    A runner that all profiles share calls `observe_plugin_call`, which has no profile. The label `profile` then
    contains all profiles, joined by commas. The observer of a single profile calls `observe_profile_plugin_call`.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        profiles: Sequence[str],
        random: Callable[[], float] | None = None,
        disabled_families: Collection[str] = (),
        release: Release = DEFAULT_RELEASE,
    ) -> None:
        """Register all families except the *disabled_families*.

        *random* returns random numbers in [0, 1), which determine the sampled calls. *release* is the emulated release.
        """
        self._evaluations: Counter[tuple[str, str, str]] = Counter()
        registry.register(self)
        self.families = MetricFamilies(registry, select_families(PLUGIN_FAMILIES, release), disabled_families)
        self._profile = ",".join(profiles)
        self._random = random or Random().random  # noqa: S311  a sample, no secret

    def set_profiles(self, profiles: Sequence[str]) -> None:
        """Set the profiles of the current configuration."""
        self._profile = ",".join(profiles)

    def register_profile(self, profile: Profile) -> None:
        """Expose the counters of the profile's plugins, starting at 0."""
        plugins_by_point = {
            "PreFilter": profile.pre_filter_plugins,
            "Filter": profile.filter_plugins,
            "PreScore": profile.pre_score_plugins,
            "Score": [weighted.plugin for weighted in profile.score_plugins],
        }
        for point, plugins in plugins_by_point.items():
            for plugin in plugins:
                self.families.get_child("scheduler_plugin_evaluation_total", plugin.name, point, profile.scheduler_name)

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Observe a plugin call at an extension point."""
        self.observe_profile_plugin_call(self._profile, plugin, point, code, seconds)

    def observe_profile_plugin_call(self, profile: str, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Observe a plugin call for a pod of *profile*.

        A call with the code SKIP is no evaluation. Source: pkg/scheduler/framework/runtime/instrumented_plugins.go,
        instrumentedPreFilterPlugin.PreFilter (1.36).
        """
        if point in _COUNTED_EXTENSION_POINTS and code is not Code.SKIP:
            self._evaluations[plugin, point, profile] += 1
        if self._random() < PLUGIN_METRICS_SAMPLE_RATE:
            upstream_point = _UPSTREAM_EXTENSION_POINTS.get(point, point)
            family = "scheduler_plugin_execution_duration_seconds"
            self.families.observe(family, plugin, upstream_point, code.label, value=seconds)

    def reset(self) -> None:
        """Reset all counts. Source: cmd/kube-scheduler/app/server.go, installMetricHandler (1.36)."""
        self._evaluations.clear()
        self.families.reset()

    def collect(self) -> Iterable[Metric]:
        """Add the buffered counts to the counters, whose collectors follow; return no metrics.

        Direct updates of the counters would be too slow for fifty plugin calls per pod.
        """
        for labels, count in self._evaluations.items():
            self.families.increment("scheduler_plugin_evaluation_total", *labels, by=count)
        self._evaluations.clear()
        return ()

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Observe a run of all plugins of an extension point for one pod."""
        family = "scheduler_framework_extension_point_duration_seconds"
        self.families.observe(family, _UPSTREAM_EXTENSION_POINTS.get(point, point), code.label, profile, value=seconds)
