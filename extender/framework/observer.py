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
