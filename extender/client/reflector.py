"""List and watch one kind of object, and deliver typed deltas however often the connection breaks.

    unlisted ── list ──> listed ── watch ──> listed ...      the watch ends, breaks or is silent: watch again
        ^                  |
        └── 410, malformed ┘                                 list again; missing objects were deleted meanwhile

A watch after a failure could start at a resource version that the server does not have any more: etcd was restored from
a backup. Such a watch has neither events nor an error. So the server's version is read first, and if it is older than
ours, the list is read again. client-go does not notice this.

After a failure the reflector waits 0.8 s, doubled up to 30 s, with jitter. A server that rejects a watch can ask for
another wait: one that starts says 429, one second. After a single 410 the reflector lists again immediately, because a
healthy server returns 410 too. The deltas of an object are delivered once and in order. A list is delivered only as a
whole.

Source: client-go/tools/cache/reflector.go, Reflector.ListAndWatch; client-go/tools/cache/delta_fifo.go, DeltaFIFO
(1.36).
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from extender.api.kinds.meta import KubernetesObject
from extender.api.resource_versions import make_version_key
from extender.basics.clock import Clock
from extender.client.errors import (
    ApiError,
    CredentialsError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)
from extender.client.listwatch import ListWatch, ObjectList, is_served, list_all, read_resource_version
from extender.client.rate_limit import Backoff, Jitter
from extender.client.transport import MAX_ATTEMPTS, Transport
from extender.client.watch import IDLE_TIMEOUT, EventType, WatchEvent, watch
from extender.event_loop.turn_budget import wait_for_turn
from extender.logs.klog import verbosity

T = TypeVar("T", bound=KubernetesObject)

_LOG: Final = logging.getLogger(__name__)

DELTA_BATCH: Final = 50
"""Deltas of a list delivered at once: about five milliseconds."""

_MIN_WATCH_SECONDS: Final = 1.0
"""A watch that ends within this time and without a new event counts as a failure."""

_GONE_WINDOW_SECONDS: Final = 10.0
"""A 410 counts as a failure if it follows another 410 within this time."""

_MAX_EARLY_RETRY_SECONDS: Final = 5.0
"""Seconds after which a failed watch is retried at the latest, if other requests succeed."""

_STABLE_SECONDS: Final = 20.0
"""Seconds without a failure after which the next failed watch is retried as soon as another request succeeds."""

_START_SECONDS: Final = 60.0
"""Seconds after a failure of the server in which a rejected request may be due to its start."""

_MAX_SERVER_ERRORS: Final = 3
"""Consecutive watches that may end in a server error before the list is read again."""


@dataclass(frozen=True, slots=True)
class Delta(Generic[T]):
    """A change of one object: added (`old` is None), updated, or deleted (`new` is None).

    If an object is deleted and recreated under the same name, there are two deltas.

    Attributes:
        inferred: whether the watch had no event of the deletion. The object is missing from a new list, or it was
            replaced; `old` is its last known state.
    """

    old: T | None
    new: T | None
    inferred: bool = False


@dataclass(slots=True)
class ReflectorCounts:
    """Counters since the start.

    Attributes:
        watches: accepted watches.
        failures: lists and watches that ended with an error.
    """

    lists: int = 0
    watches: int = 0
    failures: int = 0


@dataclass(slots=True)
class Reflector(Generic[T]):
    """Lists and watches one kind.

    Attributes:
        deliver: the callback for deltas, in order; it must not block.
        jitter: the random function that spreads retries.
        idle_timeout: the seconds without data after which a watch is ended.
        last_error: the last error's message while the reflector is not up to date; else empty.
        forbidden: whether the last error was a 401 or 403, which lasts until permissions change.
        last_contact: the time of the server's last response in monotonic seconds; None before the first.
        recovered_at: the time of the first response after the last failure, in monotonic seconds.
        resource_version: the last resource version; empty: the list must be read.
        synced: the event that is set when the whole first list was delivered.
        is_optional: whether an API server that does not serve the kind counts as one without objects.
        retains_objects: whether known objects stay known if the API server no longer serves the optional kind.
        on_list: the callback for the resource version of a list, after all deltas of the list.
        missing_kind_hint: the message if the API server does not serve the kind; empty: the API server's message.
    """

    transport: Transport
    list_watch: ListWatch[T]
    deliver: Callable[[Sequence[Delta[T]]], None]
    clock: Clock
    jitter: Jitter = field(default_factory=lambda: random.Random().random)  # noqa: S311  spreads load
    idle_timeout: float = IDLE_TIMEOUT
    counts: ReflectorCounts = field(default_factory=ReflectorCounts)
    last_error: str = ""
    forbidden: bool = False
    last_contact: float | None = None
    recovered_at: float = float("-inf")
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    is_optional: bool = False
    retains_objects: bool = False
    missing_kind_hint: str = ""
    on_list: Callable[[str], None] = lambda _: None
    resource_version: str = ""
    _may_be_restored: bool = False
    _is_restored: bool = False
    _store: dict[str, T] = field(default_factory=dict)
    _server_errors: int = 0
    _min_retry_seconds: float = 0.0
    _last_failure: float = float("-inf")
    _last_outage: float = float("-inf")
    _retry_after_count: int = 0

    def compute_staleness(self, now: float) -> float:
        """Return the seconds since the server's last response; infinity before the first."""
        return float("inf") if self.last_contact is None else max(0.0, now - self.last_contact)

    async def run(self) -> None:
        """List and watch until cancelled. Raises only errors of `deliver`.

        After a failure of the server, the back-off ends early when another request succeeds.
        """
        backoff, last_gone = Backoff(self.jitter), float("-inf")
        now = self.clock.monotonic
        while True:
            is_server_failure = False
            try:
                if not self.resource_version and not await self._list():
                    await asyncio.sleep(backoff.compute_next_delay(now()))
                    continue
                if self._may_be_restored:
                    await self._check_resource_version()
                if await self._watch():
                    continue
                failure, wait = "the server ended the watch immediately", backoff.compute_next_delay(now())
            except GoneError as error:
                failure = self._handle_error(error)
                wait = 0.0 if now() - last_gone > _GONE_WINDOW_SECONDS else backoff.compute_next_delay(now())
                last_gone = now()
            except ApiError as error:
                failure, wait = self._handle_error(error), self._compute_delay(error, backoff)
                is_server_failure = self._is_server_failure(error)
            self._may_be_restored |= is_server_failure
            self.last_error = f"{self.list_watch.endpoint.plural}: {failure}"
            level = logging.ERROR if self.forbidden else logging.WARNING
            if wait == 0.0 and not self._is_restored:
                level = verbosity(4)  # a healthy server returns 410 too
            _LOG.log(
                level,
                "Not allowed to watch, trying again" if self.forbidden else "Watching failed, trying again",
                extra={"resource": self.list_watch.endpoint.plural, "err": failure, "wait": wait},
            )
            if is_server_failure:
                await self._wait_for_recovery(wait)
            else:
                await asyncio.sleep(wait)

    def _compute_delay(self, error: ApiError, backoff: Backoff) -> float:
        """Return the seconds until the next attempt. The server may choose ten of them, then *backoff* chooses one.

        Source: client-go/rest/request.go, Request.Watch; client-go/rest/with_retry.go, withRetry.IsNextRetry (1.36).
        """
        self._retry_after_count += 1
        if error.retry_after is not None and self._retry_after_count < MAX_ATTEMPTS:
            return error.retry_after * (1.0 + self.jitter()) or Backoff.INITIAL_SECONDS
        self._retry_after_count = 0
        return backoff.compute_next_delay(self.clock.monotonic())

    def _is_server_failure(self, error: ApiError) -> bool:
        """Return whether the server failed. A server that starts rejects requests until it has read its roles."""
        now = self.clock.monotonic()
        if isinstance(error, ForbiddenError):
            return now - self._last_outage < _START_SECONDS
        if not isinstance(error, UnreachableError | ServerError | UnauthorizedError | CredentialsError):
            return False
        self._last_outage = now
        return True

    async def _wait_for_recovery(self, seconds: float) -> None:
        """Wait for *seconds*, or until another request succeeds.

        If retries after such a success failed too, wait at least some seconds.
        """
        success_count = self.transport.recovery.success_count
        now = self.clock.monotonic()
        if now - self._last_failure > _STABLE_SECONDS:
            self._min_retry_seconds = 0.0
        self._last_failure = now
        min_seconds = min(self._min_retry_seconds, seconds)
        await asyncio.sleep(min_seconds)
        if await self.transport.recovery.wait(seconds - min_seconds, success_count):
            self._min_retry_seconds = min(2 * self._min_retry_seconds + 1.0, _MAX_EARLY_RETRY_SECONDS)

    def _handle_error(self, error: ApiError) -> str:
        """Count an error, and reset the resource version if the list must be read again; return its message."""
        self.forbidden = isinstance(error, ForbiddenError | UnauthorizedError)
        self.counts.failures += 1
        match error:
            case ServerError():
                self._server_errors += 1
                if self._server_errors >= _MAX_SERVER_ERRORS:
                    self.resource_version = ""
            case (
                UnreachableError()
                | TooManyRequestsError()
                | UnauthorizedError()
                | ForbiddenError()
                | CredentialsError()
            ):
                pass
            case _:
                self.resource_version = ""
        return self.missing_kind_hint if isinstance(error, NotFoundError) and self.missing_kind_hint else error.message

    async def _check_resource_version(self) -> None:
        """Compare our resource version with that of the server.

        Raises:
            GoneError: the server's version is older.
            ApiError: the server's version cannot be read.
        """
        version = await read_resource_version(self.transport, self.list_watch)
        self._may_be_restored = False
        if _is_newer(version, self.resource_version) or version == self.resource_version:
            return
        self._is_restored = True
        raise GoneError(
            f"the resource version went back from {self.resource_version} to {version}: etcd was restored from a backup"
        )

    def _record_contact(self) -> None:
        self.last_contact = self.clock.monotonic()
        if self.last_error:
            self.recovered_at = self.last_contact
        self.last_error, self.forbidden, self._retry_after_count = "", False, 0

    async def _list(self) -> bool:
        """List the objects and deliver them; return False if the API server does not serve the optional kind."""
        try:
            object_list = await list_all(self.transport, self.list_watch)
        except (NotFoundError, ForbiddenError) as error:
            endpoint = self.list_watch.endpoint
            may_be_missing = self.is_optional and not (self.retains_objects and self.counts.lists)
            if may_be_missing and (isinstance(error, NotFoundError) or not await is_served(self.transport, endpoint)):
                self._record_contact()
                if not self.synced.is_set() or self._store:
                    _LOG.info(
                        "The API server does not serve a kind; it counts as one without such objects",
                        extra={"resource": endpoint.plural, "apiVersion": endpoint.api_version},
                    )
                self._store_and_deliver(self._diff(ObjectList("", {})))
                self.synced.set()
                return False
            raise
        self._record_contact()
        self.counts.lists += 1
        self._server_errors = 0
        if object_list.unreadable_count:
            _LOG.error(
                "Objects cannot be read and are left out",
                extra={"resource": self.list_watch.endpoint.plural, "count": object_list.unreadable_count},
            )
        deltas = self._diff(object_list)
        for start in range(0, len(deltas), DELTA_BATCH):
            await wait_for_turn()
            self._store_and_deliver(deltas[start : start + DELTA_BATCH])
        self.resource_version = object_list.resource_version
        self._may_be_restored = self._is_restored = False
        self.on_list(object_list.resource_version)
        self.synced.set()
        return True

    def _diff(self, object_list: ObjectList[T]) -> list[Delta[T]]:
        """Return the deltas from the store to a new list, deletions first, since they free resources.

        After a restore of etcd, an object may have another state at the same resource version.
        """
        deletions: list[Delta[T]] = [
            Delta(old, None, inferred=True) for key, old in self._store.items() if key not in object_list.items
        ]
        changes: list[Delta[T]] = []
        for key, new in object_list.items.items():
            old = self._store.get(key)
            if old is not None and old.metadata.uid != new.metadata.uid:
                deletions.append(Delta(old, None, inferred=True))
                old = None
            is_unchanged = old is not None and old.metadata.resource_version == new.metadata.resource_version
            if not is_unchanged or (self._is_restored and old != new):
                changes.append(Delta(old, new))
        return deletions + changes

    async def _watch(self) -> bool:
        """Run one watch; return False if it ended at once without a new event."""
        start_time, start_version = self.clock.monotonic(), self.resource_version
        async with aclosing(
            watch(self.transport, self.list_watch, self.resource_version, self.jitter, self.idle_timeout)
        ) as batches:
            is_first = True
            async for events in batches:
                self._record_contact()
                self.counts.watches += is_first
                is_first = False
                self._handle_events(events)
        self._server_errors = 0
        return self.resource_version != start_version or self.clock.monotonic() - start_time >= _MIN_WATCH_SECONDS

    def _handle_events(self, events: list[WatchEvent[T]]) -> None:
        """Update the store by *events*, and deliver their deltas together."""
        deltas: list[Delta[T]] = []
        for event in events:
            if not _is_newer(event.resource_version, self.resource_version):
                continue
            self.resource_version = event.resource_version
            if event.type is EventType.BOOKMARK:
                continue
            # An object may change twice in one batch: each delta starts from the state after the previous one.
            for delta in self._make_deltas(event):
                self._update_store(delta)
                deltas.append(delta)
        if deltas:
            self.deliver(deltas)

    def _make_deltas(self, event: WatchEvent[T]) -> list[Delta[T]]:
        old, new = self._store.get(event.key), event.object
        if event.type is EventType.DELETED:
            if old is None:
                return []
            last_state = new if new is not None and new.metadata.uid == old.metadata.uid else old
            return [Delta(last_state, None)]
        if new is None:
            _LOG.error(
                "An object cannot be read; its last known state is kept",
                extra={"resource": self.list_watch.endpoint.plural, "object": event.key},
            )
            return []
        if old is not None and old.metadata.uid != new.metadata.uid:
            return [Delta(old, None, inferred=True), Delta(None, new)]
        return [Delta(old, new)]

    def _store_and_deliver(self, deltas: Sequence[Delta[T]]) -> None:
        for delta in deltas:
            self._update_store(delta)
        self.deliver(deltas)

    def _update_store(self, delta: Delta[T]) -> None:
        if delta.new is not None:
            self._store[delta.new.metadata.key] = delta.new
        elif delta.old is not None:
            self._store.pop(delta.old.metadata.key, None)


def _is_newer(version: str, other_version: str) -> bool:
    """Return whether *version* is newer than *other_version*; versions that are not integers only need to differ."""
    key, other_key = make_version_key(version), make_version_key(other_version)
    return version != other_version if key is None or other_key is None else key > other_key
