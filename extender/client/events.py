"""Events as they are written: what happened to an object, repeated ones counted as a series.

The machine of the recorder: what to send, and what it makes of the answer; `recorder` sends. Source: client-go's
tools/events, H053 to H058.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from extender.objects.meta import KubernetesObject, ObjectReference
from extender.objects.times import micro_stamp

FINISH_SECONDS: Final = 360.0
"""A series not continued for so long has ended; a single event is forgotten."""

REFRESH_SECONDS: Final = 1800.0
"""A series that goes on is written again after so long, so that the server does not drop it as old."""

LONGEST_NOTE: Final = 1024
"""Bytes. Source: A044."""

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        regarding: to what.
        type: `Normal` or `Warning`.
        reason, action: short words, such as `Scheduled` and `Binding`.
        note: a sentence; cut at 1024 bytes.
        related: another object that had to do with it.
    """

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None


def reference(item: KubernetesObject, api_version: str, kind: str) -> ObjectReference:
    """A reference to *item* as events hold them. Source: client-go's tools/reference."""
    meta = item.metadata
    return ObjectReference(
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        api_version=api_version,
        resource_version=meta.resource_version,
    )


Key = tuple[str, str, str, ObjectReference, ObjectReference | None]


def key_of(event: Event) -> Key:
    """Events with equal keys are repetitions of the first; the note is not part of it."""
    return event.type, event.action, event.reason, event.regarding, event.related


@dataclass(frozen=True, slots=True)
class Writing:
    """What is to be written of an event.

    Attributes:
        namespace, name: of the event.
        body: the whole event.
        patch: what changes if it is a series; None: it is new.
    """

    namespace: str
    name: str
    body: Mapping[str, Any]
    patch: Mapping[str, Any] | None


@dataclass(slots=True)
class _Known:
    """An event that was written; `count` is 1 until it repeats."""

    body: Mapping[str, Any]
    seen_at: float
    seen_wall: float
    count: int = 1


@dataclass(slots=True)
class Series:
    """The events of the last minutes, by what they are about.

    Attributes:
        controller: the scheduler name that reports.
        instance: which of its processes.
    """

    controller: str
    instance: str
    _known: dict[Key, _Known] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._known)

    def happened(self, event: Event, now: float, wall_ns: int, unique: UUID) -> Writing | None:
        """What to write of *event*; None: it only counts.

        Args:
            event: what happened.
            now: monotonic seconds.
            wall_ns: nanoseconds since 1970.
            unique: names the event where its object's name cannot.
        """
        key = key_of(event)
        known = self._known.get(key)
        if known is None:
            body = self._body(event, wall_ns, unique)
            self._known[key] = _Known(body, now, wall_ns / 1e9)
            return _writing(body, None)
        known.count += 1
        known.seen_at, known.seen_wall = now, wall_ns / 1e9
        # The first repetition makes it a series; the further ones are told when it is refreshed or ends.
        return _series(known) if known.count == 2 else None

    def refreshed(self) -> list[Writing]:
        """All series, to be written again."""
        return [_series(known) for known in self._known.values() if known.count > 1]

    def finished(self, now: float) -> list[Writing]:
        """The last word on all series that have ended; they and single events as old are forgotten."""
        old = [(key, known) for key, known in self._known.items() if known.seen_at < now - FINISH_SECONDS]
        for key, _ in old:
            del self._known[key]
        return [_series(known) for _, known in old if known.count > 1]

    def _body(self, event: Event, wall_ns: int, unique: UUID) -> dict[str, Any]:
        name = f"{event.regarding.name}.{wall_ns:x}"
        if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
            name = str(unique)
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": event.regarding.namespace or "default"},
            "eventTime": micro_stamp(wall_ns / 1e9),
            "reportingController": self.controller,
            "reportingInstance": self.instance[:128],
            "action": event.action,
            "reason": event.reason,
            "regarding": event.regarding,
            "note": cut(event.note),
            "type": event.type,
        }
        if event.related is not None:
            body["related"] = event.related
        return body


def cut(note: str) -> str:
    """The note, of at most 1024 bytes. Source: A044."""
    data = note.encode()
    if len(data) <= LONGEST_NOTE:
        return note
    return data[: LONGEST_NOTE - 4].decode(errors="ignore") + " ..."


def _writing(body: Mapping[str, Any], patch: Mapping[str, Any] | None) -> Writing:
    return Writing(body["metadata"]["namespace"], body["metadata"]["name"], body, patch)


def _series(known: _Known) -> Writing:
    series = {"series": {"count": known.count, "lastObservedTime": micro_stamp(known.seen_wall)}}
    return _writing({**known.body, **series}, series)


def of_leader(lease: ObjectReference, identity: str, what: str) -> Event:
    """That *identity* `became leader` or `stopped leading`. Kept and shown like the core/v1 event it is upstream.

    Source: H057.
    """
    return Event(lease, "Normal", "LeaderElection", "LeaderElection", f"{identity} {what}")
