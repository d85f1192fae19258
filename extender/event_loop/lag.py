"""Measure how late the event loop runs timers."""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

SAMPLE_SECONDS: Final = 0.05
"""Seconds between two samples."""


async def observe_lag(observe: Callable[[float], None]) -> None:
    """Call *observe* with the seconds by which each timer is late, until cancelled.

    The clock is not that of the event loop: uvloop's stands still during a turn, and counts whole milliseconds.
    """
    while True:
        start = perf_counter()
        await asyncio.sleep(SAMPLE_SECONDS)
        observe(max(0.0, perf_counter() - start - SAMPLE_SECONDS))
