"""Whose turn it is: a few requests at once, some more wait a little, and who comes after them is told so at once.

Deciding takes the event loop; between two turns it looks at its sockets, so probes are not kept waiting by a queue of
verbs. A scheduler gives up after 5 seconds by default (F013): whoever would get no answer by then is better told early.
"""

import asyncio
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

from extender.web.wire import RequestError

BUSY: Final = 503

_ROUNDS: Final = 5
"""Rounds of the event loop before a turn. A decision holds the loop, so whoever came meanwhile must be heard first, to
stand in line or be told that it is too long; the loop takes on a connection a round."""

_HEARD: Final = 0.001
"""Seconds since the last turn after which that has happened by itself: a scheduler alone asks no faster."""


@dataclass(slots=True)
class Turns:
    """An asynchronous context manager; the block is one turn.

    Attributes:
        at_once: turns at a time.
        waiting: requests that may wait for one.
        seconds: a request waits at most.
    """

    at_once: int = 1
    waiting: int = 64
    seconds: float = 2.0
    _free: asyncio.Semaphore = field(init=False)
    _in_line: int = field(init=False, default=0)
    _ended: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.at_once)

    async def __aenter__(self) -> None:
        """Wait for a turn.

        Raises:
            RequestError: 503, there is none, and will be none soon.
        """
        await self._acquired()
        try:
            if time.monotonic() < self._ended + _HEARD:
                for _ in range(_ROUNDS):
                    await asyncio.sleep(0)
        except BaseException:
            self._free.release()
            raise

    async def _acquired(self) -> None:
        if not self._free.locked():
            await self._free.acquire()
            return
        if self._in_line >= self.waiting:
            raise RequestError(BUSY, f"{self._in_line} requests are waiting already; ask again later")
        self._in_line += 1
        try:
            async with asyncio.timeout(self.seconds):
                await self._free.acquire()
        except TimeoutError as late:
            raise RequestError(BUSY, f"waited {self.seconds:g} seconds for a turn; ask again later") from late
        finally:
            self._in_line -= 1

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The turn is over."""
        self._ended = time.monotonic()
        self._free.release()
