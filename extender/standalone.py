"""A standalone scheduler put together: client, feed, queue, loop and lease in one event loop."""

import asyncio
import contextlib
import gc
import logging
import os
import platform
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

from extender import __version__
from extender.basics.clock import Clock
from extender.client.credentials import Credentials
from extender.client.elector import Elector
from extender.client.endpoints import ENDPOINTS
from extender.client.events import Series
from extender.client.extenders import in_order
from extender.client.kubeconfig import Place
from extender.client.lease import Election
from extender.client.listwatch import UNFINISHED_PODS, Source
from extender.client.recorder import Recorder
from extender.client.reflector import ObjectChange, Reflector
from extender.client.transport import Transport
from extender.client.writes import Writer
from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.decide.admission import first_to_hold
from extender.decide.engine import Engine
from extender.decide.sampling import Search
from extender.feed.handlers import RESOURCES, Feed
from extender.feed.timing import Timed
from extender.framework.changes import Resource
from extender.framework.observer import Observer
from extender.framework.verdict import Status
from extender.loop.api_server import ApiServer, Voice
from extender.loop.desk import Desk
from extender.loop.outside import Always, Leadership, Tally, Uncounted
from extender.loop.scheduler import Scheduler
from extender.objects.meta import KubernetesObject
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.policy import PodDisruptionBudget
from extender.objects.workload import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from extender.queueing.hints import HintObserver, registrations
from extender.queueing.waiting import MoveObserver, QueueSettings, SchedulingQueue
from extender.wiring import Scheduling, engine

log = logging.getLogger("extender")

_READ_BESIDE_EVENTS: dict[str, tuple[type[KubernetesObject], ...]] = {
    "InterPodAffinity": (Namespace,),
    "PodTopologySpread": (Service, ReplicationController, ReplicaSet, StatefulSet),
    "SelectorSpread": (Service, ReplicationController, ReplicaSet, StatefulSet),
    "ServiceAffinity": (Service,),
    "DefaultPreemption": (PodDisruptionBudget,),
}
"""Kinds that plugins read without waiting for their events. A plugin of somebody else's names its own in `reads`."""

_DRAIN_SECONDS = 10.0
_USER_AGENT = f"extender/{__version__} ({platform.system().lower()}/{platform.machine()}) scheduler"


@dataclass(frozen=True, slots=True)
class Watching:
    """Who is told what happens inside, for metrics; all of it optional. `observer` makes one for each profile."""

    observer: Callable[[str], Observer] | None = None
    tally: Tally = field(default_factory=Uncounted)
    on_hint: HintObserver | None = None
    on_move: MoveObserver | None = None
    on_event: Callable[[str, float], None] | None = None
    on_holder: Callable[[str], None] | None = None
    on_request: Callable[[str, int, float], None] | None = None
    on_extender: Callable[[str, str, int, float], None] | None = None


