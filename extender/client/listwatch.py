"""Lists page by page and watches event by event, decoded straight to our types.

A list is whole or it is not there. A watch starts where the list or the last event stood; what the server sends in it
is believed only if it can be read: a line that cannot be read ends the watch.
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

from extender.client.endpoints import Endpoint
from extender.client.errors import AnswerError, ApiError, GoneError, Status, UnreachableError, of_status
from extender.client.heartbeats import Heartbeats
from extender.client.pacing import Chance
from extender.client.transport import Request, Transport
from extender.objects.codec import DecodeError, decode
from extender.objects.meta import KubernetesObject
from extender.objects.record import Record

T = TypeVar("T", bound=KubernetesObject)

PAGE: Final = 500
"""Objects a page. Source: client-go's pager."""

PAGE_SECONDS: Final = 60.0
"""How long one page may take."""

WATCH_SECONDS: Final = (40.0, 50.0)
"""The server is asked to end a watch after some time between these, so that a healthy one is never silent for long."""

QUIET_SECONDS: Final = 55.0
"""Silence after which a watch counts as dead: half-open connections are found within a minute."""

GATHERED_SECONDS: Final = 0.02
"""What a watch of heartbeats tells in so long is read together: to be woken costs as much as to read what is there."""

TOGETHER: Final = 64
"""Events that are told at once; between them others have their turn at the event loop."""

LONGEST_LINE: Final = 64 * 2**20
"""Bytes of one event; etcd takes objects of 1.5 MiB."""

UNFINISHED_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector for pods that hold resources. Source: scheduler.NewInformerFactory."""


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """What to list and watch.

    Attributes:
        kind: the type objects are decoded to.
        endpoint: where they live.
        namespace: only those in it; empty: all.
        field_selector, label_selector: only those that match, in the API's own syntax; empty: all.
        heard: told the text of each object that is there; None: nobody wants it, which is faster.
        lean: makes an equal of an object that takes less memory; None: it is kept as it was read.
        heartbeats: knows which events tell nothing, which then come as bookmarks; None: all are read.
    """

    kind: type[T]
    endpoint: Endpoint
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""
    heard: Callable[[T, bytes], None] | None = None
    lean: Callable[[T], T] | None = None
    heartbeats: Heartbeats | None = None

    def request(self, seconds: float, **query: str) -> Request:
        """A GET of the collection; empty parameters are left out."""
        asked = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector, **query}
        given = {name: value for name, value in asked.items() if value}
        return Request("GET", self.endpoint.path(self.namespace), given, seconds=seconds)


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A whole list.

    Attributes:
        version: the state it shows; a watch goes on from there.
        items: the objects, by key.
        unreadable: how many were left out because our types cannot hold them.
    """

    version: str
    items: dict[str, T]
    unreadable: int = 0


