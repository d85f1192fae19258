"""Time as a value passed in, so that nothing in the core reads a clock by itself."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds that never run backwards; for waiting and measuring."""

    def now(self) -> float:
        """Seconds since 1970-01-01T00:00:00Z; for time stamps only."""


class SystemClock:
    """The machine's own clocks."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    def now(self) -> float:
        """Seconds since 1970-01-01T00:00:00Z."""
        return time.time()
