"""Watch a resource: stream its changes after a resource version, and bookmarks, until the timeout.

Source: the API concepts page of Kubernetes, "Efficient detection of changes"; apiserver/pkg/storage/cacher/cacher.go,
Cacher.Watch (1.36).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Final

from extender.fake_apiserver.endpoints.listing import ListSelector, parse_list_selector
from extender.fake_apiserver.endpoints.request_info import RequestInfo
from extender.fake_apiserver.registry.api_errors import (
    StatusError,
    new_invalid_options,
    new_too_large_resource_version,
)
from extender.fake_apiserver.registry.resources import Object
from extender.fake_apiserver.registry.store import Store, StoreChange, StoredObject, StoreEvent

BOOKMARK_SECONDS: Final = 60.0
"""The interval between bookmarks."""

WATCH_SECONDS: Final = 1800.0
"""The default duration of a watch."""

_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_MIN_WAIT_SECONDS: Final = 1e-6
"""A time counts as reached if fewer seconds than this remain.

A simulated clock advances only while tasks wait, and rounding might turn a shorter wait into no wait.
"""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """An event of a watch.

    Attributes:
        type: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
        stored_object: the object. A BOOKMARK has an object with only a type and metadata. An ERROR has a
            Status instead.
    """

    type: str
    stored_object: StoredObject


class Watch:
    """A watch of one resource. It must run in the event loop whose tasks write the store."""

    def __init__(self, store: Store, request: RequestInfo, closing: asyncio.Event) -> None:
        """Validate the request without starting the watch.

        Raises:
            StatusError: 400, 422, or 504 if the requested resource version is in the future.
        """
        self._store = store
        self._request = request
        self._closing = closing
        self._selector = parse_list_selector(request)
        self._bookmark_seconds = BOOKMARK_SECONDS if request.parse_bool_param("allowWatchBookmarks") else 0.0
        self._resource_version = request.parse_int_param("resourceVersion")
        seconds = request.parse_int_param("timeoutSeconds")
        self._timeout = float(seconds) if seconds else WATCH_SECONDS
        self._sends_initial_events = request.parse_bool_param("sendInitialEvents")
        self._validate()

    def _validate(self) -> None:
        if "sendInitialEvents" in self._request.query:
            if self._request.query.get("resourceVersionMatch") != "NotOlderThan":
                message = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                raise new_invalid_options(message)
        elif self._request.query.get("resourceVersionMatch"):
            message = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            raise new_invalid_options(message)
        if self._resource_version is not None and self._resource_version > self._store.resource_version:
            raise new_too_large_resource_version(self._resource_version, self._store.resource_version)

    async def stream_events(self) -> AsyncIterator[list[WatchEvent]]:
        """Yield the events in batches until the watch ends. An ERROR event ends the watch."""
        loop = asyncio.get_running_loop()
        change_event = asyncio.Event()
        storage_key = self._request.resource.storage_key
        unsubscribe = self._store.subscribe(
            lambda changed_key: change_event.set() if changed_key == storage_key else None
        )
        stop_task = asyncio.create_task(self._closing.wait())
        try:
            end_time, next_bookmark_time = (
                loop.time() + self._timeout,
                loop.time() + (self._bookmark_seconds or self._timeout),
            )
            yield self._list_initial_events()
            while not self._closing.is_set():
                try:
                    events = self._read_next_events()
                except StatusError as error:
                    yield [make_error_event(error)]
                    return
                if events:
                    yield events
                now = loop.time()
                if now >= end_time - _MIN_WAIT_SECONDS:
                    break
                if self._bookmark_seconds and now >= next_bookmark_time - _MIN_WAIT_SECONDS:
                    next_bookmark_time = now + self._bookmark_seconds
                    yield [self._make_bookmark()]
                await _wait_for_any(
                    change_event,
                    stop_task,
                    min(end_time, next_bookmark_time if self._bookmark_seconds else end_time) - loop.time(),
                )
                change_event.clear()
            if self._bookmark_seconds and not self._closing.is_set():
                yield [self._make_bookmark()]
        finally:
            unsubscribe()
            stop_task.cancel()

    def _list_initial_events(self) -> list[WatchEvent]:
        """Return the initial events: one ADDED event for each current object.

        The initial events are omitted if `sendInitialEvents` is false. Without `sendInitialEvents`, they are omitted if
        the watch starts at a resource version other than 0. If `sendInitialEvents` is true and bookmarks are allowed, a
        bookmark marks their end.
        """
        if self._resource_version and not self._sends_initial_events:
            return []
        self._resource_version = self._store.resource_version
        objects = self._store.list_objects(self._request.resource.storage_key, self._request.namespace)
        if self._request.query.get("sendInitialEvents") == "false":
            objects = []
        events = [
            WatchEvent(StoreEvent.ADDED, stored_object)
            for stored_object in objects
            if self._selector.matches(stored_object.content)
        ]
        if self._sends_initial_events and self._request.parse_bool_param("allowWatchBookmarks"):
            events.append(self._make_bookmark({_INITIAL_EVENTS_END: "true"}))
        return events

    def _read_next_events(self) -> list[WatchEvent]:
        resource_version = self._resource_version or 0
        events = list(
            _to_watch_events(
                self._store.list_changes_since(self._request.resource.storage_key, resource_version), self._selector
            )
        )
        self._resource_version = self._store.resource_version
        return events

    def _make_bookmark(self, annotations: Object | None = None) -> WatchEvent:
        resource_version = self._resource_version or self._store.resource_version
        meta: Object = {"resourceVersion": str(resource_version), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        resource = self._request.resource
        return WatchEvent(
            "BOOKMARK",
            StoredObject(
                {"kind": resource.kind, "apiVersion": resource.group_version, "metadata": meta}, resource_version
            ),
        )


def make_error_event(error: StatusError) -> WatchEvent:
    """Return the ERROR event with the Status of *error*."""
    return WatchEvent("ERROR", StoredObject(error.status, 0))


def _to_watch_events(changes: Iterator[StoreChange], selector: ListSelector) -> Iterator[WatchEvent]:
    """Convert changes to watch events for a selector. An object that no longer matches gives DELETED."""
    matches: Callable[[Object], bool] = selector.matches
    for change in changes:
        matched_before = change.previous_object is not None and matches(change.previous_object.content)
        matches_now = change.event is not StoreEvent.DELETED and matches(change.stored_object.content)
        if matches_now:
            yield WatchEvent(StoreEvent.MODIFIED if matched_before else StoreEvent.ADDED, change.stored_object)
        elif matched_before and change.previous_object is not None:
            yield WatchEvent(StoreEvent.DELETED, _set_resource_version(change.previous_object, change.resource_version))


def _set_resource_version(stored_object: StoredObject, resource_version: int) -> StoredObject:
    meta = {**stored_object.content["metadata"], "resourceVersion": str(resource_version)}
    return StoredObject({**stored_object.content, "metadata": meta}, resource_version)


async def _wait_for_any(change_event: asyncio.Event, stop_task: "asyncio.Task[bool]", seconds: float) -> None:
    """Wait until an object changes, the server stops, or *seconds* have passed."""
    change_task = asyncio.create_task(change_event.wait())
    try:
        await asyncio.wait({change_task, stop_task}, timeout=max(seconds, 0.0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        change_task.cancel()
