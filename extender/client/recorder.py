"""Events sent in the background: recording one never waits and never fails.

Bindings come first: while they are under way, events that only tell of one wait for some seconds. What cannot be kept
is dropped and counted.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID, uuid4

from extender.basics.clock import Clock
from extender.client.errors import AlreadyExistsError, ApiError, CredentialsError, NotFoundError, UnreachableError
from extender.client.events import FINISH_SECONDS, REFRESH_SECONDS, Event, Series, Writing
from extender.client.pacing import Chance
from extender.client.transport import STRATEGIC_MERGE_PATCH
from extender.client.writes import Writer

_LOG: Final = logging.getLogger(__name__)

CAPACITY: Final = 20_000
"""Events that wait at most, of some kilobytes each."""

SENDERS: Final = 8
"""Requests at a time."""

PATIENT: Final = frozenset({"Scheduled"})
"""The reasons of events that let other requests pass. There is one a binding, and nobody waits for it."""

PATIENCE: Final = 5.0
"""Seconds that they let pass."""

_STEP: Final = 0.05

MOST_TRIES: Final = 12
RETRY_SECONDS: Final = 10.0
_JITTER: Final = 0.25

_Line: TypeAlias = deque[tuple[float, Writing]]
"""Things to write, and since when (monotonic seconds)."""


@dataclass(slots=True)
class _Sender:
    """What one sender has to write. All writings of one event are in one line, so that they stay in order."""

    at_once: _Line = field(default_factory=deque)
    patient: _Line = field(default_factory=deque)
    woken: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Recorder:
    """Records events over a session of its own, so that they never stand in the way of a binding.

    Attributes:
        writer: sends them.
        series: which events repeat.
        clock: monotonic seconds for the end of series, the others for labels.
        chance: numbers from 0 up to 1.
        capacity: events that wait at most; further ones are dropped.
        unique: names an event whose object has a name that it cannot bear.
        yields: whether there is something more urgent to send.
        recorded, written, dropped, failed: how many so far. Repetitions count as recorded only.
    """

    writer: Writer
    series: Series
    clock: Clock
    chance: Chance
    capacity: int = CAPACITY
    unique: Callable[[], UUID] = uuid4
    yields: Callable[[], bool] = lambda: False
    recorded: int = 0
    written: int = 0
    dropped: int = 0
    failed: int = 0
    _senders: tuple[_Sender, ...] = field(default_factory=lambda: tuple(_Sender() for _ in range(SENDERS)))
    _last_ns: int = 0
    _hurries: bool = False

    @property
    def waiting(self) -> int:
        """Events that are not sent yet."""
        return sum(len(sender.at_once) + len(sender.patient) for sender in self._senders)

    def record(self, event: Event) -> None:
        """Have *event* written, some time."""
        self.recorded += 1
        if self.waiting >= self.capacity:
            self.dropped += 1
            return
        # Two events of one object within the clock's grain would bear one name.
        self._last_ns = max(int(self.clock.now() * 1e9), self._last_ns + 1)
        writing = self.series.happened(event, self.clock.monotonic(), self._last_ns, self.unique())
        if writing is not None:
            self._put(writing)

    def _put(self, writing: Writing) -> None:
        # One sender for all writings of one event: what makes it a series is sent after what creates it.
        sender = self._senders[hash(writing.name) % SENDERS]
        line = sender.patient if writing.body["reason"] in PATIENT else sender.at_once
        line.append((self.clock.monotonic(), writing))
        sender.woken.set()

    async def run(self) -> None:
        """Send until cancelled; what is waiting then is not sent, see `drain`."""
        async with asyncio.TaskGroup() as tasks:
            for sender in self._senders:
                tasks.create_task(self._send_all(sender))
            tasks.create_task(self._every(FINISH_SECONDS, lambda: self.series.finished(self.clock.monotonic())))
            tasks.create_task(self._every(REFRESH_SECONDS, self.series.refreshed))

    async def drain(self, seconds: float) -> bool:
        """Wait until all is sent, while `run` runs, but *seconds* at most; whether it is."""
        end = self.clock.monotonic() + seconds
        self._hurries = True
        while self.waiting and self.clock.monotonic() < end:
            await asyncio.sleep(0.05)
        return not self.waiting

    async def _every(self, seconds: float, what: Callable[[], list[Writing]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            for writing in what():
                if self.waiting >= self.capacity:
                    self.dropped += 1
                else:
                    self._put(writing)

    async def _send_all(self, sender: _Sender) -> None:
        while True:
            while line := sender.at_once or sender.patient:
                since, writing = line[0]
                if line is sender.patient and self._lets_pass(since):
                    await asyncio.sleep(_STEP)
                    continue
                await self._send(writing)
                line.popleft()
            sender.woken.clear()
            await sender.woken.wait()

    def _lets_pass(self, since: float) -> bool:
        """Whether a patient event that waits *since* then (monotonic seconds) has to wait on."""
        return self.yields() and not self._hurries and self.clock.monotonic() < since + PATIENCE

    async def _send(self, writing: Writing) -> None:
        unclear = False
        for further in range(MOST_TRIES - 1, -1, -1):
            try:
                await self._once(writing)
            except ApiError as fault:
                if unclear and writing.patch is None and isinstance(fault, AlreadyExistsError):
                    self.written += 1  # by the try whose answer was lost
                    return
                unclear = unclear or isinstance(fault, UnreachableError)
                again = isinstance(fault, (UnreachableError, CredentialsError)) or (
                    isinstance(fault, AlreadyExistsError) and writing.patch is not None
                )
                if not again or not further:
                    self.failed += 1
                    _LOG.warning(
                        "An event could not be written",
                        extra={"event": f"{writing.namespace}/{writing.name}", "err": str(fault)},
                    )
                    return
                await asyncio.sleep(RETRY_SECONDS * (1.0 + _JITTER * self.chance()))
            else:
                self.written += 1
                return

    async def _once(self, writing: Writing) -> None:
        if writing.patch is not None:
            try:
                await self.writer.patch(
                    "Event", writing.namespace, writing.name, writing.patch, content_type=STRATEGIC_MERGE_PATCH
                )
            except NotFoundError:
                pass  # the server has dropped it, or never had it: it is created whole
            else:
                return
        await self.writer.create("Event", writing.namespace, writing.body)
