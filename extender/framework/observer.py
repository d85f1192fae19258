"""Observers of plugin calls, which receive durations and codes. `extender.metrics` implements one."""

from collections.abc import Callable, Collection
from enum import Enum, auto

from extender.framework.status import Code

SLOW_CALL_SECONDS = 0.1
"""The duration in seconds above which a call of a plugin is slow."""


class ObservedEvent(Enum):
    """An event with labels and a value.

    Source: pkg/scheduler/metrics/metrics.go, PreemptionEvaluationDuration, WorkloadPreemptionAttempts,
    GeneratedPlacementsTotal, PlacementEvaluations (1.37).
    """

    PREEMPTION_EVALUATION = auto()
    """A search for victims: the type of the preemptor, the code; seconds."""
    POD_GROUP_PREEMPTION = auto()
    """A preemption attempt for a pod group: the code; 1."""
    PLACEMENTS_GENERATED = auto()
    """The placements of a pod group: the profile; their number."""
    PLACEMENT_EVALUATION = auto()
    """An evaluation of one placement: feasible or infeasible, the profile; seconds."""


class PluginObserver:
    """Observes plugin calls. The methods must be cheap and must not raise. An inherited method does nothing."""

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Observe one call of a plugin at an extension point, such as `Filter`, and its duration."""

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Observe a run of all plugins of an extension point for one pod, and its duration."""

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        """Observe *event*, which defines the labels and the value."""


class SlowCallObserver(PluginObserver):
    """Reports each plugin's first call that took longer than `SLOW_CALL_SECONDS`.

    Attributes:
        slow_plugins: the reported plugins, with the duration of the reported call in seconds.
    """

    def __init__(self, report: Callable[[str], None], *, exempt_plugins: Collection[str] = ()) -> None:
        """Call *report* with one line for each slow plugin that is not exempt."""
        self._report = report
        self._exempt_plugins = frozenset(exempt_plugins)
        self.slow_plugins: dict[str, float] = {}

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:  # noqa: ARG002
        """Report the call if it is the plugin's first slow one."""
        if seconds > SLOW_CALL_SECONDS and plugin not in self.slow_plugins and plugin not in self._exempt_plugins:
            self.slow_plugins[plugin] = seconds
            duration, limit = f"{seconds * 1000:.0f} ms", f"{SLOW_CALL_SECONDS * 1000:.0f} ms"
            self._report(f'plugin "{plugin}" is slow: one call of {point} took {duration}, want at most {limit}')
