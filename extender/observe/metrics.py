"""The page of metrics, and the metrics of plugins under kube-scheduler's own names.

Source: H008, H010 to H013.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from random import Random
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from extender.framework.profiles import Profile
from extender.framework.verdict import Code
from extender.observe.families import Families
from extender.observe.network import NetworkCollector
from extender.observe.scheduler_families import PLUGIN_FAMILIES

SAMPLED: Final = 0.1
"""The share of plugin calls whose duration is recorded. Source: H012."""

_EVALUATIONS: Final = frozenset(("PreFilter", "Filter", "PreScore", "Score"))
_UPSTREAM_POINTS: Final = {"NormalizeScore": "ScoreExtensionNormalize"}
_BARE: Final = re.compile(rb"\b(authenticated_user_requests|authentication_attempts)_total\b")
"""Counters that kube-scheduler has without the ending that prometheus_client adds to every one."""

_WHOLE_BOUND: Final = re.compile(rb'(le="[0-9]+)\.0"')


def new_registry() -> CollectorRegistry:
    """An empty registry of our own; it holds what Python's process says of itself, and never a `_created` series."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(NetworkCollector())
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """All metrics as text, in the format Prometheus reads; names and bucket bounds are written as Go writes them."""
    return _BARE.sub(rb"\1", _WHOLE_BOUND.sub(rb'\1"', generate_latest(registry)))


def in_all_profiles(profiles: Iterable[str]) -> str:
    """The value of the label `profile` for calls that are not told apart by profile."""
    return ",".join(profiles)


class _BeforeOthers(Collector):
    """Has no metrics of its own, and is asked for them before the families that are registered later."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def collect(self) -> Iterable[Metric]:
        """Nothing."""
        self._act()
        return ()


class PluginMetrics:
    """A `framework.observer.Observer` that counts plugin calls and times one in ten of them.

    The runner does not say for which profile it calls a plugin, so the label `profile` of the counter names all
    profiles in force, joined by commas; with one profile, which is the ordinary case, it is that profile as upstream.
    Where each profile has a runner of its own, `called_for` tells them apart.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        profiles: Sequence[str],
        chance: Callable[[], float] | None = None,
        hidden: Collection[str] = (),
    ) -> None:
        """Register with *registry* all but the families *hidden*.

        *chance* gives numbers from 0 up to 1 and decides which calls are timed.
        """
        self._evaluations: Counter[tuple[str, str, str]] = Counter()
        registry.register(_BeforeOthers(self._tell_evaluations))
        self.families = Families(registry, PLUGIN_FAMILIES, hidden)
        self._profile = in_all_profiles(profiles)
        self._chance = chance or Random().random  # noqa: S311  a sample, no secret

    def serve(self, profiles: Sequence[str]) -> None:
        """From now on these profiles are in force."""
        self._profile = in_all_profiles(profiles)

    def expects(self, profile: Profile) -> None:
        """Calls of the plugins of *profile* are counted from 0 on."""
        asked = {
            "PreFilter": profile.pre_filters,
            "Filter": profile.filters,
            "PreScore": profile.pre_scores,
            "Score": [weighted.plugin for weighted in profile.scores],
        }
        for point, plugins in asked.items():
            for plugin in plugins:
                self.families.child("scheduler_plugin_evaluation_total", plugin.name, point, profile.scheduler_name)

    def called(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """A plugin was called at an extension point and took *seconds*."""
        self.called_for(self._profile, plugin, point, code, seconds)

    def called_for(self, profile: str, plugin: str, point: str, code: Code, seconds: float) -> None:
        """A plugin was called for a pod of *profile*."""
        if point in _EVALUATIONS:
            self._evaluations[plugin, point, profile] += 1
        if self._chance() < SAMPLED:
            named = _UPSTREAM_POINTS.get(point, point)
            name = "scheduler_plugin_execution_duration_seconds"
            self.families.observe(name, plugin, named, code.label, value=seconds)

    def reset(self) -> None:
        """Forget all calls. Source: H046."""
        self._evaluations.clear()
        self.families.reset()

    def _tell_evaluations(self) -> None:
        """Some fifty a pod: they are counted here, and added up when somebody looks."""
        for labels, count in self._evaluations.items():
            self.families.count("scheduler_plugin_evaluation_total", *labels, by=count)
        self._evaluations.clear()

    def passed(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """All plugins of an extension point were run for one pod."""
        name = "scheduler_framework_extension_point_duration_seconds"
        self.families.observe(name, _UPSTREAM_POINTS.get(point, point), code.label, profile, value=seconds)