class EventType(Enum):
    """What a watch tells of."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """One event of a watch.

    Attributes:
        type: what happened.
        version: the state after it.
        key: `namespace/name`, or the name; empty for a bookmark.
        object: after the event, of a deleted one the last state; None for a bookmark and for what our types
            cannot hold.
    """

    type: EventType
    version: str
    key: str = ""
    object: T | None = None


class _ListMeta(Record, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Head(msgspec.Struct):
    metadata: _ListMeta = _ListMeta()


class _Page(msgspec.Struct, Generic[T]):
    items: tuple[T, ...] = ()


class _RawPage(msgspec.Struct):
    items: tuple[msgspec.Raw, ...] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Told(msgspec.Struct, Generic[T]):
    type: str
    object: T


_LINES: Final = msgspec.json.Decoder(_Line)
_PLAIN: Final = frozenset(("ADDED", "MODIFIED", "DELETED"))


@cache
def _pages(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Page[kind])


@cache
def _told(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Told[kind])


def key_of(item: KubernetesObject) -> str:
    """`namespace/name`, or the name of what has no namespace."""
    meta = item.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


async def list_all(transport: Transport, source: Source[T]) -> Listed[T]:
    """The whole list as it is now, read in pages, so that no more than two at a time are held as text.

    If the server has forgotten the state the first pages showed, it starts again; after the second time it asks for
    all at once, as nothing can be forgotten then.

    Raises:
        ApiError: it could not be read to its end.
    """
    if source.heartbeats is not None:
        source.heartbeats.forget_all()
    for limit in (PAGE, PAGE, 0):
        try:
            return await _list(transport, source, limit)
        except GoneError:
            if not limit:
                raise
    raise AssertionError("the last turn returns or raises")


async def _list(transport: Transport, source: Source[T], limit: int) -> Listed[T]:
    items: dict[str, T] = {}
    unreadable = 0

    def asked(token: str) -> asyncio.Task[bytes]:
        request = source.request(PAGE_SECONDS, **{"limit": str(limit) if limit else "", "continue": token})
        return asyncio.create_task(transport.call(request))

    coming = asked("")
    try:
        while True:
            body = await coming
            head = _read_head(body, source)
            if head.continue_:
                coming = asked(head.continue_)
                await asyncio.sleep(0)  # it is sent now, and answered while this page is read
            found, lost = _read_page(body, source)
            for item in found if source.lean is None else map(source.lean, found):
                items[key_of(item)] = item
            unreadable += lost
            if not head.continue_:
                return Listed(head.resource_version, items, unreadable)
    finally:
        coming.cancel()


def _read_head(body: bytes, source: Source[T]) -> _ListMeta:
    try:
        head = decode(body, _Head).metadata
    except DecodeError as fault:
        raise AnswerError(f"a page of a list of {source.kind.__name__} cannot be read: {fault}") from fault
    if not head.resource_version:
        raise AnswerError(f"GET {source.endpoint.path(source.namespace)}: not a list")
    return head


def _read_page(body: bytes, source: Source[T]) -> tuple[tuple[T, ...], int]:
    """The objects of the page, and how many could not be read."""
    if source.heard is not None:
        return _read_slowly(body, source)
    try:
        return _pages(source.kind).decode(body).items, 0
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read_slowly(body, source)


def _read_slowly(body: bytes, source: Source[T]) -> tuple[tuple[T, ...], int]:
    """Object by object, with nulls where Go has them, without those that our types cannot hold."""
    try:
        page = decode(body, _RawPage)
    except DecodeError as fault:
        raise AnswerError(f"a page of a list of {source.kind.__name__} cannot be read: {fault}") from fault
    found = []
    for raw in page.items or ():
        text = bytes(raw)
        try:
            item = decode(text, source.kind)
        except DecodeError:
            continue
        found.append(item)
        if source.heard is not None:
            source.heard(item, text)
    return tuple(found), len(page.items or ()) - len(found)


async def watch(
    transport: Transport, source: Source[T], version: str, chance: Chance, quiet: float = QUIET_SECONDS
) -> AsyncGenerator[list[Event[T]], None]:
    """What happened after *version*, until the server ends the watch; what arrives together comes as few lists.

    An empty list is a sign of life: the watch was accepted, or part of an event arrived.

    Raises:
        GoneError: the server no longer has *version*: list again.
        AnswerError: a line cannot be read: list again.
        UnreachableError: the connection broke or fell silent: go on from the last event.
        ApiError: as the server says.
    """
    low, high = WATCH_SECONDS
    seconds = str(int(low + (high - low) * chance()))
    request = source.request(
        quiet, watch="true", allowWatchBookmarks="true", resourceVersion=version, timeoutSeconds=seconds
    )
    rest = bytearray()
    async with transport.stream(request, quiet) as pieces:
        yield []
        async for piece in pieces:
            if not rest and piece.endswith(b"\n"):
                lines = piece  # mostly, and not copied then
            else:
                rest += piece
                end = rest.rfind(b"\n") + 1
                if not end:
                    if len(rest) > LONGEST_LINE:
                        raise AnswerError(f"GET {request.path}: an event of more than {LONGEST_LINE} bytes")
                    yield []
                    continue
                lines = bytes(rest[:end])
                del rest[:end]
            for read, fault in _parts(lines, source):
                yield read
                if fault is not None:
                    raise fault
                if len(read) == TOGETHER:
                    await asyncio.sleep(0)
            if source.heartbeats is not None:
                await pieces.gather(GATHERED_SECONDS)
    if rest.strip():
        raise UnreachableError(f"GET {request.path}: the connection ended in the middle of an event", sent=True)


def _parts(lines: bytes, source: Source[T]) -> Iterator[tuple[list[Event[T]], ApiError | None]]:
    """The events of *lines*, some at a time, and why there are no more, if they are broken off.

    What was read before a fault counts, so that it is not asked for again.
    """
    events = _events(lines, source)
    while True:
        read: list[Event[T]] = []
        fault: ApiError | None = None
        try:
            read.extend(islice(events, TOGETHER))
        except ApiError as wrong:
            fault = wrong
        yield read, fault
        if fault is not None or len(read) < TOGETHER:
            return


def _events(lines: bytes, source: Source[T]) -> Iterator[Event[T]]:
    for line in BytesIO(lines):  # finds the ends of lines much faster than `split`
        if not line.isspace():
            yield _event(line, source)


def _event(line: bytes, source: Source[T]) -> Event[T]:
    heartbeats = source.heartbeats
    if heartbeats is None:
        return _read(line, source)
    version = heartbeats.version(line)
    if version:
        return Event(EventType.BOOKMARK, version)
    event = _read(line, source)
    if event.object is not None:
        heartbeats.read(event.key, event.version)
    elif event.key:
        heartbeats.forget(event.key)
    return event


def _read(line: bytes, source: Source[T]) -> Event[T]:
    if source.heard is None:
        try:
            told = _told(source.kind).decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _read_event(line, source)
        if told.type in _PLAIN:
            return _of(EventType(told.type), told.object, source)
    return _read_event(line, source)


def _of(type_: EventType, item: T, source: Source[T]) -> Event[T]:
    lean = item if source.lean is None else source.lean(item)
    return Event(type_, item.metadata.resource_version, key_of(item), lean)


def _read_event(line: bytes, source: Source[T]) -> Event[T]:
    """As `_read`, part by part, with nulls where Go has them: for what is not simply an object."""
    kind = source.kind
    try:
        told = _LINES.decode(line)
        raw = bytes(told.object)
        if told.type == "ERROR":
            raise of_status(decode(raw, Status))
        type_ = EventType(told.type)
        bare = decode(raw, KubernetesObject) if type_ is EventType.BOOKMARK else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, DecodeError, ValueError) as fault:
        raise AnswerError(f"an event of a watch of {kind.__name__} cannot be read: {fault}") from fault
    if bare is not None:
        return Event(EventType.BOOKMARK, bare.metadata.resource_version)
    try:
        item = decode(raw, kind)
    except DecodeError:
        return _unreadable(type_, raw, kind)
    if source.heard is not None and type_ is not EventType.DELETED:
        source.heard(item, raw)
    return _of(type_, item, source)


def _unreadable(type_: EventType, raw: bytes, kind: type[T]) -> Event[T]:
    try:
        bare = decode(raw, KubernetesObject)
    except DecodeError as fault:
        raise AnswerError(f"an event of a watch of {kind.__name__} cannot be read: {fault}") from fault
    return Event(type_, bare.metadata.resource_version, key_of(bare))
