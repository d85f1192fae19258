"""One kind of object kept up to date: a stream of typed changes, however often the connection breaks.

    unlisted ── list ──> listed ── watch ──> listed ...      the watch ends, breaks or falls silent: go on from there
        ^                  |
        └── 410, unreadable┘                                 list again; what is missing then was deleted meanwhile

After a failure it waits: 0.8 s, doubled up to 30 s, with jitter; not after a 410 alone, which a healthy server answers:
until the list is read, nobody knows what was missed. Whoever listens hears of each object's changes in
order, never of half a list, and never twice of the same one. Source: client-go's reflector and DeltaFIFO.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from extender.basics.clock import Clock
from extender.client.errors import (
    AnswerError,
    ApiError,
    CredentialsError,
    ForbiddenError,
    GoneError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)
from extender.client.listwatch import QUIET_SECONDS, Event, EventType, Listed, Source, key_of, list_all, watch
from extender.client.pacing import Backoff, Chance
from extender.client.transport import Transport
from extender.objects.meta import KubernetesObject

T = TypeVar("T", bound=KubernetesObject)

_LOG: Final = logging.getLogger(__name__)

BATCH: Final = 500
"""Changes told at once; in between others have their turn at the event loop."""

_SHORT: Final = 1.0
"""A watch that ends sooner (seconds) without a single event counts as a failure."""

_FORGETFUL: Final = 10.0
"""Seconds in which a server that forgets versions again counts as failing."""

_PATIENCE: Final = 3
"""Watches in a row that end in a server's fault before the list is read again."""


@dataclass(frozen=True, slots=True)
class ObjectChange(Generic[T]):
    """What became of one object: added (no `old`), updated, or deleted (no `new`).

    An object deleted and made again under the same name is two changes. `inferred`: the deletion was not seen; the
    object was missing from a new list, and `old` is its last known state.
    """

    old: T | None
    new: T | None
    inferred: bool = False


@dataclass(slots=True)
class Counts:
    """How often things happened since the start.

    Attributes:
        lists: lists read to their end.
        watches: watches accepted.
        events: changes and deletions told by watches.
        bookmarks: events that only move the version.
        ignored: events that told nothing new: repeated, out of order.
        unreadable: objects that our types cannot hold; they are left out.
        malformed: answers that could not be read at all.
        gone: versions the server no longer had.
        failures: all other failures.
    """

    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    ignored: int = 0
    unreadable: int = 0
    malformed: int = 0
    gone: int = 0
    failures: int = 0


