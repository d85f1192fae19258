"""Plugins that take long are named, once each: an observer around another that notices slow calls."""

from collections.abc import Callable, Collection

from extender.framework.observer import Observer, Silent
from extender.framework.verdict import Code

SLOW = 0.1
"""How long one call of a plugin may take before it is called slow, in seconds."""


class SlowCalls:
    """Passes everything on, and tells of the first call of each plugin that took longer than *most* seconds.

    Attributes:
        slow: the plugins told of, with the seconds of that call.
    """

    __slots__ = ("_exempt", "_inner", "_most", "_tell", "slow")

    def __init__(
        self,
        tell: Callable[[str], None],
        inner: Observer | None = None,
        *,
        exempt: Collection[str] = (),
        most: float = SLOW,
    ) -> None:
        """Watch from now on.

        Args:
            tell: given one line about a plugin.
            inner: hears everything as well.
            exempt: plugins that are not told of.
            most: seconds.
        """
        self._tell, self._inner, self._most = tell, inner or Silent(), most
        self._exempt = frozenset(exempt)
        self.slow: dict[str, float] = {}

    def called(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Notices a slow call."""
        self._inner.called(plugin, point, code, seconds)
        if seconds > self._most and plugin not in self.slow and plugin not in self._exempt:
            self.slow[plugin] = seconds
            took, most = f"{seconds * 1000:.0f} ms", f"{self._most * 1000:.0f} ms"
            self._tell(f'plugin "{plugin}" is slow: one call of {point} took {took}, want at most {most}')

    def passed(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Nothing of its own."""
        self._inner.passed(profile, point, code, seconds)
