"""Send events in the background. Recording an event never waits and never fails.

Bindings have priority: while pods are being scheduled or bound, events with the reason `Scheduled` are deferred for
some seconds. Events beyond the capacity are dropped.

Source: client-go/tools/events/event_broadcaster.go, eventBroadcasterImpl.recordToSink (1.36).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID, uuid4

from extender.basics.clock import Clock
from extender.client.connections import MAX_CONCURRENT_REQUESTS
from extender.client.errors import AlreadyExistsError, ApiError, CredentialsError, NotFoundError, UnreachableError
from extender.client.events import BINDING_REASON, FINISH_SECONDS, REFRESH_SECONDS, Event, EventSeriesCache, EventWrite
from extender.client.rate_limit import Jitter
from extender.client.transport import STRATEGIC_MERGE_PATCH
from extender.client.writer import Writer

_LOG: Final = logging.getLogger(__name__)

CAPACITY: Final = 20_000
"""The maximum number of pending events. Each event takes some kilobytes of memory."""

SENDER_COUNT: Final = MAX_CONCURRENT_REQUESTS
"""The maximum number of concurrent requests. With fewer requests than bindings have, the pending events would grow."""

MAX_DEFER_SECONDS: Final = 5.0
"""The maximum seconds for which the event of a binding is deferred while other pods are scheduled or bound."""

_POLL_SECONDS: Final = 0.05

_MAX_TIMESTAMP_LEAD_NS: Final = 1_000_000_000
"""Nanoseconds by which unique timestamps may be ahead of the clock; more means that the clock was set back."""

MAX_ATTEMPTS: Final = 12
RETRY_SECONDS: Final = 10.0
_JITTER_FACTOR: Final = 0.25

_WriteQueue: TypeAlias = deque[tuple[float, EventWrite]]
"""Pending writes with the time they were enqueued (monotonic seconds)."""


@dataclass(slots=True)
class _SenderQueues:
    """The pending writes of one sender. All writes of one event are in one queue, so that they stay in order."""

    urgent: _WriteQueue = field(default_factory=deque)
    deferrable: _WriteQueue = field(default_factory=deque)
    wake_up: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class EventBroadcaster:
    """Records events and sends them over a separate session, so that events never delay bindings.

    Attributes:
        series_cache: the cache that detects repeated events.
        clock: the clock; its monotonic time decides when a series ends, and its wall time gives timestamps.
        jitter: the source of random numbers from 0 up to 1.
        capacity: the maximum number of pending events; further events are dropped.
        new_uuid: the source of event names, for objects whose own name is not valid in an event name.
        has_bindings_in_flight: the function that returns whether pods are being scheduled or bound. Events of bindings
            are then deferred.
    """

    writer: Writer
    series_cache: EventSeriesCache
    clock: Clock
    jitter: Jitter
    capacity: int = CAPACITY
    new_uuid: Callable[[], UUID] = uuid4
    has_bindings_in_flight: Callable[[], bool] = lambda: False
    _senders: tuple[_SenderQueues, ...] = field(
        default_factory=lambda: tuple(_SenderQueues() for _ in range(SENDER_COUNT))
    )
    _last_timestamp_ns: int = 0
    _draining: bool = False

    @property
    def pending_count(self) -> int:
        """Number of events that are not sent yet."""
        return sum(len(sender.urgent) + len(sender.deferrable) for sender in self._senders)

    def record(self, event: Event) -> None:
        """Enqueue *event*."""
        if self.pending_count >= self.capacity:
            return
        # Timestamps are unique, because an event's name is made of its object's name and its timestamp. If the clock
        # was set back, they follow it.
        now_ns = int(self.clock.now() * 1e9)
        was_set_back = self._last_timestamp_ns - now_ns > _MAX_TIMESTAMP_LEAD_NS
        self._last_timestamp_ns = now_ns if was_set_back else max(now_ns, self._last_timestamp_ns + 1)
        write = self.series_cache.observe(event, self.clock.monotonic(), self._last_timestamp_ns, self.new_uuid())
        if write is not None:
            self._enqueue(write)

    def _enqueue(self, write: EventWrite) -> None:
        # One sender has all writes of an event, so that the event is created before its series is patched.
        sender = self._senders[hash(write.name) % SENDER_COUNT]
        queue = sender.deferrable if write.body["reason"] == BINDING_REASON else sender.urgent
        queue.append((self.clock.monotonic(), write))
        sender.wake_up.set()

    async def run(self) -> None:
        """Send events until cancelled. Pending events are then lost; call `drain` first."""
        async with asyncio.TaskGroup() as tasks:
            for sender in self._senders:
                tasks.create_task(self._run_sender(sender))
            tasks.create_task(
                self._enqueue_periodically(
                    FINISH_SECONDS, lambda: self.series_cache.remove_ended(self.clock.monotonic())
                )
            )
            tasks.create_task(self._enqueue_periodically(REFRESH_SECONDS, self.series_cache.make_refresh_writes))

    async def drain(self, timeout: float) -> bool:
        """Wait for pending events while `run` runs, *timeout* seconds at most; return whether all are sent."""
        deadline = self.clock.monotonic() + timeout
        self._draining = True
        while self.pending_count and self.clock.monotonic() < deadline:
            await asyncio.sleep(_POLL_SECONDS)
        return not self.pending_count

    async def _enqueue_periodically(self, seconds: float, make_writes: Callable[[], list[EventWrite]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            for write in make_writes():
                if self.pending_count < self.capacity:
                    self._enqueue(write)

    async def _run_sender(self, sender: _SenderQueues) -> None:
        while True:
            while queue := sender.urgent or sender.deferrable:
                enqueued_at, write = queue[0]
                if queue is sender.deferrable and (
                    self.has_bindings_in_flight()
                    and not self._draining
                    and self.clock.monotonic() < enqueued_at + MAX_DEFER_SECONDS
                ):
                    await asyncio.sleep(_POLL_SECONDS)
                    continue
                await self._send(write)
                queue.popleft()
            sender.wake_up.clear()
            await sender.wake_up.wait()

    async def _send(self, write: EventWrite) -> None:
        outcome_unknown = False
        for remaining_attempts in range(MAX_ATTEMPTS - 1, -1, -1):
            try:
                await self._send_once(write)
            except ApiError as error:
                if outcome_unknown and write.patch is None and isinstance(error, AlreadyExistsError):
                    return  # it was written by the attempt whose response was lost
                outcome_unknown = outcome_unknown or isinstance(error, UnreachableError)
                should_retry = isinstance(error, (UnreachableError, CredentialsError)) or (
                    isinstance(error, AlreadyExistsError) and write.patch is not None
                )
                if not should_retry or not remaining_attempts:
                    _LOG.warning(
                        "An event could not be written",
                        extra={"event": f"{write.namespace}/{write.name}", "err": str(error)},
                    )
                    return
                await asyncio.sleep(RETRY_SECONDS * (1.0 + _JITTER_FACTOR * self.jitter()))
            else:
                return

    async def _send_once(self, write: EventWrite) -> None:
        if write.patch is not None:
            try:
                await self.writer.patch(
                    "Event", write.namespace, write.name, write.patch, content_type=STRATEGIC_MERGE_PATCH
                )
            except NotFoundError:
                pass  # the event has expired, or was never written: create it
            else:
                return
        await self.writer.create("Event", write.namespace, write.body)
