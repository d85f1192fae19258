"""Report each plugin that is slow, at its first slow call."""

from collections.abc import Callable, Collection

from extender.framework.observer import NullObserver, ObservedEvent, PluginObserver
from extender.framework.status import Code

SLOW_CALL_SECONDS = 0.1
"""The duration in seconds above which a call of a plugin is slow."""


class SlowCallObserver:
    """Forwards observations, and reports each plugin's first call that took longer than a threshold.

    Attributes:
        slow_plugins: the reported plugins, with the duration of the reported call in seconds.
    """

    __slots__ = ("_exempt_plugins", "_inner", "_report", "_threshold", "slow_plugins")

    def __init__(
        self,
        report: Callable[[str], None],
        inner: PluginObserver | None = None,
        *,
        exempt_plugins: Collection[str] = (),
        threshold: float = SLOW_CALL_SECONDS,
    ) -> None:
        """Create the observer.

        Args:
            report: the function that is called with one line for each slow plugin.
            inner: the observer to which all observations are forwarded.
            exempt_plugins: plugins that are not reported.
            threshold: the duration in seconds above which a call is slow.
        """
        self._report, self._inner, self._threshold = report, inner or NullObserver(), threshold
        self._exempt_plugins = frozenset(exempt_plugins)
        self.slow_plugins: dict[str, float] = {}

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Forward the call, and report it if it is the plugin's first slow one."""
        self._inner.observe_plugin_call(plugin, point, code, seconds)
        if seconds > self._threshold and plugin not in self.slow_plugins and plugin not in self._exempt_plugins:
            self.slow_plugins[plugin] = seconds
            duration, limit = f"{seconds * 1000:.0f} ms", f"{self._threshold * 1000:.0f} ms"
            self._report(f'plugin "{plugin}" is slow: one call of {point} took {duration}, want at most {limit}')

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Forward the observation."""
        self._inner.observe_extension_point(profile, point, code, seconds)

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        """Forward the event."""
        self._inner.observe_event(event, labels, value)
