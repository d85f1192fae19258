"""The backend of `extender serve`: a live cluster, a live cluster with a scheduler, a recorded cluster, or none."""

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

from extender.analysis.pending_pods import nominate_pending_pods
from extender.api.defaulting import set_defaults
from extender.api.validation import validate_object
from extender.app.explain_page import render_explain_page
from extender.app.informers import Informers, SyncTimeoutError
from extender.app.live_cluster import LiveBindApi, LiveCluster
from extender.app.options import ScheduleOptions, ServeOptions
from extender.app.reload import ReloadError, RetryError
from extender.app.standalone import StandaloneScheduler
from extender.app.telemetry import USER_AGENT, make_scheduler_diagnostics_app, make_scheduler_hooks, make_telemetry
from extender.app.wiring import Scheduling, make_runtime, make_slow_call_observer
from extender.basics import gc_tuning
from extender.basics.clock import SystemClock
from extender.cache.cache import Cache
from extender.client.credentials import Credentials
from extender.client.kubeconfig import CredentialSource
from extender.client.writer import Writer
from extender.extender_api.bind import BindVerb
from extender.extender_api.body_reader import BodyReader
from extender.extender_api.routes import ExtenderService, VerbPaths, add_verb_routes, new_app
from extender.extender_api.score_scaling import ScoreRange
from extender.extender_api.verbs import PodPreparer, Verbs
from extender.framework.observer import PluginObserver
from extender.metrics.client_metrics import ClientMetrics
from extender.metrics.exposition import PluginMetrics, make_registry, render_metrics
from extender.metrics.families import MetricFamilies
from extender.metrics.process_families import CLIENT_FAMILIES
from extender.metrics.reload_metrics import ReloadMetrics
from extender.metrics.verb_metrics import VerbMetrics
from extender.serving.health import Health

log = logging.getLogger("extender.app")

InstallScheduling = Callable[[Scheduling], Awaitable[None]]

SYNC_TIMEOUT_SECONDS: Final = 30.0
"""Time limit for listing the kinds that a changed configuration needs."""


@dataclass(frozen=True, slots=True)
class ServeBackend:
    """The application of `extender serve`, with its metrics, reload function, writer and main task.

    Attributes:
        app: the application with the verbs and the pages, without authentication.
        extender_service: the verbs.
        client_metrics: the metrics of requests to the API server, and of authentication.
        reload_metrics: the metrics of reloaded files.
        install: the function that puts new profiles in force, or raises `ReloadError` and changes nothing.
        writer: the client that creates reviews of callers; None without an API server.
        main_task: the task of the informers or the scheduler, which returns the process's exit status; None without an
            API server.
    """

    app: FastAPI
    extender_service: ExtenderService
    client_metrics: ClientMetrics
    reload_metrics: ReloadMetrics
    install: InstallScheduling
    writer: Writer | None = None
    main_task: asyncio.Task[int] | None = None


@dataclass(frozen=True, slots=True)
class _VerbTelemetry:
    """The metrics and health checks of the verbs."""

    registry: CollectorRegistry
    plugin_metrics: PluginMetrics
    verb_metrics: VerbMetrics
    health: Health


def _make_plugin_observer(metrics: PluginMetrics) -> PluginObserver:
    return make_slow_call_observer(lambda line: log.warning("%s", line), metrics)


def _make_verbs(
    scheduling: Scheduling,
    cache: Cache,
    telemetry: _VerbTelemetry,
    score_range: ScoreRange,
    describe_sync_error: Callable[[], str],
) -> Verbs:
    observer = _make_plugin_observer(telemetry.plugin_metrics)
    return Verbs(
        cache,
        scheduling.profiles,
        scheduling.first_profile,
        make_runtime(observer),
        make_runtime(observer, cache_results=False),
        PodPreparer(set_defaults, validate_object),
        score_range,
        telemetry.verb_metrics,
        describe_sync_error,
    )


