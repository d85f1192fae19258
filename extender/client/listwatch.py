"""List and watch the objects of a kind, decoded directly to our types.

A list is complete or fails. A watch starts at the resource version of the list or of the last event; an event that
cannot be decoded ends it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from io import BytesIO
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import msgspec

from extender.api.codec import DecodeError, decode
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.struct_base import KubernetesStruct
from extender.client.errors import (
    ApiError,
    ApiStatus,
    GoneError,
    InvalidResponseError,
    UnreachableError,
    make_error_from_status,
)
from extender.client.node_heartbeats import HeartbeatDetector
from extender.client.rate_limit import Jitter
from extender.client.rest_mapping import Endpoint
from extender.client.transport import Request, Transport

T = TypeVar("T", bound=KubernetesObject)

PAGE_SIZE: Final = 500
"""Objects per page. Source: client-go/tools/pager/pager.go, defaultPageSize (1.36)."""

PAGE_TIMEOUT: Final = 60.0
"""Seconds for one page."""

WATCH_TIMEOUT_RANGE: Final = (40.0, 50.0)
"""Range of the timeout of a watch on the server (seconds), so that a healthy watch is never silent for long."""

IDLE_TIMEOUT: Final = 55.0
"""Seconds of silence after which a watch counts as dead, so that half-open connections are detected within a minute."""

READ_PAUSE_SECONDS: Final = 0.02
"""Pause between reads of a watch with heartbeats: a wake-up costs as much as reading the data."""

MAX_EVENT_BATCH: Final = 64
"""Events delivered at once; between two batches the event loop runs other tasks."""

MAX_EVENT_BYTES: Final = 64 * 2**20
"""Limit of one event; etcd's objects have 1.5 MiB at most."""

UNFINISHED_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector for pods that use resources. Source: pkg/scheduler/scheduler.go, newPodInformer (1.36)."""


@dataclass(frozen=True, slots=True)
class ListWatch(Generic[T]):
    """The objects to list and watch.

    Attributes:
        kind: the type of the decoded objects.
        endpoint: the API path of the objects.
        namespace: the namespace of the objects; empty: all namespaces.
        field_selector, label_selector: selectors in the API's syntax; empty: all objects.
        on_raw: the callback for each existing object and its raw JSON; None is faster.
        deduplicate: the function that returns an equal object with shared parts; None: objects stay as decoded.
        heartbeats: the detector of node heartbeats, which the watch yields as bookmarks; None: all events are decoded.
    """

    kind: type[T]
    endpoint: Endpoint
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""
    on_raw: Callable[[T, bytes], None] | None = None
    deduplicate: Callable[[T], T] | None = None
    heartbeats: HeartbeatDetector | None = None

    def make_request(self, timeout: float, **query: str) -> Request:
        """Return a GET of the collection; empty parameters are left out."""
        parameters = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector, **query}
        non_empty = {name: value for name, value in parameters.items() if value}
        return Request("GET", self.endpoint.build_path(self.namespace), non_empty, timeout=timeout)


@dataclass(frozen=True, slots=True)
class ObjectList(Generic[T]):
    """A complete list.

    Attributes:
        resource_version: the resource version of the list; a watch starts there.
        items: the objects, by key.
        unreadable_count: the number of objects that were left out because our types cannot represent them.
    """

    resource_version: str
    items: dict[str, T]
    unreadable_count: int = 0


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
        type: the type of the event.
        resource_version: the resource version after the event.
        key: `namespace/name`, or the name; empty for a bookmark.
        object: the object after the event, or the last state of a deleted object; None for a bookmark and for an
            object that our types cannot represent.
    """

    type: EventType
    resource_version: str
    key: str = ""
    object: T | None = None


class _ListMeta(KubernetesStruct, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _ListMetadataOnly(msgspec.Struct):
    metadata: _ListMeta = _ListMeta()


class _Page(msgspec.Struct, Generic[T]):
    items: tuple[T, ...] = ()


class _RawPage(msgspec.Struct):
    items: tuple[msgspec.Raw, ...] | None = None


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _TypedEvent(msgspec.Struct, Generic[T]):
    type: str
    object: T


_RAW_EVENT_DECODER: Final = msgspec.json.Decoder(_RawEvent)
_OBJECT_EVENTS: Final = frozenset(("ADDED", "MODIFIED", "DELETED"))


@cache
def _get_page_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Page[kind])


@cache
def _get_event_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_TypedEvent[kind])


def get_object_key(item: KubernetesObject) -> str:
    """Return `namespace/name` or name. Source: client-go/tools/cache/store.go, MetaNamespaceKeyFunc (1.36)."""
    meta = item.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


async def list_all(transport: Transport, list_watch: ListWatch[T]) -> ObjectList[T]:
    """List all objects in pages, so that at most two pages are in memory as text.

    If the resource version expires between pages, the list starts again. The third attempt requests a single page,
    which cannot expire.

    Raises:
        ApiError: the list could not be completed.
    """
    if list_watch.heartbeats is not None:
        list_watch.heartbeats.forget_all()
    for limit in (PAGE_SIZE, PAGE_SIZE, 0):
        try:
            return await _list_pages(transport, list_watch, limit)
        except GoneError:
            if not limit:
                raise
    raise AssertionError("the last attempt returns or raises")


