"""A live cluster kept up to date: a watch for each kind that scheduling reads, and no other, told to the feed."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from extender.basics.clock import Clock
from extender.client.endpoints import ENDPOINTS
from extender.client.heartbeats import Heartbeats
from extender.client.listwatch import UNFINISHED_PODS, Source
from extender.client.reflector import ObjectChange, Reflector
from extender.client.texts import Texts
from extender.client.transport import Transport
from extender.feed.handlers import RESOURCES, Feed
from extender.framework.changes import Resource
from extender.objects.groups import PodGroup
from extender.objects.meta import KubernetesObject
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.policy import PodDisruptionBudget
from extender.objects.workload import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from extender.queueing.hints import registrations
from extender.wiring import Scheduling

log = logging.getLogger("extender")

_READ_BESIDE_EVENTS: dict[str, tuple[type[KubernetesObject], ...]] = {
    "InterPodAffinity": (Namespace,),
    "PodTopologySpread": (Service, ReplicationController, ReplicaSet, StatefulSet),
    "SelectorSpread": (Service, ReplicationController, ReplicaSet, StatefulSet),
    "ServiceAffinity": (Service,),
    "DefaultPreemption": (PodDisruptionBudget,),
}
"""Kinds that plugins read without waiting for their events. A plugin of somebody else's names its own in `reads`."""

_SILENCE: Final = 180.0
"""Seconds without a sign of life of a watch in trouble after which what it told is stale."""


def kinds_read(scheduling: Scheduling) -> list[type[KubernetesObject]]:
    """The kinds to watch: nodes, pods, and what any enabled plugin registers for or reads, and no other.

    Pod groups are among them if they are scheduled as such. Source: A130, I025.
    """
    by_resource = {resource: kind for kind, resource in RESOURCES.items()}
    kinds: dict[type[KubernetesObject], None] = {Node: None, Pod: None}
    for profile in scheduling.profiles.values():
        for events in registrations(profile).values():
            for event in events:
                if event.resource is not Resource.ANY and event.resource in by_resource:
                    kinds[by_resource[event.resource]] = None
        for name, plugin in profile.plugins.items():
            for kind in (*_READ_BESIDE_EVENTS.get(name, ()), *getattr(plugin, "reads", ())):
                kinds[kind] = None
        if profile.groups is not None:
            kinds[PodGroup] = None
    return list(kinds)


class UnlistedError(Exception):
    """Kinds could not be listed in time; says which, and what keeps them."""


def _unlisted(reflectors: Mapping[type[KubernetesObject], Reflector[Any]]) -> Iterator[str]:
    for kind, reflector in reflectors.items():
        if not reflector.synced.is_set():
            yield f"{kind.__name__} not listed yet" + (f" ({reflector.trouble})" if reflector.trouble else "")


class Watches:
    """The watches of one process.

    Attributes:
        reflectors: by kind.
    """

    def __init__(
        self, scheduling: Scheduling, transport: Transport, feed: Feed, clock: Clock, texts: Texts | None = None
    ) -> None:
        """Watch what the profiles of *scheduling* read; nothing is opened yet.

        Args:
            scheduling: whose profiles.
            transport: to the API server.
            feed: told everything.
            clock: the machine's.
            texts: told the texts of what it keeps.
        """
        self._feed, self._clock, self._texts = feed, clock, Texts() if texts is None else texts
        self._transport, self._running = transport, asyncio.TaskGroup()
        self.reflectors: dict[type[KubernetesObject], Reflector[Any]] = {
            kind: self._reflector(kind, self._deliver) for kind in kinds_read(scheduling)
        }

    def _reflector(
        self, kind: type[KubernetesObject], deliver: Callable[[Sequence[ObjectChange[Any]]], None]
    ) -> Reflector[Any]:
        return Reflector(self._transport, self._source(kind), deliver, self._clock)

    def _source(self, kind: type[Any]) -> Source[Any]:
        heard = self._texts.heard if self._texts.concerns(kind) else None
        lean = self._feed.lean if kind in (Pod, Node) else None
        selector = UNFINISHED_PODS if kind is Pod else ""
        heartbeats = Heartbeats() if kind is Node and heard is None else None
        return Source(kind, ENDPOINTS[kind.__name__], "", selector, heard=heard, lean=lean, heartbeats=heartbeats)

    def _deliver(self, changes: Sequence[ObjectChange[Any]]) -> None:
        for change in changes:
            try:
                self._tell(change)
            except Exception:
                log.exception("a change could not be taken in", extra={"object": change.new or change.old})

    def _tell(self, change: ObjectChange[Any]) -> None:
        if change.old is not None and change.new is not None:
            self._feed.changed(change.old, change.new)
        elif change.new is not None:
            self._feed.added(change.new)
        elif change.old is not None:
            self._texts.forget(change.old)
            self._feed.removed(change.old)

    async def run(self) -> None:
        """Until cancelled."""
        async with self._running as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run())

    async def extend(self, scheduling: Scheduling, seconds: float) -> None:
        """Watch, while running, what *scheduling* reads beside what is watched; back when that is listed and told.

        Raises:
            UnlistedError: it could not be listed in so many seconds; nothing of it was told, or is watched.
        """
        held: list[ObjectChange[Any]] = []
        wanted = [kind for kind in kinds_read(scheduling) if kind not in self.reflectors]
        coming = {kind: self._reflector(kind, held.extend) for kind in wanted}
        tasks = [self._running.create_task(reflector.run()) for reflector in coming.values()]
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(reflector.synced.wait() for reflector in coming.values()))
        except BaseException as fault:
            for task in tasks:
                task.cancel()
            if isinstance(fault, TimeoutError):
                raise UnlistedError("; ".join(_unlisted(coming))) from fault
            raise
        for reflector in coming.values():
            reflector.deliver = self._deliver
        self._deliver(held)
        self.reflectors.update(coming)

    async def listed(self) -> None:
        """Wait until everything has been listed once."""
        await asyncio.gather(*(reflector.synced.wait() for reflector in self.reflectors.values()))

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once."""
        return all(reflector.synced.is_set() for reflector in self.reflectors.values())

    def unlisted(self) -> Iterator[str]:
        """The kinds that have not been listed yet, with what keeps them."""
        return _unlisted(self.reflectors)

    def stale(self) -> str:
        """The kinds that are not up to date; empty if all are.

        Not listed yet, not ours to read any more, or their watch in trouble for long.
        """
        wrong = list(self.unlisted())
        for kind, reflector in self.reflectors.items():
            silent, trouble = self.silent_for(kind), reflector.trouble
            if silent == float("inf"):
                continue
            if reflector.refused:
                wrong.append(f"{kind.__name__} may not be read: {trouble}")
            elif trouble and silent > _SILENCE:
                wrong.append(f"{kind.__name__} not heard of for {silent:.0f} s: {trouble}")
        return "; ".join(wrong)

    def silent_for(self, kind: type[KubernetesObject]) -> float:
        """Seconds since the API server was last heard about *kind*; endless before the first time."""
        return self.reflectors[kind].stale_for(self._clock.monotonic())