def make_recorded_backend(
    scheduling: Scheduling,
    cache: Cache,
    score_range: ScoreRange = ScoreRange.TEN,
    paths: VerbPaths | None = None,
    body_reader: BodyReader | None = None,
) -> ServeBackend:
    """Return the backend of a recorded cluster; if the cache is empty, requests must contain whole nodes."""

    async def install(new_scheduling: Scheduling) -> None:
        replace_profiles(extender_service, new_scheduling, plugin_metrics)
        for pod in list(cache.pending_pods.values()):
            cache.nominate(pod, "")
        for profile in new_scheduling.profiles.values():
            nominate_pending_pods(cache, profile, make_runtime())

    registry = make_registry()
    plugin_metrics = PluginMetrics(registry, list(scheduling.profiles))
    telemetry = _VerbTelemetry(registry, plugin_metrics, VerbMetrics(registry), Health())
    verbs = _make_verbs(scheduling, cache, telemetry, score_range, lambda: "")
    extender_service = ExtenderService(
        verbs,
        telemetry.health,
        telemetry.verb_metrics,
        lambda: render_metrics(registry),
        body_reader=body_reader or BodyReader(),
        paths=paths or VerbPaths(),
    )
    extender_service.explain = partial(render_explain_page, extender_service)
    client_metrics = ClientMetrics(MetricFamilies(registry, CLIENT_FAMILIES))
    return ServeBackend(new_app(extender_service), extender_service, client_metrics, ReloadMetrics(registry), install)


@contextlib.asynccontextmanager
async def open_backend(options: ServeOptions, stopping: asyncio.Event) -> AsyncIterator[ServeBackend]:
    """Open the backend that *options* select inside the block.

    Raises:
        ApiError: no credentials can be used.
    """
    if not isinstance(options.cluster, CredentialSource):
        cache = options.cluster or Cache(options.scheduling.gates)
        backend = make_recorded_backend(
            options.scheduling, cache, options.score_range, options.paths, BodyReader(*options.max_body_bytes)
        )
        gc_tuning.freeze_heap()
        yield backend
    elif options.standalone:
        async with _open_standalone_backend(options, options.cluster, stopping) as backend:
            yield backend
    else:
        async with _open_live_backend(options, options.cluster) as backend:
            yield backend


@contextlib.asynccontextmanager
async def _open_live_backend(options: ServeOptions, credential_source: CredentialSource) -> AsyncIterator[ServeBackend]:
    """Open the backend of a live cluster that this process does not schedule."""
    scheduling, registry, clock = options.scheduling, make_registry(), SystemClock()
    client_metrics = ClientMetrics(MetricFamilies(registry, CLIENT_FAMILIES))
    cluster = LiveCluster(
        scheduling,
        credential_source,
        clock,
        USER_AGENT,
        observe=client_metrics.observe_request,
        other_scheduler_names=options.other_scheduler_names,
    )
    client_metrics.host = urlsplit((await cluster.credentials.get_current_config()).config.server).netloc
    plugin_metrics = PluginMetrics(registry, list(scheduling.profiles))
    health = Health(readiness_checks={"informer-sync": cluster.informers.describe_staleness})
    telemetry = _VerbTelemetry(registry, plugin_metrics, VerbMetrics(registry), health)
    writer = Writer(cluster.transport)
    bind_api = LiveBindApi(writer, Writer(cluster.read_transport))
    extender_service = _make_extender_service(
        options, cluster.cache, cluster.informers, telemetry, bind_api, lambda: render_metrics(registry)
    )
    informers_task = asyncio.create_task(_run_informers(cluster.informers), name="informers")

    async def install(new_scheduling: Scheduling) -> None:
        if new_scheduling.configuration.client_connection != scheduling.configuration.client_connection:
            raise ReloadError("a change of clientConnection requires a restart")
        try:
            await cluster.informers.extend(new_scheduling, SYNC_TIMEOUT_SECONDS)
        except SyncTimeoutError as error:
            raise RetryError(f"kinds of the new configuration cannot be listed: {error}") from error
        cluster.set_scheduling(new_scheduling)
        replace_profiles(extender_service, new_scheduling, plugin_metrics)
        _export_staleness(cluster.informers, telemetry.verb_metrics)

    try:
        yield ServeBackend(
            new_app(extender_service),
            extender_service,
            client_metrics,
            ReloadMetrics(registry),
            install,
            writer,
            informers_task,
        )
    finally:
        informers_task.cancel()
        await asyncio.gather(informers_task, return_exceptions=True)
        await cluster.close()


