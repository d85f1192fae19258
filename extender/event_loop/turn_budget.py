"""Bound the work of one turn of the event loop, and measure how late the loop runs timers.

Many tasks may be due in one turn, such as the bindings whose responses arrived together. Each takes less than a
millisecond, but timers, health probes and the verbs wait for all of them. So a task calls `wait_for_turn` before each
step of its work, and its step is delayed to a later turn if the turn has already lasted long.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final
from weakref import WeakKeyDictionary

TURN_SECONDS: Final = 0.004
"""Seconds after which no further step begins in a turn. The last step may end later."""


_LONG_STEP_SECONDS, _PAUSE_SHARE, _MAX_PAUSE_SECONDS = 0.2, 0.1, 1.0
"""Duration of a step after which its task pauses, the pause as a share of the duration, and the longest pause.

An attempt may block the event loop, up to the `filterTimeout` of DynamicResources, which is the deadline for a renewal
of the lease, too. So the handshake of a health probe and the renewal of the lease must end in the pause. After shorter
steps they take four turns, which must be less than the second after which the kubelet ends a probe by default.
"""


def compute_pause(seconds: float) -> float:
    """Return for how many seconds a task pauses after a step of *seconds*; 0 unless the step was long."""
    return min(seconds * _PAUSE_SHARE, _MAX_PAUSE_SECONDS) if seconds >= _LONG_STEP_SECONDS else 0.0


@dataclass(slots=True)
class _Turn:
    """The current turn of an event loop.

    Attributes:
        start: the time of its first step (`perf_counter`); None before it.
        number: the number of turns with a step.
        waiting: an entry for each waiting task, in the order in which they called.
    """

    start: float | None = None
    number: int = 0
    waiting: deque[object] = field(default_factory=deque)

    def end(self, number: int) -> None:
        """End the turn with *number*, if no later one has begun."""
        if self.number == number:
            self.start = None


_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Turn]] = WeakKeyDictionary()


async def wait_for_turn() -> None:
    """Wait for a turn of the event loop that has lasted less than `TURN_SECONDS`; return at once if it is this one.

    The duration is counted from the first step in the turn. Waiting tasks continue in the order in which they called,
    and a task that calls later waits behind them. The first of them continues in the next turn, or in the one after it
    if steps that do not wait take all of the next one.
    """
    turn = _get_turn()
    if not turn.waiting and begin_step() < TURN_SECONDS:
        return
    entry, was_first = object(), False
    turn.waiting.append(entry)
    try:
        while True:
            number = turn.number
            await asyncio.sleep(0)
            if turn.waiting[0] is entry:
                turn.end(number)  # no step since then: this is another turn
                if begin_step() < TURN_SECONDS or was_first:
                    return
                was_first = True
    finally:
        turn.waiting.remove(entry)


def begin_step() -> float:
    """Begin a step without waiting; return the seconds since the first step of the current turn of the event loop."""
    turn = _get_turn()
    now = perf_counter()
    if turn.start is None:
        turn.start = now
        turn.number += 1
        asyncio.get_running_loop().call_soon(turn.end, turn.number)
    return now - turn.start


def _get_turn() -> _Turn:
    loop = asyncio.get_running_loop()
    turn = _turns.get(loop)
    if turn is None:
        turn = _turns[loop] = _Turn()
    return turn


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
