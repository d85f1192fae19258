"""The cluster behind the verbs: a live one, one that is scheduled as well, a recorded one, or none."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from extender.basics import collector
from extender.basics.clock import SystemClock
from extender.client.credentials import Credentials
from extender.client.kubeconfig import Place
from extender.client.writes import Writer
from extender.cluster.state import ClusterState
from extender.framework.observer import Observer
from extender.joined import Joined, LiveCluster
from extender.observe.calls import CallMetrics
from extender.observe.families import Families
from extender.observe.metrics import PluginMetrics, exposition, new_registry
from extender.observe.process_families import CALL_FAMILIES
from extender.observe.reloads import ReloadMetrics
from extender.observe.verbs import VerbMetrics
from extender.offline.checks import problems
from extender.offline.defaulting import completed
from extender.offline.waiting import nominate_waiting
from extender.options import ScheduleOptions, ServeOptions
from extender.process.explaining import explained
from extender.process.freshness import ReloadError, RetryError
from extender.process.telling import AGENT, service, told, watching
from extender.standalone import Standalone
from extender.watches import UnlistedError, Watches
from extender.web.app import Paths, Site, add_verbs, new_app
from extender.web.binding import Binder
from extender.web.bodies import Bodies
from extender.web.health import Health
from extender.web.scaling import ScoreRange
from extender.web.verbs import Intake, Verbs
from extender.wiring import Scheduling, engine, naming_slow

log = logging.getLogger("extender.process")

Install = Callable[[Scheduling], Awaitable[None]]

LISTING: Final = 30.0
"""Seconds that the API server has to list a kind that a changed configuration needs."""


@dataclass(frozen=True, slots=True)
class Backing:
    """What stands behind the port.

    Attributes:
        app: answers verbs and pages, not yet guarded.
        site: the verbs.
        calls: hears of requests to the API server, and of callers.
        reloads: hears of files that are read again.
        install: puts other profiles in force; raises `ReloadError`, and then changes nothing.
        writer: writes to the API server, which can then be asked about callers; None: there is none.
        job: ends with the process's exit status when nothing can be answered any more; None: that cannot happen.
    """

    app: FastAPI
    site: Site
    calls: CallMetrics
    reloads: ReloadMetrics
    install: Install
    writer: Writer | None = None
    job: asyncio.Task[int] | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    """Where everything is told."""

    registry: CollectorRegistry
    plugins: PluginMetrics
    verbs: VerbMetrics
    health: Health


def _observer(metrics: PluginMetrics) -> Observer:
    return naming_slow(lambda line: log.warning("%s", line), metrics)


def _verbs(
    scheduling: Scheduling, state: ClusterState, seen: _Seen, score_range: ScoreRange, wrong: Callable[[], str]
) -> Verbs:
    observer = _observer(seen.plugins)
    return Verbs(
        state,
        scheduling.profiles,
        scheduling.first,
        engine(observer),
        engine(observer, keep=False),
        Intake(completed, problems),
        score_range,
        seen.verbs,
        wrong,
    )


def recorded(
    scheduling: Scheduling,
    state: ClusterState,
    score_range: ScoreRange = ScoreRange.TEN,
    paths: Paths | None = None,
    bodies: Bodies | None = None,
) -> Backing:
    """A cluster that is as it is: read from a file, or empty but for what requests bring along."""

    async def install(made: Scheduling) -> None:
        take_over(site, made, plugins)
        for pod in list(state.waiting.values()):
            state.nominate(pod, "")
        for profile in made.profiles.values():
            nominate_waiting(state, profile, engine())

    registry = new_registry()
    plugins = PluginMetrics(registry, list(scheduling.profiles))
    seen = _Seen(registry, plugins, VerbMetrics(registry), Health())
    verbs = _verbs(scheduling, state, seen, score_range, lambda: "")
    site = Site(
        verbs,
        seen.health,
        seen.verbs,
        lambda: exposition(registry),
        bodies=bodies or Bodies(),
        paths=paths or Paths(),
    )
    site.explain = partial(explained, site)
    calls = CallMetrics(Families(registry, CALL_FAMILIES))
    return Backing(new_app(site), site, calls, ReloadMetrics(registry), install)


@contextlib.asynccontextmanager
async def backing(options: ServeOptions, stopping: asyncio.Event) -> AsyncIterator[Backing]:
    """What *options* ask for, for as long as the block lasts.

    Raises:
        ApiError: there are no usable credentials.
    """
    if not isinstance(options.cluster, Place):
        state = options.cluster or ClusterState(options.scheduling.gates)
        made = recorded(options.scheduling, state, options.score_range, options.paths, Bodies(*options.most_bytes))
        collector.settle()
        yield made
    elif options.standalone:
        async with _scheduled(options, options.cluster, stopping) as made:
            yield made
    else:
        async with _joined(options, options.cluster) as made:
            yield made


@contextlib.asynccontextmanager
async def _joined(options: ServeOptions, place: Place) -> AsyncIterator[Backing]:
    """A live cluster that others schedule."""
    scheduling, registry, clock = options.scheduling, new_registry(), SystemClock()
    calls = CallMetrics(Families(registry, CALL_FAMILIES))
    joined = Joined(scheduling, place, clock, AGENT, observe=calls.requested, others=options.others)
    calls.host = urlsplit((await joined.credentials.current()).identity.server).netloc
    plugins = PluginMetrics(registry, list(scheduling.profiles))
    health = Health(ready={"informer-sync": joined.watches.stale})
    seen = _Seen(registry, plugins, VerbMetrics(registry), health)
    writer = Writer(joined.transport)
    live = LiveCluster(writer, Writer(joined.reading))
    site = _site(options, joined.state, joined.watches, seen, live, lambda: exposition(registry))
    watches = asyncio.create_task(_watched(joined.watches), name="watches")

    async def install(made: Scheduling) -> None:
        if made.configuration.client_connection != scheduling.configuration.client_connection:
            raise ReloadError("clientConnection: a change of it takes a restart")
        try:
            await joined.watches.extend(made, LISTING)
        except UnlistedError as fault:
            raise RetryError(f"it needs kinds that are not watched yet: {fault}") from fault
        joined.take_over(made)
        take_over(site, made, plugins)
        _tell_staleness(joined.watches, seen.verbs)

    try:
        yield Backing(new_app(site), site, calls, ReloadMetrics(registry), install, writer, watches)
    finally:
        watches.cancel()
        await asyncio.gather(watches, return_exceptions=True)
        await joined.close()


@contextlib.asynccontextmanager
async def _scheduled(options: ServeOptions, place: Place, stopping: asyncio.Event) -> AsyncIterator[Backing]:
    """A live cluster whose pods this process places as well: verbs and loop share what they know of it."""
    clock = SystemClock()
    schedule = ScheduleOptions(options.scheduling, place, serving=None, logs=options.logs)
    seen = told(schedule, clock.now())
    seen.metrics.host = urlsplit((await Credentials(place, clock).current()).identity.server).netloc
    scheduler = Standalone(options.scheduling, place, clock, watching(seen), max_parked=schedule.max_parked)
    parts = _Seen(seen.registry, seen.plugins, VerbMetrics(seen.registry), seen.health)
    writer = Writer(scheduler.transport)
    live = LiveCluster(writer, writer)
    site = _site(options, scheduler.state, scheduler.watches, parts, live, seen.metrics.page)
    if site.binder is not None:
        site.binder.given_back = scheduler.took_back
    app = service(schedule, scheduler, seen, site.explain)
    add_verbs(app, site)
    job = asyncio.create_task(scheduler.run(stopping), name="scheduler")
    try:
        yield Backing(app, site, seen.metrics, ReloadMetrics(seen.registry), _restart, writer, job)
    finally:
        stopping.set()
        await job


async def _watched(watches: Watches) -> int:
    """Watch until cancelled; ends only if that breaks."""

    async def settled() -> None:
        await watches.listed()
        collector.settle()
        log.info("the extender knows the cluster")

    await asyncio.gather(watches.run(), settled())
    return 1


def _site(
    options: ServeOptions,
    state: ClusterState,
    watches: Watches,
    seen: _Seen,
    live: LiveCluster,
    metrics: Callable[[], bytes],
) -> Site:
    """The verbs about a live cluster."""

    def wrong() -> str:
        missing = "; ".join(watches.unlisted())
        return f"the extender does not know the cluster yet: {missing}" if missing else ""

    scheduling = options.scheduling
    verbs = _verbs(scheduling, state, seen, options.score_range, wrong)
    binder = Binder(
        state,
        scheduling.profiles,
        scheduling.first,
        verbs.engine,
        live,
        seen.verbs,
        options.others,
        wrong,
        verbs.record,
    )
    _tell_staleness(watches, seen.verbs)
    site = Site(
        verbs,
        seen.health,
        seen.verbs,
        metrics,
        binder if binds(options) else None,
        Bodies(*options.most_bytes),
        paths=options.paths,
    )
    site.explain = partial(explained, site)
    return site


def _tell_staleness(watches: Watches, metrics: VerbMetrics) -> None:
    for kind in watches.reflectors:
        metrics.staleness(kind.__name__, partial(watches.silent_for, kind))


async def _restart(_: Scheduling) -> None:
    raise ReloadError("with --standalone a change of it takes a restart")


def take_over(site: Site, made: Scheduling, metrics: PluginMetrics) -> None:
    """Have the profiles of *made* answer from the next request on; what is being bound ends as it began."""
    metrics.serve(list(made.profiles))
    observer = _observer(metrics)
    profiles, default = made.profiles, made.first
    site.verbs = replace(
        site.verbs,
        profiles=profiles,
        default=default,
        engine=engine(observer),
        imagining=engine(observer, keep=False),
    )
    if site.binder is not None:
        site.binder = replace(site.binder, profiles=profiles, default=default, engine=site.verbs.engine)


def binds(options: ServeOptions) -> bool:
    """Whether bind may be served: to callers with a certificate, or from this machine."""
    return bool(options.client_authority) or options.serving.local
