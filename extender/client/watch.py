"""Watch the objects of a kind, decoded directly to our types.

A watch starts at the resource version of a list or of the last event. It ends at an event that cannot be decoded.
"""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from io import BytesIO
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import msgspec

from extender.api.codec import DecodeError, decode, decode_deeply_nested, decode_raw_part
from extender.api.kinds.meta import KubernetesObject
from extender.client.connections import pause_reading
from extender.client.errors import ApiError, ApiStatus, InvalidResponseError, UnreachableError, make_error_from_status
from extender.client.listwatch import ListWatch
from extender.client.rate_limit import Jitter
from extender.client.transport import Transport
from extender.event_loop.turn_budget import wait_for_turn

T = TypeVar("T", bound=KubernetesObject)

WATCH_TIMEOUT_RANGE: Final = (40.0, 50.0)
"""Range of the server's timeout of a watch, in seconds. A healthy watch is therefore never silent for long."""

IDLE_TIMEOUT: Final = 55.0
"""Seconds of silence after which a watch counts as dead. Half-open connections are thus detected within a minute."""

READ_PAUSE_SECONDS: Final = 0.02
"""Seconds without a read after heartbeats. Each wake-up costs about as much as reading the data.

After a change there is no pause: the changes that follow it at once, as of several deleted nodes, are read at once.
"""

MAX_EVENT_BATCH: Final = 8
"""Events delivered at once: about two milliseconds."""

MAX_EVENT_BYTES: Final = 64 * 2**20
"""Limit of one event; etcd's objects have 1.5 MiB at most."""


