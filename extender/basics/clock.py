"""The clock as an injected dependency, so that tests control time."""

import time
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def monotonic(self) -> float:
        """Return seconds that never decrease; for waiting and measuring."""

    def now(self) -> float:
        """Return seconds since 1970-01-01T00:00:00Z; for timestamps only."""


class SystemClock:
    """The system clocks."""

    def monotonic(self) -> float:
        """Return seconds that never decrease."""
        return time.monotonic()

    def now(self) -> float:
        """Return seconds since 1970-01-01T00:00:00Z."""
        return time.time()
