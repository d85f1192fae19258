"""The observer of plugin calls, which receives durations and codes. `extender.metrics` implements it."""

from enum import Enum, auto
from typing import Protocol

from extender.framework.status import Code


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


class PluginObserver(Protocol):
    """Observes plugin calls. The methods must be cheap and must not raise."""

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Observe one call of a plugin at an extension point, such as `Filter`, and its duration."""

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Observe a run of all plugins of an extension point for one pod, and its duration."""

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        """Observe *event*, which defines the labels and the value."""


class NullObserver:
    """An observer that ignores everything."""

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Do nothing."""

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Do nothing."""

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        """Do nothing."""


class ObserverPair:
    """An observer that forwards everything to two observers."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: PluginObserver, second: PluginObserver) -> None:
        self._first, self._second = first, second

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Forward the call."""
        self._first.observe_plugin_call(plugin, point, code, seconds)
        self._second.observe_plugin_call(plugin, point, code, seconds)

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Forward the observation."""
        self._first.observe_extension_point(profile, point, code, seconds)
        self._second.observe_extension_point(profile, point, code, seconds)

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        """Forward the event."""
        self._first.observe_event(event, labels, value)
        self._second.observe_event(event, labels, value)
