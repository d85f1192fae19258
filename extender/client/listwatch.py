"""List the objects of a kind, decoded directly to our types. A list is complete or fails."""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from extender.api.codec import DecodeError, decode_deeply_nested, decode_raw_part
from extender.api.kinds.meta import KubernetesObject, KubernetesStruct
from extender.client.connections import read_body
from extender.client.errors import ApiError, GoneError, InvalidResponseError, NotFoundError, ResponseTooLargeError
from extender.client.node_heartbeats import HeartbeatDetector
from extender.client.rest_mapping import Endpoint
from extender.client.transport import MAX_RESPONSE_BYTES, Request, Transport

T = TypeVar("T", bound=KubernetesObject)

PAGE_SIZE: Final = 500
"""Objects per page. Source: client-go/tools/pager/pager.go, defaultPageSize (1.36)."""

_PAGE_SIZE_FACTOR: Final = 8
"""The factor by which the objects per page change if the objects are large: 500, 62, 7."""

PAGE_TIMEOUT: Final = 60.0
"""Seconds for one page."""

MAX_PAGE_BYTES: Final = 256 << 20
"""Limit of a page of 500 objects."""

MAX_LIST_BYTES: Final = 4 << 30
"""Limit of all pages of a list: 600,000 pods of 7 KiB. It is also the limit of a list that is read in one page."""

MAX_LIST_OBJECTS: Final = 1_000_000
"""Limit of the objects of a list. The largest clusters have some hundred thousand pods."""

MAX_EMPTY_PAGES: Final = 100
"""Limit of consecutive pages without a new object."""

UNFINISHED_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector for pods that use resources. Source: pkg/scheduler/scheduler.go, newPodInformer (1.36)."""


@dataclass(frozen=True, slots=True)
class ListWatch(Generic[T]):
    """The objects to list and watch.

    Attributes:
        endpoint: the API path of the objects.
        namespace: the namespace of the objects; empty: all namespaces.
        field_selector, label_selector: selectors in the API's syntax; empty: all objects.
        on_raw: the callback for each existing object and its raw JSON; None is faster.
        deduplicate: the function that returns an equal object with shared parts, and the owner of these parts; later
            objects share them while the owner is in memory. None: objects stay as decoded.
        heartbeat_detector: the detector of node heartbeats, which the watch yields as bookmarks; None: all events are
            decoded.
    """

    kind: type[T]
    endpoint: Endpoint
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""
    on_raw: Callable[[T, bytes], None] | None = None
    deduplicate: Callable[[T], tuple[T, Hashable]] | None = None
    heartbeat_detector: HeartbeatDetector | None = None

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
        unreadable_count: the number of objects that were left out because our types cannot represent them, or because
            they have no name.
    """

    resource_version: str
    items: dict[str, T]
    unreadable_count: int = 0


class _ListMeta(KubernetesStruct, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _ListMetadataOnly(msgspec.Struct):
    metadata: _ListMeta = _ListMeta()


class _Page(msgspec.Struct, Generic[T]):
    items: tuple[T, ...] = ()


class _RawPage(msgspec.Struct):
    items: tuple[msgspec.Raw, ...] | None = None


@cache
def _get_page_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Page[kind])


class _Resource(msgspec.Struct):
    name: str = ""


class _ResourceList(msgspec.Struct):
    resources: tuple[_Resource, ...] = ()