@dataclass(slots=True)
class Reflector(Generic[T]):
    """Keeps one kind up to date.

    Attributes:
        source: what to watch.
        deliver: told of changes, in order; must not wait for anything.
        counts: how often things happened.
        trouble: why it is not up to date, in the last failure's words; empty while all is well.
        refused: whether that failure was that we may not read it, which the server takes back only if somebody acts.
        heard_at: monotonic seconds of the last sign of life; None before the first.
        synced: set once everything of the first list has been delivered.
    """

    transport: Transport
    source: Source[T]
    deliver: Callable[[Sequence[ObjectChange[T]]], None]
    clock: Clock
    chance: Chance = field(default_factory=lambda: random.Random().random)  # noqa: S311  spreads load
    quiet: float = QUIET_SECONDS
    counts: Counts = field(default_factory=Counts)
    trouble: str = ""
    refused: bool = False
    heard_at: float | None = None
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    _version: str = ""
    _known: dict[str, T] = field(default_factory=dict)
    _faults: int = 0

    @property
    def version(self) -> str:
        """The state it has reached; empty: the list must be read (again)."""
        return self._version

    def stale_for(self, now: float) -> float:
        """Seconds since the server was last heard; endless before the first time."""
        return float("inf") if self.heard_at is None else max(0.0, now - self.heard_at)

    async def run(self) -> None:
        """Until cancelled. Raises only what `deliver` raises."""
        backoff, forgot = Backoff(self.chance), float("-inf")
        now = self.clock.monotonic
        while True:
            try:
                if not self._version:
                    await self._list()
                if await self._watch():
                    continue
                failure, wait = "the server ends watches at once", backoff.after_failure(now())
            except GoneError as fault:
                failure = self._take(fault)
                wait = 0.0 if now() - forgot > _FORGETFUL else backoff.after_failure(now())
                forgot = now()
            except ApiError as fault:
                failure, wait = self._take(fault), backoff.after_failure(now())
            self.trouble = f"{self.source.endpoint.plural}: {failure}"
            _LOG.log(
                logging.ERROR if self.refused else logging.WARNING,
                "Not allowed to watch, trying again" if self.refused else "Watching failed, trying again",
                extra={"resource": self.source.endpoint.plural, "err": failure, "wait": wait},
            )
            await asyncio.sleep(wait)

    def _take(self, fault: ApiError) -> str:
        """What follows from a failure: whether the list must be read again."""
        self.refused = isinstance(fault, ForbiddenError | UnauthorizedError)
        match fault:
            case GoneError():
                self.counts.gone += 1
                self._version = ""
            case AnswerError():
                self.counts.malformed += 1
                self._version = ""
            case ServerError():
                self.counts.failures += 1
                self._faults += 1
                if self._faults >= _PATIENCE:
                    self._version = ""
            case (
                UnreachableError()
                | TooManyRequestsError()
                | UnauthorizedError()
                | ForbiddenError()
                | CredentialsError()
            ):
                self.counts.failures += 1
            case _:
                self.counts.failures += 1
                self._version = ""
        return fault.message

    def _alive(self) -> None:
        self.heard_at = self.clock.monotonic()
        self.trouble, self.refused = "", False

    async def _list(self) -> None:
        listed = await list_all(self.transport, self.source)
        self._alive()
        self.counts.lists += 1
        self._faults = 0
        if listed.unreadable:
            self.counts.unreadable += listed.unreadable
            _LOG.error(
                "Objects cannot be read and are left out",
                extra={"resource": self.source.endpoint.plural, "count": listed.unreadable},
            )
        changes = self._compare(listed)
        for start in range(0, len(changes), BATCH):
            self._tell(changes[start : start + BATCH])
            await asyncio.sleep(0)
        self._version = listed.version
        self.synced.set()

    def _compare(self, listed: Listed[T]) -> list[ObjectChange[T]]:
        """What happened since; deletions first, as they make room."""
        gone: list[ObjectChange[T]] = [
            ObjectChange(old, None, inferred=True) for key, old in self._known.items() if key not in listed.items
        ]
        changed: list[ObjectChange[T]] = []
        for key, new in listed.items.items():
            old = self._known.get(key)
            if old is not None and old.metadata.uid != new.metadata.uid:
                gone.append(ObjectChange(old, None, inferred=True))
                old = None
            if old is None or old.metadata.resource_version != new.metadata.resource_version:
                changed.append(ObjectChange(old, new))
        return gone + changed

    async def _watch(self) -> bool:
        """One watch from beginning to end; False if it was over before it began."""
        began, told = self.clock.monotonic(), 0
        async with aclosing(watch(self.transport, self.source, self._version, self.chance, self.quiet)) as batches:
            first = True
            async for events in batches:
                self._alive()
                self.counts.watches += first
                first = False
                told += len(events)
                self._hear(events)
        self._faults = 0
        return told > 0 or self.clock.monotonic() - began >= _SHORT

    def _hear(self, events: list[Event[T]]) -> None:
        """Take events over; what they change is told together."""
        changes: list[ObjectChange[T]] = []
        for event in events:
            if not _is_later(event.version, self._version):
                self.counts.ignored += event.type is not EventType.BOOKMARK
                continue
            self._version = event.version
            if event.type is EventType.BOOKMARK:
                self.counts.bookmarks += 1
                continue
            self.counts.events += 1
            # One object may change twice in a row: each change starts from the state after the one before.
            for change in self._change(event):
                self._remember(change)
                changes.append(change)
        if changes:
            self.deliver(changes)

    def _change(self, event: Event[T]) -> list[ObjectChange[T]]:
        old, new = self._known.get(event.key), event.object
        if event.type is EventType.DELETED:
            if old is None:
                self.counts.ignored += 1
                return []
            last = new if new is not None and new.metadata.uid == old.metadata.uid else old
            return [ObjectChange(last, None)]
        if new is None:
            self.counts.unreadable += 1
            _LOG.error(
                "An object cannot be read; its last known state is kept",
                extra={"resource": self.source.endpoint.plural, "object": event.key},
            )
            return []
        if old is not None and old.metadata.uid != new.metadata.uid:
            return [ObjectChange(old, None, inferred=True), ObjectChange(None, new)]
        return [ObjectChange(old, new)]

    def _tell(self, changes: Sequence[ObjectChange[T]]) -> None:
        for change in changes:
            self._remember(change)
        self.deliver(changes)

    def _remember(self, change: ObjectChange[T]) -> None:
        """What was told is what is known, also when the listing is broken off half-way: then the rest follows later."""
        if change.new is not None:
            self._known[key_of(change.new)] = change.new
        elif change.old is not None:
            self._known.pop(key_of(change.old), None)


def _is_later(version: str, than: str) -> bool:
    """Versions are whole numbers that grow; of any others, only that they differ can be said.

    Source: KEP-5504, comparable resource versions.
    """
    if version.isascii() and version.isdigit() and than.isascii() and than.isdigit():
        return int(version) > int(than)
    return version != than