@contextlib.asynccontextmanager
async def _open_standalone_backend(
    options: ServeOptions, credential_source: CredentialSource, stopping: asyncio.Event
) -> AsyncIterator[ServeBackend]:
    """Open the backend of a live cluster that this process also schedules: verbs and scheduler share one cache."""
    clock = SystemClock()
    schedule_options = ScheduleOptions(options.scheduling, credential_source, serving=None, logs=options.logs)
    telemetry = make_telemetry(schedule_options, clock.now())
    telemetry.metrics.host = urlsplit(
        (await Credentials(credential_source, clock).get_current_config()).config.server
    ).netloc
    scheduler = StandaloneScheduler(
        options.scheduling,
        credential_source,
        clock,
        make_scheduler_hooks(telemetry),
        max_in_unschedulable_pods_seconds=schedule_options.max_in_unschedulable_pods_seconds,
    )
    verb_telemetry = _VerbTelemetry(
        telemetry.registry, telemetry.plugin_metrics, VerbMetrics(telemetry.registry), telemetry.health
    )
    writer = Writer(scheduler.transport)
    bind_api = LiveBindApi(writer, writer)
    extender_service = _make_extender_service(
        options, scheduler.cache, scheduler.informers, verb_telemetry, bind_api, telemetry.metrics.render
    )
    if extender_service.bind_verb is not None:
        extender_service.bind_verb.on_forget = scheduler.requeue_pod
    app = make_scheduler_diagnostics_app(schedule_options, scheduler, telemetry, extender_service.explain)
    add_verb_routes(app, extender_service)
    scheduler_task = asyncio.create_task(scheduler.run(stopping), name="scheduler")
    try:
        yield ServeBackend(
            app,
            extender_service,
            telemetry.metrics,
            ReloadMetrics(telemetry.registry),
            _require_restart,
            writer,
            scheduler_task,
        )
    finally:
        stopping.set()
        await scheduler_task


async def _run_informers(informers: Informers) -> int:
    """Run the informers until cancelled; return the exit status 1 if the informers end without cancellation."""

    async def freeze_heap_after_sync() -> None:
        await informers.wait_for_sync()
        gc_tuning.freeze_heap()
        log.info("the extender knows the cluster")

    await asyncio.gather(informers.run(), freeze_heap_after_sync())
    return 1


def _make_extender_service(
    options: ServeOptions,
    cache: Cache,
    informers: Informers,
    telemetry: _VerbTelemetry,
    bind_api: LiveBindApi,
    render: Callable[[], bytes],
) -> ExtenderService:
    """Return the verbs for a live cluster."""

    def describe_sync_error() -> str:
        unsynced_kinds = "; ".join(informers.describe_unsynced_kinds())
        return f"the extender does not know the cluster yet: {unsynced_kinds}" if unsynced_kinds else ""

    scheduling = options.scheduling
    verbs = _make_verbs(scheduling, cache, telemetry, options.score_range, describe_sync_error)
    bind_verb = BindVerb(
        cache,
        scheduling.profiles,
        scheduling.first_profile,
        verbs.runtime,
        bind_api,
        telemetry.verb_metrics,
        options.other_scheduler_names,
        describe_sync_error,
        verbs.decision_log,
    )
    _export_staleness(informers, telemetry.verb_metrics)
    extender_service = ExtenderService(
        verbs,
        telemetry.health,
        telemetry.verb_metrics,
        render,
        bind_verb if may_serve_bind(options) else None,
        BodyReader(*options.max_body_bytes),
        paths=options.paths,
    )
    extender_service.explain = partial(render_explain_page, extender_service)
    return extender_service


def _export_staleness(informers: Informers, metrics: VerbMetrics) -> None:
    for kind in informers.reflectors:
        metrics.set_staleness_source(kind.__name__, partial(informers.get_seconds_since_contact, kind))


async def _require_restart(_: Scheduling) -> None:
    raise ReloadError("with --standalone a change of the configuration requires a restart")


def replace_profiles(extender_service: ExtenderService, scheduling: Scheduling, metrics: PluginMetrics) -> None:
    """Use the profiles of *scheduling* for new requests; running bindings continue with the old profiles."""
    metrics.set_profiles(list(scheduling.profiles))
    observer = _make_plugin_observer(metrics)
    profiles, default_profile = scheduling.profiles, scheduling.first_profile
    extender_service.verbs = replace(
        extender_service.verbs,
        profiles=profiles,
        default_profile=default_profile,
        runtime=make_runtime(observer),
        hypothesis_runtime=make_runtime(observer, cache_results=False),
    )
    if extender_service.bind_verb is not None:
        extender_service.bind_verb = replace(
            extender_service.bind_verb,
            profiles=profiles,
            default_profile=default_profile,
            runtime=extender_service.verbs.runtime,
        )


def may_serve_bind(options: ServeOptions) -> bool:
    """Return whether the verb bind may be served: only with client certificates or on a loopback address."""
    return bool(options.client_ca_file) or options.serving.is_loopback
