"""Iterate over long lists so that the event loop also serves health probes and watches."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from time import perf_counter
from typing import Any, Final, TypeVar

from extender.event_loop.turn_budget import begin_step, compute_pause, wait_for_turn

T = TypeVar("T")

MAX_BLOCKING_SECONDS: Final = 0.01
"""Seconds after which other tasks run."""

LARGE_COUNT: Final = 50_000
"""A step over this number of items takes about ten milliseconds."""

_LOOP_ITERATIONS: Final = 8
"""Iterations of the event loop while other tasks run; about a microsecond each if there are no other tasks.

A health probe on a new connection needs several: accept, read, run the application, write. With one iteration at a time
it would wait for a blocking step before each of them.
"""


async def let_other_tasks_run(count: int) -> None:
    """Let other tasks run between two steps over *count* items, if the steps or the current turn take long.

    The next step does not wait behind the steps of other tasks: a request has several, and others wait for its end.
    """
    if count >= LARGE_COUNT:
        await _run_other_tasks()
    elif (seconds := begin_step()) >= MAX_BLOCKING_SECONDS:
        await asyncio.sleep(compute_pause(seconds))
        begin_step()


async def pause_after(coroutine: Coroutine[Any, Any, None]) -> None:
    """Await *coroutine*, and let other tasks run after its last step. While it waits, they run anyway."""
    begin_step()
    try:
        await coroutine
    finally:
        await let_other_tasks_run(1)


async def iterate_cooperatively(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield *items*; let other tasks run after every 10 ms."""
    deadline = perf_counter() + MAX_BLOCKING_SECONDS
    for item in items:
        yield item
        if perf_counter() >= deadline:
            await _run_other_tasks()
            deadline = perf_counter() + MAX_BLOCKING_SECONDS


async def iterate_in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield *items*; see `wait_for_turn`."""
    await wait_for_turn()
    for item in items:
        yield item
        await wait_for_turn()


async def join_in_turns(parts: Iterable[bytes]) -> bytes:
    """Return *parts* as one string; see `wait_for_turn`."""
    return b"".join([part async for part in iterate_in_turns(parts)])


async def _run_other_tasks() -> None:
    for _ in range(_LOOP_ITERATIONS):
        await asyncio.sleep(0)