def kinds_read(scheduling: Scheduling) -> list[type[KubernetesObject]]:
    """The kinds to watch: nodes, pods, and what any enabled plugin registers for or reads, and no other.

    Source: A130.
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
    return list(kinds)


class Standalone:
    """One scheduler process without its HTTP service.

    Attributes:
        state, queue, scheduler, engines: its parts, for the service to look at.
        reflectors: by kind.
        elector: None without leader election.
        transport: the session that bindings use, also for reviews of the service's callers.
    """

    def __init__(
        self, scheduling: Scheduling, place: Place, clock: Clock, watching: Watching, *, max_parked: float
    ) -> None:
        """Put everything together; nothing is opened before `run`.

        Args:
            scheduling: the configuration with its plugins.
            place: where credentials are found.
            clock: the machine's.
            watching: who is told.
            max_parked: seconds after which a parked pod is tried again. Source: D027.
        """
        configuration = scheduling.configuration
        self._clock, self._scheduling = clock, scheduling
        self._credentials = Credentials(place, clock)
        connection = configuration.client_connection
        observe: dict[str, Any] = {"observe": watching.on_request} if watching.on_request else {}
        self.transport = Transport(self._credentials, connection, _USER_AGENT, clock, **observe)
        self._beside = [Transport(self._credentials, connection, _USER_AGENT, clock, **observe) for _ in range(2)]
        self._chance = Random()  # noqa: S311  ties and jitter, no secret
        self.identity = f"{socket.gethostname()}_{uuid4()}"
        self.elector = self._make_elector(watching)
        leadership: Leadership = self.elector or Always()
        self.state = ClusterState()
        observer = watching.observer
        self.engines: dict[str, Engine] = {
            name: engine(observer(name) if observer else None) for name in scheduling.profiles
        }
        settings = QueueSettings(
            float(configuration.pod_initial_backoff_seconds),
            float(configuration.pod_max_backoff_seconds),
            max_parked,
            "SchedulerPopFromBackoffQ" in scheduling.gates,
        )
        self.queue = SchedulingQueue(
            scheduling.profiles, self._gate, settings, on_hint=watching.on_hint, on_move=watching.on_move
        )
        self.recorders = {name: self._make_recorder(name) for name in scheduling.profiles}
        self._woken = asyncio.Event()
        self.desk = self._make_desk(leadership, watching)
        self.scheduler = Scheduler(self.desk)
        listener = Timed(self.scheduler, watching.on_event) if watching.on_event else self.scheduler
        self._feed = Feed(self.state, listener, list(scheduling.profiles))
        self.reflectors = {kind: self._make_reflector(kind) for kind in kinds_read(scheduling)}

    def _make_desk(self, leadership: Leadership, watching: Watching) -> Desk:
        configured = self._scheduling.configuration.extenders
        observe: dict[str, Any] = {"observe": watching.on_extender} if watching.on_extender else {}
        return Desk(
            state=self.state,
            queue=self.queue,
            profiles=self._scheduling.profiles,
            engines=self.engines,
            api=ApiServer(Writer(self.transport), leadership),
            recorder=Voice(self.recorders),
            leadership=leadership,
            tally=watching.tally,
            clock=self._clock,
            chance=self._chance,
            wake=self._woken.set,
            nominates_in_advance="NominatedNodeNameForExpectation" in self._scheduling.gates,
            search=Search(compares=any(each.filter_verb or each.prioritize_verb for each in configured)),
            extenders=in_order(configured, **observe),
        )

    def _make_elector(self, watching: Watching) -> Elector | None:
        settings = self._scheduling.configuration.leader_election
        if not settings.leader_elect:
            return None
        told: dict[str, Any] = {"on_holder": watching.on_holder} if watching.on_holder else {}
        election = Election(settings, self.identity)
        return Elector(election, Writer(self._beside[0]), self._clock, self._chance.random, **told)

    def _make_recorder(self, name: str) -> Recorder:
        series = Series(name, f"{name}-{self.identity.partition('_')[0]}")
        return Recorder(Writer(self._beside[1]), series, self._clock, self._chance.random)

    def _make_reflector(self, kind: type[Any]) -> Reflector[Any]:
        selector = UNFINISHED_PODS if kind is Pod else ""
        source = Source(kind, ENDPOINTS[kind.__name__], field_selector=selector)
        return Reflector(self.transport, source, self._deliver, self._clock)

    def _gate(self, query: PodQuery, first: str) -> Status | None:
        name = query.spec.scheduler_name
        return first_to_hold(query, self.state.snapshot(), self._scheduling.profiles[name], self.engines[name], first)

    def _deliver(self, changes: Sequence[ObjectChange[Any]]) -> None:
        for change in changes:
            if change.old is not None and change.new is not None:
                self._feed.changed(change.old, change.new)
            elif change.new is not None:
                self._feed.added(change.new)
            elif change.old is not None:
                self._feed.removed(change.old)

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once."""
        return all(reflector.synced.is_set() for reflector in self.reflectors.values())

    def troubles(self) -> Iterator[str]:
        """Why we are not up to date, a line a kind."""
        for kind, reflector in self.reflectors.items():
            if reflector.trouble:
                yield f"{kind.__name__}: {reflector.trouble}"

    async def run(self, stopping: asyncio.Event) -> int:
        """Schedule until *stopping* is set (0) or the lease is lost (1). Source: I002.

        Raises:
            ApiError: there are no usable credentials.
        """
        await self._credentials.current()
        async with contextlib.AsyncExitStack() as stack:
            for transport in (self.transport, *self._beside):
                stack.push_async_callback(transport.close)
            for extender in self.desk.extenders:
                stack.push_async_callback(extender.close)
            jobs = [
                asyncio.create_task(job)
                for job in (
                    *(reflector.run() for reflector in self.reflectors.values()),
                    *(recorder.run() for recorder in self.recorders.values()),
                )
            ]
            stack.push_async_callback(_cancelled, jobs)
            return await self._lead(stopping)

    async def _lead(self, stopping: asyncio.Event) -> int:
        """Wait for the lists, then for the lease, then schedule."""
        synced = asyncio.gather(*(reflector.synced.wait() for reflector in self.reflectors.values()))
        if await _first(stopping, synced) is None:
            return 0
        settle_memory()
        log.info("the scheduler knows the cluster", extra={"nodes": len(self.state.snapshot()), "pid": os.getpid()})
        holding: asyncio.Task[str] | None = None
        if self.elector is not None:
            if await _first(stopping, self.elector.acquire()) is None:
                return 0
            holding = asyncio.create_task(self.elector.hold())
        ending = asyncio.Event()
        loop = asyncio.create_task(self.scheduler.run(self._woken, ending))
        waits: list[asyncio.Future[Any]] = [asyncio.create_task(stopping.wait()), loop]
        if holding is not None:
            waits.append(holding)
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        ending.set()
        self._woken.set()
        if holding is not None and holding.done():
            log.error("Leaderelection lost", extra={"why": holding.result()})
            await _cancelled([loop, *waits])
            return 1
        await loop
        await self._drained()
        await _cancelled([wait for wait in waits if wait is not loop])
        if self.elector is not None:
            await self.elector.release()
        log.info("Requested to terminate, exiting")
        return 0

    async def _drained(self) -> None:
        """Let what was begun come to its end, for a while."""
        end = self._clock.monotonic() + _DRAIN_SECONDS
        while (len(self.queue.in_flight) or self.desk.jobs) and self._clock.monotonic() < end:
            await asyncio.sleep(0.02)
        for recorder in self.recorders.values():
            await recorder.drain(max(0.0, end - self._clock.monotonic()))


def settle_memory() -> None:
    """What was read at the start stays: the collector need not look at it again, and later not so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _first(stopping: asyncio.Event, other: Any) -> Any:
    """What *other* comes to (True if to nothing); None if *stopping* was set before."""
    wanted, stopped = asyncio.ensure_future(other), asyncio.create_task(stopping.wait())
    await asyncio.wait((wanted, stopped), return_when=asyncio.FIRST_COMPLETED)
    if wanted.done():
        await _cancelled([stopped])
        result = wanted.result()
        return True if result is None else result
    await _cancelled([wanted])
    return None


async def _cancelled(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
