"""What the runner reports to: timings and outcomes of plugins.

`observe` implements it for metrics; the core stays silent.
"""

from typing import Protocol

from extender.framework.verdict import Code


class Observer(Protocol):
    """Hears of plugin calls. Must be cheap and must not raise."""

    def called(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """A plugin was called at an extension point (`Filter`) and took *seconds*."""

    def passed(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """All plugins of an extension point were run for one pod."""


class Silent:
    """Hears and says nothing."""

    def called(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        """Nothing."""

    def passed(self, profile: str, point: str, code: Code, seconds: float) -> None:
        """Nothing."""
