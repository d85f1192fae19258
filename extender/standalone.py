"""A standalone scheduler put together: client, feed, queue, loop and lease in one event loop."""

import asyncio
import contextlib
import logging
import os
import platform
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

from extender import __version__
from extender.basics import collector
from extender.basics.clock import Clock
from extender.client.credentials import Credentials
from extender.client.elector import Elector
from extender.client.events import Series, of_leader
from extender.client.extenders import in_order
from extender.client.kubeconfig import Place
from extender.client.lease import Election
from extender.client.recorder import Recorder
from extender.client.texts import Texts
from extender.client.transport import Observe, Transport
from extender.client.writes import Writer
from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.decide.admission import first_to_hold
from extender.decide.engine import Engine
from extender.decide.sampling import Search
from extender.feed.handlers import Feed
from extender.feed.timing import Timed
from extender.framework.observer import Observer
from extender.framework.verdict import Status
from extender.loop.api_server import ApiServer, Voice
from extender.loop.desk import Desk
from extender.loop.outside import Always, Leadership, Tally, Uncounted
from extender.loop.scheduler import Scheduler
from extender.objects.pod import Pod
from extender.queueing.hints import HintObserver
from extender.queueing.waiting import MoveObserver, QueueSettings, SchedulingQueue
from extender.watches import Watches
from extender.wiring import Scheduling, engine

log = logging.getLogger("extender")

_DRAIN_SECONDS = 10.0
_LAST_WORD_SECONDS = 1.0
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
    on_request: Observe | None = None
    on_extender: Callable[[str, str, int, float], None] | None = None


