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

_turn_starts: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, float]] = WeakKeyDictionary()
"""By event loop, the time of the first call in the current turn (`perf_counter`)."""


async def wait_for_turn(seconds: float = TURN_SECONDS) -> None:
    """Wait for a turn of the event loop that has lasted less than *seconds*; return at once if it is this one.

    Waiting tasks continue in the order in which they called. The duration is counted from the first call in the turn.
    """
    loop = asyncio.get_running_loop()
    while _get_turn_seconds(loop) >= seconds:
        await asyncio.sleep(0)


def _get_turn_seconds(loop: asyncio.AbstractEventLoop) -> float:
    turn_start = _turn_starts.get(loop)
    if turn_start is None:
        _turn_starts[loop] = perf_counter()
        loop.call_soon(_turn_starts.pop, loop, None)  # runs in the next turn, before the tasks that wait for it
        return 0.0
    return perf_counter() - turn_start