async def is_served(transport: Transport, endpoint: Endpoint) -> bool:
    """Return whether the API server serves *endpoint*; True if that cannot be found out.

    A request for a kind that is not served has the response 403 instead of 404 if the caller has no permission for it:
    the API server checks permissions first. The role of kube-scheduler has only the kinds of its own release.

    Source: apimachinery/pkg/apis/meta/v1/types.go, APIResourceList;
    plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, ClusterRoles (1.36).
    """
    try:
        body = await transport.call(Request("GET", endpoint.build_api_path()))
        resources = msgspec.json.decode(body, type=_ResourceList).resources
    except NotFoundError:
        return False
    except (ApiError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return True
    return endpoint.plural in {resource.name for resource in resources}


async def read_resource_version(transport: Transport, list_watch: ListWatch[T]) -> str:
    """Return the server's current resource version: that of a list of one object, which the server reads from etcd.

    It is sent as a watch is, since a watch waits for it: without a rate limit, and not behind bindings that hang.

    Raises:
        ApiError: the list failed.
    """
    async with transport.stream(list_watch.make_request(PAGE_TIMEOUT, limit="1"), PAGE_TIMEOUT) as response:
        body = await read_body(response, MAX_RESPONSE_BYTES)
    return _decode_list_meta(body, list_watch).resource_version


async def list_all(transport: Transport, list_watch: ListWatch[T]) -> ObjectList[T]:
    """List all objects in pages, so that at most two pages are in memory as text.

    If the resource version expires between pages, the list starts again. The third attempt requests a single page,
    which cannot expire.

    Raises:
        ApiError: the list could not be completed.
    """
    if list_watch.heartbeat_detector is not None:
        list_watch.heartbeat_detector.clear()
    for limit in (PAGE_SIZE, PAGE_SIZE, 0):
        try:
            return await _list_pages(transport, list_watch, limit)
        except GoneError:
            if not limit:
                raise
    raise AssertionError("the last attempt returns or raises")


async def _list_pages(transport: Transport, list_watch: ListWatch[T], limit: int) -> ObjectList[T]:
    items: dict[str, T] = {}
    owners: set[Hashable] = set()  # of the parts that objects of this list share
    unreadable_count = 0
    page_check = _PageCheck(list_watch.kind.__name__)
    page_reader = _PageReader(transport, list_watch, limit)

    def fetch_page(token: str) -> asyncio.Task[bytes]:
        return asyncio.create_task(page_reader.read(token))

    next_page = fetch_page("")
    try:
        while True:
            body = await next_page
            list_meta = _decode_list_meta(body, list_watch)
            page_check.check_size_and_token(len(body), list_meta.continue_)
            previous_count = len(items) + unreadable_count
            if list_meta.continue_:
                next_page = fetch_page(list_meta.continue_)
                await asyncio.sleep(0)  # the next request is sent now, and served while this page is decoded
            page_items, page_unreadable_count = _decode_page(body, list_watch)
            for item in page_items:
                if not item.metadata.name:  # of an empty object, or of null
                    unreadable_count += 1
                    continue
                shared_item = item
                if list_watch.deduplicate is not None:
                    shared_item, owner = list_watch.deduplicate(item)
                    owners.add(owner)
                items[item.metadata.key] = shared_item
            unreadable_count += page_unreadable_count
            page_check.check_object_count(len(items) + unreadable_count, previous_count)
            if not list_meta.continue_:
                return ObjectList(list_meta.resource_version, items, unreadable_count)
    finally:
        next_page.cancel()


@dataclass(slots=True)
class _PageReader(Generic[T]):
    """Reads pages. If a page of *limit* objects is too large, it is read again in smaller pages.

    Objects of 1.5 MiB, which any user may create, must not stop the list of all others.
    """

    transport: Transport
    list_watch: ListWatch[T]
    limit: int

    async def read(self, token: str) -> bytes:
        """Return the page with the continue token *token*; empty: the first page."""
        while True:
            limit = str(self.limit) if self.limit else ""
            request = self.list_watch.make_request(PAGE_TIMEOUT, **{"limit": limit, "continue": token})
            max_bytes = MAX_PAGE_BYTES if self.limit else MAX_LIST_BYTES
            try:
                body = await self.transport.call(replace(request, max_response_bytes=max_bytes))
            except ResponseTooLargeError:
                if self.limit < _PAGE_SIZE_FACTOR:
                    raise
                self.limit //= _PAGE_SIZE_FACTOR
            else:
                if len(body) < max_bytes // _PAGE_SIZE_FACTOR**2 and self.limit:
                    self.limit = min(self.limit * _PAGE_SIZE_FACTOR, PAGE_SIZE)
                return body


@dataclass(slots=True)
class _PageCheck:
    """Checks that the pages of a list of *kind* come to an end."""

    kind: str
    total_bytes: int = 0
    previous_token: str = ""
    empty_page_count: int = 0

    def check_size_and_token(self, page_bytes: int, token: str) -> None:
        """Check the size of all pages and the continue token of a new page.

        Raises:
            InvalidResponseError: the list is too big, or the token is that of the previous page.
        """
        self.total_bytes += page_bytes
        if self.total_bytes > MAX_LIST_BYTES:
            raise InvalidResponseError(f"the list of {self.kind} has more than {MAX_LIST_BYTES} bytes")
        if token and token == self.previous_token:
            raise InvalidResponseError(f"the list of {self.kind} does not end: the continue token does not change")
        self.previous_token = token

    def check_object_count(self, count: int, previous_count: int) -> None:
        """Check the number of objects of all pages after a new page; *previous_count* is the number before it.

        Raises:
            InvalidResponseError: there are too many objects, or too many pages without a new object.
        """
        if count > MAX_LIST_OBJECTS:
            raise InvalidResponseError(f"the list of {self.kind} has more than {MAX_LIST_OBJECTS} objects")
        self.empty_page_count = 0 if count > previous_count else self.empty_page_count + 1
        if self.empty_page_count > MAX_EMPTY_PAGES:
            raise InvalidResponseError(
                f"the list of {self.kind} does not end: {self.empty_page_count} pages have no new object"
            )


def _decode_list_meta(body: bytes, list_watch: ListWatch[T]) -> _ListMeta:
    try:
        list_meta = decode_deeply_nested(body, _ListMetadataOnly).metadata
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
    """Decode a page object by object. Leave out objects that our types cannot represent, or nested too deeply."""
    try:
        page = decode_deeply_nested(body, _RawPage)
    except DecodeError as error:
        raise InvalidResponseError(f"a page of a list of {list_watch.kind.__name__} cannot be read: {error}") from error
    items = []
    for raw in page.items or ():
        raw_bytes = bytes(raw)
        try:
            item = decode_raw_part(raw_bytes, list_watch.kind)
        except DecodeError:
            continue
        items.append(item)
        if list_watch.on_raw is not None:
            list_watch.on_raw(item, raw_bytes)
    return tuple(items), len(page.items or ()) - len(items)
