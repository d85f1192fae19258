"""Bound the work of one turn of the event loop.

Many tasks may be due in one turn, such as the bindings whose responses arrived together. Each takes less than a
millisecond, but timers, health probes and the verbs wait for all of them. So a task calls `wait_for_turn` before each
step of its work, and its step is delayed to a later turn if the turn has already lasted long.
"""

import asyncio
from time import perf_counter
from typing import Final
from weakref import WeakKeyDictionary

TURN_SECONDS: Final = 0.004
"""Seconds after which no further step begins in a turn. The last step may end later."""

_turn_ends: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, float]] = WeakKeyDictionary()
"""By event loop, the time after which no further step begins in the current turn (`perf_counter`)."""


async def wait_for_turn() -> None:
    """Wait for a turn of the event loop in which another step may begin; return at once if it is this one.

    Waiting tasks continue in the order in which they called.
    """
    loop = asyncio.get_running_loop()
    while not _may_begin_step(loop):
        await asyncio.sleep(0)


def _may_begin_step(loop: asyncio.AbstractEventLoop) -> bool:
    turn_end = _turn_ends.get(loop)
    if turn_end is None:  # the first step of the turn
        _turn_ends[loop] = perf_counter() + TURN_SECONDS
        loop.call_soon(_turn_ends.pop, loop, None)  # runs in the next turn, before the tasks that wait for it
        return True
    return perf_counter() < turn_end
