"""Run a coroutine that does not wait for I/O, or a generator, to its end; cancel a task."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run *coroutine* to its end and return its result. It may not wait for I/O or time."""
    return asyncio.run(coroutine)


def run_steps(steps: Generator[Any, None, T]) -> T:
    """Run a generator to its end and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


async def check_cancellation(task: asyncio.Task[Any], turns: int) -> None:
    """Cancel *task* after a number of turns of the event loop, and check that it ends."""
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=60)
    assert done == {task}
