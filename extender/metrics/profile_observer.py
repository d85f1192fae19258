"""The plugin observer of a profile of the standalone scheduler: it turns calls and events into metrics."""

from collections.abc import Mapping
from typing import Final

from extender.framework.observer import ObservedEvent, PluginObserver
from extender.framework.status import Code
from extender.metrics.families import MetricFamilies
from extender.metrics.plugin_metrics import PluginMetrics

_VOLUME_STAGES: Final = {"Filter": "predicate", "Reserve": "assume", "PreBind": "bind"}
"""Stages of volume binding by extension point."""

_EVENT_FAMILIES: Final[Mapping[ObservedEvent, tuple[str, str]]] = {
    ObservedEvent.PREEMPTION_EVALUATION: ("", "scheduler_preemption_evaluation_duration_seconds"),
    ObservedEvent.POD_GROUP_PREEMPTION: ("scheduler_workload_preemption_attempts_total", ""),
    ObservedEvent.PLACEMENTS_GENERATED: ("scheduler_generated_placements_total", ""),
    ObservedEvent.PLACEMENT_EVALUATION: (
        "scheduler_placement_evaluations_total",
        "scheduler_placement_evaluation_duration_seconds",
    ),
}
"""The counter and the histogram of an event; empty if there is none."""


class ProfileObserver(PluginObserver):
    """The plugin observer of a profile."""

    __slots__ = ("_families", "_plugins", "_profile")

    def __init__(self, profile: str, plugin_metrics: PluginMetrics, families: MetricFamilies) -> None:
        self._profile, self._plugins, self._families = profile, plugin_metrics, families

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Observe a plugin call; preemption attempts and volume binding errors count in other metrics too.

        Source: pkg/scheduler/metrics/metrics.go, PreemptionAttempts;
        pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go, VolumeSchedulingStageFailed (1.36).
        """
        if point == "PostFilter" and plugin == "DefaultPreemption":
            self._families.increment("scheduler_preemption_attempts_total")
        if plugin == "VolumeBinding" and code is Code.ERROR and point in _VOLUME_STAGES:
            self._families.increment("scheduler_volume_scheduling_stage_error_total", _VOLUME_STAGES[point])
        self._plugins.observe_profile_plugin_call(self._profile, plugin, point, code, seconds)

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Observe a run of all plugins of an extension point for one pod."""
        self._plugins.observe_extension_point(profile, point, code, seconds)

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        """Observe a preemption or a placement, if the release has its families."""
        counter, histogram = _EVENT_FAMILIES[event]
        if counter in self._families:
            self._families.increment(counter, *labels, by=1.0 if histogram else value)
        if histogram in self._families:
            self._families.observe(histogram, *labels, value=value)
