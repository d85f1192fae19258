"""Iterate over long lists so that the event loop also serves health probes and watches."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import perf_counter
from typing import Final, TypeVar

T = TypeVar("T")

MAX_BLOCKING_SECONDS: Final = 0.01
"""Seconds after which other tasks run."""


LARGE_COUNT: Final = 5_000
"""A step over this number of items takes a millisecond or more."""


async def let_other_tasks_run(count: int) -> None:
    """Let other tasks run once between two steps over *count* items, if *count* is at least `LARGE_COUNT`."""
    if count >= LARGE_COUNT:
        await asyncio.sleep(0)


async def iterate_cooperatively(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield *items*; let other tasks run after every 10 ms."""
    deadline = perf_counter() + MAX_BLOCKING_SECONDS
    for item in items:
        yield item
        if perf_counter() >= deadline:
            await asyncio.sleep(0)
            deadline = perf_counter() + MAX_BLOCKING_SECONDS