class Standalone:
    """One scheduler process without its HTTP service.

    Attributes:
        state, queue, scheduler, engines: its parts, for the service to look at.
        watches: what is known of the cluster comes from them.
        elector: None without leader election.
        transport: the session that bindings use, also for reviews of the service's callers.
    """

    def __init__(
        self,
        scheduling: Scheduling,
        place: Place,
        clock: Clock,
        watching: Watching,
        *,
        max_parked: float,
        chance: Random | None = None,
    ) -> None:
        """Put everything together; nothing is opened before `run`.

        Args:
            scheduling: the configuration with its plugins.
            place: where credentials are found.
            clock: the machine's.
            watching: who is told.
            max_parked: seconds after which a parked pod is tried again. Source: D027.
            chance: of ties and jitter; one of its own if None.
        """
        configuration = scheduling.configuration
        self._clock, self._scheduling = clock, scheduling
        self._credentials = Credentials(place, clock)
        connection = configuration.client_connection
        observe: dict[str, Any] = {"observe": watching.on_request} if watching.on_request else {}
        self.transport = Transport(self._credentials, connection, _USER_AGENT, clock, **observe)
        self._beside = [Transport(self._credentials, connection, _USER_AGENT, clock, **observe) for _ in range(2)]
        self._chance = chance or Random()  # noqa: S311  ties and jitter, no secret
        self.identity = f"{socket.gethostname()}_{uuid4()}"
        self.elector = self._make_elector(watching)
        leadership: Leadership = self.elector or Always()
        self._api = ApiServer(Writer(self.transport), leadership)
        self.state = ClusterState(scheduling.gates)
        observer = watching.observer
        self.engines: dict[str, Engine] = {
            name: engine(observer(name) if observer else None) for name in scheduling.profiles
        }
        self.queue = self._make_queue(watching, max_parked)
        self.recorders = {name: self._make_recorder(name) for name in scheduling.profiles}
        self._woken = asyncio.Event()
        self.desk = self._make_desk(leadership, watching)
        self.scheduler = Scheduler(self.desk)
        listener = Timed(self.scheduler, watching.on_event) if watching.on_event else self.scheduler
        feed = Feed(self.state, listener, list(scheduling.profiles))
        self.watches = Watches(scheduling, self.transport, feed, clock, self.desk.texts)

    def _make_queue(self, watching: Watching, max_parked: float) -> SchedulingQueue:
        scheduling, configuration = self._scheduling, self._scheduling.configuration
        settings = QueueSettings(
            float(configuration.pod_initial_backoff_seconds),
            float(configuration.pod_max_backoff_seconds),
            max_parked,
            "SchedulerPopFromBackoffQ" in scheduling.gates,
            "GenericWorkload" in scheduling.gates,
        )
        return SchedulingQueue(
            scheduling.profiles, self._gate, settings, on_hint=watching.on_hint, on_move=watching.on_move
        )

    def _make_desk(self, leadership: Leadership, watching: Watching) -> Desk:
        configured = self._scheduling.configuration.extenders
        observe: dict[str, Any] = {"observe": watching.on_extender} if watching.on_extender else {}
        texts = Texts(configured)
        return Desk(
            state=self.state,
            queue=self.queue,
            profiles=self._scheduling.profiles,
            engines=self.engines,
            api=self._api,
            recorder=Voice(self.recorders),
            leadership=leadership,
            tally=watching.tally,
            clock=self._clock,
            chance=self._chance,
            wake=self._woken.set,
            nominates_in_advance="NominatedNodeNameForExpectation" in self._scheduling.gates,
            search=Search(compares=any(each.filter_verb or each.prioritize_verb for each in configured)),
            extenders=in_order(configured, texts, **observe),
            texts=texts,
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
        return Recorder(Writer(self._beside[1]), series, self._clock, self._chance.random, yields=self._is_placing)

    def _is_placing(self) -> bool:
        """Whether pods are on their way to a node."""
        return self.queue.can_pop or self._api.under_way > 0

    def _gate(self, query: PodQuery, first: str) -> Status | None:
        name = query.spec.scheduler_name
        return first_to_hold(query, self.state.snapshot(), self._scheduling.profiles[name], self.engines[name], first)

    def took_back(self, pod: Pod) -> None:
        """Somebody else was to bind *pod* and did not: if it is for one of our profiles, it waits again."""
        if pod.spec.scheduler_name in self._scheduling.profiles:
            self.queue.update(self.state.snapshot().query(pod), (), self._clock.monotonic())
            self._woken.set()

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
                    self.watches.run(),
                    *(recorder.run() for recorder in self.recorders.values()),
                )
            ]
            stack.push_async_callback(_cancelled, jobs)
            return await self._lead(stopping, jobs)

    async def _lead(self, stopping: asyncio.Event, jobs: Sequence[asyncio.Task[None]]) -> int:
        """Wait for the lists, then for the lease, then schedule, as long as all *jobs* do their work."""
        if await _first(stopping, self.watches.listed(), jobs) is None:
            return 0
        collector.settle()
        log.info("the scheduler knows the cluster", extra={"nodes": len(self.state.snapshot()), "pid": os.getpid()})
        if self.elector is not None:
            if await _first(stopping, self.elector.acquire(), jobs) is None:
                return 0
            self._tell_of_lease(self.elector, "became leader")
        ending = asyncio.Event()
        holding = asyncio.create_task(self.elector.hold()) if self.elector is not None else None
        loop = asyncio.create_task(self.scheduler.run(self._woken, ending))
        tasks = [loop, asyncio.create_task(stopping.wait()), *([] if holding is None else [holding])]
        try:
            await asyncio.wait((*tasks, *jobs), return_when=asyncio.FIRST_COMPLETED)
            ending.set()
            self._woken.set()
            if holding is not None and holding.done():
                log.error("Leaderelection lost", extra={"why": holding.result()})
                return 1
            _all_at_work(jobs)
            await loop
            await self._drained()
        finally:
            await _cancelled([*tasks, *self.desk.jobs])
        if self.elector is not None and await self.elector.release():
            await self._tell_of_lease(self.elector, "stopped leading").drain(_LAST_WORD_SECONDS)
        log.info("Requested to terminate, exiting")
        return 0

    def _tell_of_lease(self, elector: Elector, what: str) -> Recorder:
        recorder = next(iter(self.recorders.values()))
        recorder.record(of_leader(elector.election.lease, self.identity, what))
        return recorder

    async def _drained(self) -> None:
        """Let what was begun come to its end, for a while."""
        end = self._clock.monotonic() + _DRAIN_SECONDS
        while (len(self.queue.in_flight) or self.desk.jobs) and self._clock.monotonic() < end:
            await asyncio.sleep(0.02)
        for recorder in self.recorders.values():
            await recorder.drain(max(0.0, end - self._clock.monotonic()))


def _all_at_work(jobs: Sequence[asyncio.Task[None]]) -> None:
    """The fault of one that ended is ours: without it we would go on blind or dumb."""
    for job in jobs:
        if job.done():
            job.result()


async def _first(stopping: asyncio.Event, other: Any, jobs: Sequence[asyncio.Task[None]]) -> Any:
    """What *other* comes to (True if to nothing) while all *jobs* work; None if *stopping* was set before."""
    wanted, stopped = asyncio.ensure_future(other), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((wanted, stopped, *jobs), return_when=asyncio.FIRST_COMPLETED)
        _all_at_work(jobs)
        if not wanted.done():
            return None
        result = wanted.result()
        return True if result is None else result
    finally:
        await _cancelled([wanted, stopped])


async def _cancelled(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