async def _list_pages(transport: Transport, list_watch: ListWatch[T], limit: int) -> ObjectList[T]:
    items: dict[str, T] = {}
    unreadable_count = 0

    def fetch_page(token: str) -> asyncio.Task[bytes]:
        request = list_watch.make_request(PAGE_TIMEOUT, **{"limit": str(limit) if limit else "", "continue": token})
        return asyncio.create_task(transport.call(request))

    next_page = fetch_page("")
    try:
        while True:
            body = await next_page
            list_meta = _decode_list_meta(body, list_watch)
            if list_meta.continue_:
                next_page = fetch_page(list_meta.continue_)
                await asyncio.sleep(0)  # the next request is sent now, and served while this page is decoded
            page_items, page_unreadable_count = _decode_page(body, list_watch)
            for item in page_items if list_watch.deduplicate is None else map(list_watch.deduplicate, page_items):
                items[get_object_key(item)] = item
            unreadable_count += page_unreadable_count
            if not list_meta.continue_:
                return ObjectList(list_meta.resource_version, items, unreadable_count)
    finally:
        next_page.cancel()


def _decode_list_meta(body: bytes, list_watch: ListWatch[T]) -> _ListMeta:
    try:
        list_meta = decode(body, _ListMetadataOnly).metadata
    except DecodeError as error:
        raise InvalidResponseError(f"a page of a list of {list_watch.kind.__name__} cannot be read: {error}") from error
    if not list_meta.resource_version:
        raise InvalidResponseError(f"GET {list_watch.endpoint.build_path(list_watch.namespace)}: not a list")
    return list_meta


def _decode_page(body: bytes, list_watch: ListWatch[T]) -> tuple[tuple[T, ...], int]:
    """Decode the objects of a page; also return how many could not be decoded."""
    if list_watch.on_raw is not None:
        return _decode_page_by_item(body, list_watch)
    try:
        return _get_page_decoder(list_watch.kind).decode(body).items, 0
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _decode_page_by_item(body, list_watch)


def _decode_page_by_item(body: bytes, list_watch: ListWatch[T]) -> tuple[tuple[T, ...], int]:
    """Decode a page object by object, with Go's nulls, and leave out objects that our types cannot represent."""
    try:
        page = decode(body, _RawPage)
    except DecodeError as error:
        raise InvalidResponseError(f"a page of a list of {list_watch.kind.__name__} cannot be read: {error}") from error
    items = []
    for raw in page.items or ():
        raw_bytes = bytes(raw)
        try:
            item = decode(raw_bytes, list_watch.kind)
        except DecodeError:
            continue
        items.append(item)
        if list_watch.on_raw is not None:
            list_watch.on_raw(item, raw_bytes)
    return tuple(items), len(page.items or ()) - len(items)


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
    min_timeout, max_timeout = WATCH_TIMEOUT_RANGE
    timeout = str(int(min_timeout + (max_timeout - min_timeout) * jitter()))
    request = list_watch.make_request(
        idle_timeout, watch="true", allowWatchBookmarks="true", resourceVersion=resource_version, timeoutSeconds=timeout
    )
    incomplete = bytearray()
    async with transport.stream(request, idle_timeout) as body:
        yield []
        async for chunk in body:
            if not incomplete and chunk.endswith(b"\n"):
                lines = chunk  # the usual case, without a copy
            else:
                incomplete += chunk
                lines_end = incomplete.rfind(b"\n") + 1
                if not lines_end:
                    if len(incomplete) > MAX_EVENT_BYTES:
                        raise InvalidResponseError(f"GET {request.path}: an event of more than {MAX_EVENT_BYTES} bytes")
                    yield []
                    continue
                lines = bytes(incomplete[:lines_end])
                del incomplete[:lines_end]
            for batch, error in _batch_events(lines, list_watch):
                yield batch
                if error is not None:
                    raise error
                if len(batch) == MAX_EVENT_BATCH:
                    await asyncio.sleep(0)
            if list_watch.heartbeats is not None:
                await body.pause_reading(READ_PAUSE_SECONDS)
    if incomplete.strip():
        raise UnreachableError(f"GET {request.path}: the connection ended in the middle of an event", maybe_sent=True)


def _batch_events(lines: bytes, list_watch: ListWatch[T]) -> Iterator[tuple[list[WatchEvent[T]], ApiError | None]]:
    """Yield the events of *lines* in batches, each with the error that ended it, or None.

    Events before an error are still delivered.
    """
    events = _decode_events(lines, list_watch)
    while True:
        batch: list[WatchEvent[T]] = []
        error: ApiError | None = None
        try:
            batch.extend(islice(events, MAX_EVENT_BATCH))
        except ApiError as api_error:
            error = api_error
        yield batch, error
        if error is not None or len(batch) < MAX_EVENT_BATCH:
            return


def _decode_events(lines: bytes, list_watch: ListWatch[T]) -> Iterator[WatchEvent[T]]:
    for line in BytesIO(lines):  # splits lines much faster than `split`
        if not line.isspace():
            yield _decode_event_or_heartbeat(line, list_watch)


def _decode_event_or_heartbeat(line: bytes, list_watch: ListWatch[T]) -> WatchEvent[T]:
    heartbeats = list_watch.heartbeats
    if heartbeats is None:
        return _decode_event(line, list_watch)
    version = heartbeats.find_heartbeat_version(line)
    if version:
        return WatchEvent(EventType.BOOKMARK, version)
    event = _decode_event(line, list_watch)
    if event.object is not None:
        heartbeats.remember(event.key, event.resource_version)
    elif event.key:
        heartbeats.forget(event.key)
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
    shared_item = item if list_watch.deduplicate is None else list_watch.deduplicate(item)
    return WatchEvent(event_type, item.metadata.resource_version, get_object_key(item), shared_item)


def _decode_event_by_field(line: bytes, list_watch: ListWatch[T]) -> WatchEvent[T]:
    """Decode an event field by field, with Go's nulls, if `_decode_event` cannot decode it in one pass."""
    kind = list_watch.kind
    try:
        event = _RAW_EVENT_DECODER.decode(line)
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
        item = decode(raw, kind)
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
    return WatchEvent(event_type, metadata_only.metadata.resource_version, get_object_key(metadata_only))
