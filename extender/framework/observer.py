"""The observer of plugin calls, which receives durations and codes. `extender.metrics` implements it."""

from typing import Protocol

from extender.framework.status import Code


class PluginObserver(Protocol):
    """Observes plugin calls. The methods must be cheap and must not raise."""

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Observe one call of a plugin at an extension point, such as `Filter`, and its duration."""

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Observe a run of all plugins of an extension point for one pod, and its duration."""


class NullObserver:
    """An observer that ignores everything."""

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Do nothing."""

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
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