class EventType(Enum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One event of a watch.

    Attributes:
        resource_version: the resource version after the event.
        key: `namespace/name`, or the name; empty for a bookmark.
        object: the object after the event, or the last state of a deleted object. It is None for a bookmark, and for an
            object that our types cannot represent.
    """

    type: EventType
    resource_version: str
    key: str = ""
    object: T | None = None


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _TypedEvent(msgspec.Struct, Generic[T]):
    type: str
    object: T


_OBJECT_EVENTS: Final = frozenset(("ADDED", "MODIFIED", "DELETED"))


@cache
def _get_event_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_TypedEvent[kind])


async def watch(
    transport: Transport,
    list_watch: ListWatch[T],
    resource_version: str,
    jitter: Jitter,
    idle_timeout: float = IDLE_TIMEOUT,
) -> AsyncGenerator[list[WatchEvent[T]], None]:
    """Yield batches of the events after *resource_version* until the server ends the watch.

    An empty batch means that the connection works: the watch was accepted, or part of an event arrived.

    Raises:
        GoneError: the server no longer has *resource_version*; list again.
        InvalidResponseError: an event cannot be decoded; list again.
        UnreachableError: the connection broke or was silent; watch again from the last event.
        ApiError: another failure status.
    """
    timeout = str(_choose_timeout(jitter))
    request = list_watch.make_request(
        idle_timeout, watch="true", allowWatchBookmarks="true", resourceVersion=resource_version, timeoutSeconds=timeout
    )
    incomplete = bytearray()
    async with transport.stream(request, idle_timeout) as response:
        yield []
        async for chunk in response.content.iter_any():
            if not incomplete and chunk.endswith(b"\n"):
                lines = chunk  # the usual case, without a copy
            else:
                lines_end = chunk.rfind(b"\n") + 1  # only the chunk is searched: an incomplete event has no line break
                if not lines_end:
                    incomplete += chunk
                    if len(incomplete) > MAX_EVENT_BYTES:
                        raise InvalidResponseError(f"GET {request.path}: an event of more than {MAX_EVENT_BYTES} bytes")
                    yield []
                    continue
                lines = b"".join((incomplete, chunk[:lines_end]))
                incomplete = bytearray(chunk[lines_end:])
            events, batch_size, has_changes = _decode_events(lines, list_watch), MAX_EVENT_BATCH, False
            while batch_size == MAX_EVENT_BATCH:
                await wait_for_turn()
                batch, errors = _take_batch(events)
                has_changes = has_changes or any(event.type is not EventType.BOOKMARK for event in batch)
                yield batch
                if errors:
                    raise errors.pop()  # a frame that has its own error is freed only by a full garbage collection
                batch_size = len(batch)
            if list_watch.heartbeat_detector is not None and not has_changes:
                await pause_reading(response, READ_PAUSE_SECONDS)
    if incomplete.strip():
        raise UnreachableError(f"GET {request.path}: the connection ended in the middle of an event", maybe_sent=True)


def _choose_timeout(jitter: Jitter) -> int:
    """Return a server's timeout of a watch, in seconds."""
    min_timeout, max_timeout = WATCH_TIMEOUT_RANGE
    return int(min_timeout + (max_timeout - min_timeout) * jitter())


def _take_batch(events: Iterator[WatchEvent[T]]) -> tuple[list[WatchEvent[T]], list[ApiError]]:
    """Return the next events, at most `MAX_EVENT_BATCH`, and the error that ended them, if there is one."""
    batch: list[WatchEvent[T]] = []
    try:
        batch.extend(islice(events, MAX_EVENT_BATCH))
    except ApiError as error:
        return batch, [error]
    return batch, []


def _decode_events(lines: bytes, list_watch: ListWatch[T]) -> Iterator[WatchEvent[T]]:
    for line in BytesIO(lines):  # splits lines much faster than `split`
        if not line.isspace():
            yield _decode_event_or_heartbeat(line, list_watch)


def _decode_event_or_heartbeat(line: bytes, list_watch: ListWatch[T]) -> WatchEvent[T]:
    heartbeat_detector = list_watch.heartbeat_detector
    if heartbeat_detector is None:
        return _decode_event(line, list_watch)
    version = heartbeat_detector.find_heartbeat_version(line)
    if version:
        return WatchEvent(EventType.BOOKMARK, version)
    event = _decode_event(line, list_watch)
    if event.object is not None:
        heartbeat_detector.set_state(event.key, event.resource_version)
    elif event.key:
        heartbeat_detector.remove_state(event.key)
    return event


def _decode_event(line: bytes, list_watch: ListWatch[T]) -> WatchEvent[T]:
    if list_watch.on_raw is None:
        try:
            event = _get_event_decoder(list_watch.kind).decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _decode_event_by_field(line, list_watch)
        if event.type in _OBJECT_EVENTS:
            return _make_event(EventType(event.type), event.object, list_watch)
    return _decode_event_by_field(line, list_watch)


def _make_event(event_type: EventType, item: T, list_watch: ListWatch[T]) -> WatchEvent[T]:
    if not item.metadata.name:  # of an empty object, or of null
        raise InvalidResponseError(f"an event of a watch of {list_watch.kind.__name__} has an object without a name")
    shared_item = item if list_watch.deduplicate is None else list_watch.deduplicate(item)[0]
    return WatchEvent(event_type, item.metadata.resource_version, item.metadata.key, shared_item)


def _decode_event_by_field(line: bytes, list_watch: ListWatch[T]) -> WatchEvent[T]:
    """Decode an event field by field, with Go's nulls; for events that `_decode_event` cannot decode in one pass."""
    kind = list_watch.kind
    try:
        event = decode_deeply_nested(line, _RawEvent)
        raw = bytes(event.object)
        if event.type == "ERROR":
            raise make_error_from_status(decode(raw, ApiStatus))
        event_type = EventType(event.type)
        bookmark = decode(raw, KubernetesObject) if event_type is EventType.BOOKMARK else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, DecodeError, ValueError) as error:
        raise InvalidResponseError(f"an event of a watch of {kind.__name__} cannot be read: {error}") from error
    if bookmark is not None:
        return WatchEvent(EventType.BOOKMARK, bookmark.metadata.resource_version)
    try:
        item = decode_raw_part(raw, kind)
    except DecodeError:
        return _make_unreadable_event(event_type, raw, kind)
    if list_watch.on_raw is not None and event_type is not EventType.DELETED:
        list_watch.on_raw(item, raw)
    return _make_event(event_type, item, list_watch)


def _make_unreadable_event(event_type: EventType, raw: bytes, kind: type[T]) -> WatchEvent[T]:
    try:
        metadata_only = decode(raw, KubernetesObject)
    except DecodeError as error:
        raise InvalidResponseError(f"an event of a watch of {kind.__name__} cannot be read: {error}") from error
    return WatchEvent(event_type, metadata_only.metadata.resource_version, metadata_only.metadata.key)
