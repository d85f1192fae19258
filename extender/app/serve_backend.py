"""The backend of `extender serve`: a live cluster, a live cluster with a scheduler, a recorded cluster, or none."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from fastapi import FastAPI

from extender.analysis.pending_pods import nominate_pending_pods
from extender.api.kinds.pod import Pod
from extender.app.explain_page import explain_pod_of_service
from extender.app.informers import Informers, SyncTimeoutError
from extender.app.live_cluster import LiveCluster
from extender.app.options import ScheduleOptions, ServeOptions
from extender.app.reload import ReloadError, TemporaryReloadError
from extender.app.server_release import compare_server_release
from extender.app.standalone import StandaloneScheduler
from extender.app.telemetry import make_scheduler_diagnostics_app, make_telemetry, make_verbosity_setter
from extender.app.wiring import SchedulerSetup, make_runtime, make_slow_call_observer
from extender.basics import gc_tuning
from extender.basics.clock import SystemClock
from extender.cache.cache import Cache
from extender.client.credentials import Credentials
from extender.client.kubeconfig import CredentialSource
from extender.client.writer import Writer
from extender.extender_api.best_node.assumptions import Assumptions
from extender.extender_api.best_node.choice import FilterAnswer
from extender.extender_api.bind import BindApi, BindVerb
from extender.extender_api.body_reader import BodyReader
from extender.extender_api.late_changes import MAX_LATE_SECONDS
from extender.extender_api.routes import ExtenderService, add_verb_routes, new_app
from extender.extender_api.verbs import Verbs
from extender.framework.observer import PluginObserver
from extender.metrics.client_metrics import ClientMetrics
from extender.metrics.exposition import StalenessCollector, make_registry, render_metrics
from extender.metrics.families import MetricFamilies
from extender.metrics.plugin_metrics import PluginMetrics
from extender.metrics.process_families import CLIENT_FAMILIES, ReloadMetrics
from extender.metrics.verb_metrics import VerbMetrics
from extender.scheduler.api_writer import do_nothing
from extender.serving.diagnostics_app import add_verbosity_route
from extender.serving.health import Health

log = logging.getLogger("extender.app")

ApplySetup = Callable[[SchedulerSetup], Coroutine[Any, Any, None]]
"""Puts a changed configuration into force."""

SYNC_TIMEOUT_SECONDS: Final = 30.0
"""Time limit for listing the kinds that a changed configuration needs."""


@dataclass(frozen=True, slots=True)
class ServeBackend:
    """The parts of `extender serve` that depend on its cluster.

    Attributes:
        app: the application with the verbs and the pages, without authentication.
        client_metrics: the metrics of requests to the API server, and of authentication.
        apply_setup: the function that puts new profiles in force, or raises `ReloadError` and changes nothing.
        credentials: the credentials for reviews of callers; None without an API server.
        main_task: the task of the informers or the scheduler, which returns the exit status; None without an API
            server.
        scheduler: the scheduler of this process; None without one.
        informers: the watches; None without an API server.
    """

    app: FastAPI
    extender_service: ExtenderService
    client_metrics: ClientMetrics
    reload_metrics: ReloadMetrics
    apply_setup: ApplySetup
    credentials: Credentials | None = None
    main_task: asyncio.Task[int] | None = None
    scheduler: StandaloneScheduler | None = None
    informers: Informers | None = None


@dataclass(frozen=True, slots=True)
class _VerbTelemetry:
    """The metrics and health checks of the verbs; `render` yields the parts of the metrics page."""

    plugin_metrics: PluginMetrics
    verb_metrics: VerbMetrics
    health: Health
    render: Callable[[], Iterator[bytes]]


def _make_plugin_observers(metrics: PluginMetrics) -> tuple[PluginObserver, PluginObserver]:
    return metrics, make_slow_call_observer(lambda line: log.warning("%s", line))


def make_recorded_backend(options: ServeOptions) -> ServeBackend:
    """Return the backend of a recorded cluster, or of an empty one for requests that contain whole nodes."""

    async def apply_setup(new_setup: SchedulerSetup) -> None:
        _check_groups(setup, new_setup)
        replace_profiles(extender_service, new_setup, plugin_metrics)
        for pod in list(cache.pending_pods.values()):
            cache.nominate(pod, "")
        for profile in new_setup.profiles.values():
            nominate_pending_pods(cache, profile, make_runtime())

    setup, registry = options.setup, make_registry()
    cache = options.cluster if isinstance(options.cluster, Cache) else Cache(setup.gates)
    plugin_metrics = PluginMetrics(registry, list(setup.profiles), release=setup.gates.release)
    telemetry = _VerbTelemetry(plugin_metrics, VerbMetrics(registry), Health(), lambda: render_metrics(registry))
    extender_service = _make_extender_service(options, cache, telemetry)
    client_metrics = ClientMetrics(MetricFamilies(registry, CLIENT_FAMILIES))
    return ServeBackend(
        new_app(extender_service), extender_service, client_metrics, ReloadMetrics(registry), apply_setup
    )


@contextlib.asynccontextmanager
async def open_backend(options: ServeOptions, stopping: asyncio.Event) -> AsyncIterator[ServeBackend]:
    """Open the backend that *options* select, and close it when the block ends.

    Raises:
        ApiError: no credentials can be used.
    """
    if not isinstance(options.cluster, CredentialSource):
        backend = make_recorded_backend(options)
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
    setup, registry, clock = options.setup, make_registry(), SystemClock()
    client_metrics = ClientMetrics(MetricFamilies(registry, CLIENT_FAMILIES))
    cluster = LiveCluster(
        setup,
        credential_source,
        clock,
        observe=client_metrics.observe_request,
        other_scheduler_names=options.other_scheduler_names,
    )
    client_metrics.host = urlsplit(await cluster.credentials.get_server()).netloc
    plugin_metrics = PluginMetrics(registry, list(setup.profiles), release=setup.gates.release)
    registry.register(StalenessCollector(cluster.informers.get_seconds_by_kind))
    health = Health(readiness_checks={"informer-sync": cluster.informers.describe_staleness})
    telemetry = _VerbTelemetry(plugin_metrics, VerbMetrics(registry), health, lambda: render_metrics(registry))
    bind_api = BindApi(Writer(cluster.transport), reader=Writer(cluster.read_transport))
    extender_service = _make_extender_service(options, cluster.cache, telemetry, cluster.informers, bind_api)
    if (assumptions := extender_service.verbs.assumptions) is not None:
        cluster.observe_pods(assumptions.on_pod_change, assumptions.on_pod_delete)
    informers_task = asyncio.create_task(_run_informers(cluster, setup), name="informers")

    async def apply_setup(new_setup: SchedulerSetup) -> None:
        if new_setup.configuration.client_connection != setup.configuration.client_connection:
            raise ReloadError("a change of clientConnection requires a restart")
        _check_groups(setup, new_setup)
        try:
            await cluster.informers.extend(new_setup, SYNC_TIMEOUT_SECONDS)
        except SyncTimeoutError as error:
            raise TemporaryReloadError(f"kinds of the new configuration cannot be listed: {error}") from error
        cluster.apply_setup(new_setup)
        replace_profiles(extender_service, new_setup, plugin_metrics)

    try:
        app = new_app(extender_service)
        add_verbosity_route(app, make_verbosity_setter(options.setup.configuration, options.logs))
        yield ServeBackend(
            app,
            extender_service,
            client_metrics,
            ReloadMetrics(registry),
            apply_setup,
            cluster.credentials,
            informers_task,
            informers=cluster.informers,
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
    schedule_options = ScheduleOptions(options.setup, credential_source, serving=None, logs=options.logs)
    telemetry = make_telemetry(schedule_options, clock.now())
    scheduler = StandaloneScheduler(
        options.setup,
        credential_source,
        clock,
        telemetry.metrics,
        max_in_unschedulable_pods_seconds=schedule_options.max_in_unschedulable_pods_seconds,
    )
    metrics = telemetry.metrics
    metrics.host = urlsplit(await scheduler.credentials.get_server()).netloc
    verb_telemetry = _VerbTelemetry(
        metrics.plugin_metrics, VerbMetrics(metrics.registry), telemetry.health, metrics.render
    )
    writer = Writer(scheduler.transport)
    bind_api = BindApi(writer, reader=writer)
    extender_service = _make_extender_service(options, scheduler.cache, verb_telemetry, scheduler.informers, bind_api)
    if extender_service.bind_verb is not None:
        extender_service.bind_verb.on_forget = scheduler.requeue_pod
    app = make_scheduler_diagnostics_app(schedule_options, scheduler, telemetry, extender_service.explain)
    add_verb_routes(app, extender_service)
    scheduler_task = asyncio.create_task(scheduler.run(stopping), name="scheduler")
    try:
        yield ServeBackend(
            app,
            extender_service,
            metrics,
            ReloadMetrics(metrics.registry),
            _require_restart,
            scheduler.credentials,
            scheduler_task,
            scheduler,
            scheduler.informers,
        )
    finally:
        stopping.set()
        await scheduler_task


def _check_groups(setup: SchedulerSetup, new_setup: SchedulerSetup) -> None:
    if new_setup.gates.coscheduling != setup.gates.coscheduling:
        raise ReloadError("enabling or disabling the plugin Coscheduling requires a restart")


async def _run_informers(cluster: LiveCluster, setup: SchedulerSetup) -> int:
    """Run the informers until cancelled; if they end by themselves, return the exit status 1."""
    informers = cluster.informers

    async def freeze_heap_after_sync() -> None:
        await informers.wait_for_sync()
        gc_tuning.freeze_heap()
        log.info("the cache of the extender is synced")

    check_release = compare_server_release(cluster.transport, setup.gates.release)
    await asyncio.gather(informers.run(), freeze_heap_after_sync(), check_release)
    return 1


def _make_extender_service(
    options: ServeOptions,
    cache: Cache,
    telemetry: _VerbTelemetry,
    informers: Informers | None = None,
    bind_api: BindApi | None = None,
) -> ExtenderService:
    """Return the verbs; *informers* and *bind_api* are those of a live cluster."""
    setup, observers = options.setup, _make_plugin_observers(telemetry.plugin_metrics)
    describe_missing_data = informers.describe_missing_data if informers is not None else lambda: ""
    assumptions = _make_assumptions(options, cache, telemetry.verb_metrics, informers)
    verbs = Verbs(
        cache,
        setup.profiles,
        setup.first_profile,
        make_runtime(*observers),
        make_runtime(*observers, cache_results=False),
        options.score_range,
        telemetry.verb_metrics,
        describe_missing_data,
        assumptions=assumptions,
        late_change_seconds=MAX_LATE_SECONDS if informers is not None else 0.0,
    )
    bind_verb = None
    if bind_api is not None and options.paths.bind:
        bind_verb = BindVerb(
            cache,
            setup.profiles,
            setup.first_profile,
            verbs.runtime,
            bind_api,
            telemetry.verb_metrics,
            options.other_scheduler_names,
            describe_missing_data,
            verbs.decision_log,
            is_stopping=lambda: telemetry.health.draining,
            end_assumption=do_nothing if assumptions is None else assumptions.supersede,
        )
    extender_service = ExtenderService(
        verbs,
        telemetry.health,
        telemetry.verb_metrics,
        telemetry.render,
        bind_verb,
        BodyReader(options.request_limits),
        paths=options.paths,
    )
    extender_service.explain = partial(explain_pod_of_service, extender_service)
    return extender_service


def _make_assumptions(
    options: ServeOptions, cache: Cache, metrics: VerbMetrics, informers: Informers | None
) -> Assumptions | None:
    """Return the assumptions of filter; None if filter answers all feasible nodes."""
    if options.filter_answer is FilterAnswer.FEASIBLE:
        return None

    def may_miss_bindings() -> bool:
        return informers is not None and informers.may_miss_changes(Pod)

    assumptions = Assumptions(cache, options.assume_timeout_seconds, metrics.count_assumption_event, may_miss_bindings)
    metrics.set_assumed_pods_source(assumptions.__len__)
    return assumptions


async def _require_restart(_: SchedulerSetup) -> None:
    raise ReloadError("with --standalone a change of the configuration requires a restart")


def replace_profiles(extender_service: ExtenderService, setup: SchedulerSetup, metrics: PluginMetrics) -> None:
    """Use the profiles of *setup* for new requests; running bindings continue with the old profiles."""
    metrics.set_profiles(list(setup.profiles))
    observers = _make_plugin_observers(metrics)
    profiles, default_profile = setup.profiles, setup.first_profile
    extender_service.verbs = replace(
        extender_service.verbs,
        profiles=profiles,
        default_profile=default_profile,
        runtime=make_runtime(*observers),
        hypothesis_runtime=make_runtime(*observers, cache_results=False),
    )
    if extender_service.bind_verb is not None:
        extender_service.bind_verb = replace(
            extender_service.bind_verb,
            profiles=profiles,
            default_profile=default_profile,
            runtime=extender_service.verbs.runtime,
        )
    extender_service.verbs.cache.forget_plugin_values()
