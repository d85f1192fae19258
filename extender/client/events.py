"""Events, and the cache that turns repeated events into series; `event_broadcaster` sends the writes.

Source: client-go/tools/events/event_broadcaster.go, eventBroadcasterImpl.recordToSink (1.36).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from extender.api.kinds.meta import KubernetesObject, ObjectReference
from extender.api.timestamps import format_micro_time

FINISH_SECONDS: Final = 360.0
"""Seconds after which an event that was not repeated is removed from the cache. If it is a series, the series ends."""

REFRESH_SECONDS: Final = 1800.0
"""Seconds after which a continuing series is written again, so that the server does not expire the event."""

MAX_CACHED_EVENTS: Final = 20_000
"""Limit of the events that may become a series. Beyond it, the oldest event is forgotten; client-go has no limit."""

BINDING_REASON: Final = "Scheduled"
"""The reason of the event of a binding. A pod is bound once, so the event is never repeated and is not cached."""

MAX_NOTE_BYTES: Final = 1024
"""Limit of a note. Source: pkg/scheduler/schedule_one.go, truncateMessage (1.36)."""

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Event:
    """An event to record.

    Attributes:
        regarding: the object that the event is about.
        type: `Normal` or `Warning`.
        reason, action: short words, such as `Scheduled` and `Binding`.
        note: a sentence; truncated at 1024 bytes.
        related: a second object that the event involves.
    """

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None


def make_object_reference(item: KubernetesObject, api_version: str, kind: str) -> ObjectReference:
    """Return a reference to *item*. Source: client-go/tools/reference/ref.go, GetReference (1.36)."""
    meta = item.metadata
    return ObjectReference(
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        api_version=api_version,
        resource_version=meta.resource_version,
    )


EventKey = tuple[str, str, str, ObjectReference, ObjectReference | None]
"""The type, action, reason, regarded object and related object of an event."""


def make_event_key(event: Event) -> EventKey:
    """Return the key of *event*: events with equal keys form a series. The key does not contain the note."""
    return event.type, event.action, event.reason, event.regarding, event.related


@dataclass(frozen=True, slots=True)
class EventWrite:
    """A write of an event.

    Attributes:
        body: the whole event.
        patch: the patch of its series; None: the event is created.
    """

    namespace: str
    name: str
    body: Mapping[str, Any]
    patch: Mapping[str, Any] | None


@dataclass(slots=True)
class _CachedEvent:
    """An event that was written.

    Attributes:
        body: the event as it was written first.
        last_seen: the time at which it was last recorded, in monotonic seconds.
        last_seen_since_epoch: the same time in seconds since 1970.
        count: how often it was recorded.
    """

    body: Mapping[str, Any]
    last_seen: float
    last_seen_since_epoch: float
    count: int = 1


@dataclass(slots=True)
class EventSeriesCache:
    """The events of the last minutes that may be repeated, by key.

    Attributes:
        controller: the reporting controller, a scheduler name.
        instance: the reporting instance, a process.
    """

    controller: str
    instance: str
    _events: dict[EventKey, _CachedEvent] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._events)

    def observe(self, event: Event, now: float, wall_ns: int, fallback_name: UUID) -> EventWrite | None:
        """Add *event* and return its write; None if only the count of its series changes.

        *now* is in monotonic seconds, *wall_ns* in nanoseconds since 1970. *fallback_name* is the event's name if its
        object's name is not valid for events.
        """
        if event.reason == BINDING_REASON:
            return _make_write(self._make_body(event, wall_ns, fallback_name), None)
        key = make_event_key(event)
        cached_event = self._events.get(key)
        if cached_event is None:
            body = self._make_body(event, wall_ns, fallback_name)
            if len(self._events) >= MAX_CACHED_EVENTS:
                del self._events[next(iter(self._events))]
            self._events[key] = _CachedEvent(body, now, wall_ns / 1e9)
            return _make_write(body, None)
        cached_event.count += 1
        cached_event.last_seen, cached_event.last_seen_since_epoch = now, wall_ns / 1e9
        # The first repetition starts a series. Later counts are written when the series is refreshed or ends.
        return _make_series_write(cached_event) if cached_event.count == 2 else None

    def make_refresh_writes(self) -> list[EventWrite]:
        """Return writes of all continuing series."""
        return [_make_series_write(event) for event in self._events.values() if event.count > 1]

    def remove_ended(self, now: float) -> list[EventWrite]:
        """Remove events that have ended, and return the last write of each that is a series."""
        ended_events = [(key, event) for key, event in self._events.items() if event.last_seen < now - FINISH_SECONDS]
        for key, _ in ended_events:
            del self._events[key]
        return [_make_series_write(event) for _, event in ended_events if event.count > 1]

    def _make_body(self, event: Event, wall_ns: int, fallback_name: UUID) -> dict[str, Any]:
        name = f"{event.regarding.name}.{wall_ns:x}"
        if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
            name = str(fallback_name)
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": event.regarding.namespace or "default"},
            "eventTime": format_micro_time(wall_ns / 1e9),
            "reportingController": self.controller,
            "reportingInstance": self.instance[:128],
            "action": event.action,
            "reason": event.reason,
            "regarding": event.regarding,
            "note": truncate_note(event.note),
            "type": event.type,
        }
        if event.related is not None:
            body["related"] = event.related
        return body


def truncate_note(note: str) -> str:
    """Truncate *note* to 1024 bytes. Source: pkg/scheduler/schedule_one.go, truncateMessage (1.36)."""
    data = note.encode()
    if len(data) <= MAX_NOTE_BYTES:
        return note
    return data[: MAX_NOTE_BYTES - 4].decode(errors="ignore") + " ..."


def _make_write(body: Mapping[str, Any], patch: Mapping[str, Any] | None) -> EventWrite:
    return EventWrite(body["metadata"]["namespace"], body["metadata"]["name"], body, patch)


def _make_series_write(event: _CachedEvent) -> EventWrite:
    series = {"series": {"count": event.count, "lastObservedTime": format_micro_time(event.last_seen_since_epoch)}}
    return _make_write({**event.body, **series}, series)


def make_leader_event(lease: ObjectReference, identity: str, message: str) -> Event:
    """Return the event that *identity* `became leader` or `stopped leading`. Upstream writes this event in core/v1.

    Source: client-go/tools/leaderelection/resourcelock/leaselock.go, LeaseLock.RecordEvent (1.36).
    """
    return Event(lease, "Normal", "LeaderElection", "LeaderElection", f"{identity} {message}")
