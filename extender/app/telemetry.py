"""The telemetry of a scheduler process, and its diagnostics application: metrics, health, configuration, explain."""

import logging
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from fastapi import FastAPI

from extender import __version__
from extender.app.explain_page import render_explain_page
from extender.app.introspection import read_gauges, render_pod_resource_lines
from extender.app.options import ScheduleOptions
from extender.app.standalone import StandaloneScheduler
from extender.config.model import Configuration
from extender.logs.klog import LoggingOptions, configure_logging
from extender.metrics.exposition import StalenessCollector
from extender.metrics.process_families import HealthMetrics
from extender.metrics.scheduler_metrics import BuildInfo, SchedulerMetrics, make_scheduler_metrics
from extender.serving.diagnostics_app import DiagnosticsService, ExplainPod, MetricsPage, make_diagnostics_app
from extender.serving.health import Health, HealthCheck
from extender.serving.zpages import ProcessInfo

log = logging.getLogger("extender.app")


@dataclass(slots=True)
class Telemetry:
    """The metrics and health checks of a scheduler process; `start_time` is in seconds since 1970."""

    metrics: SchedulerMetrics
    health_metrics: HealthMetrics
    health: Health
    start_time: float


def make_telemetry(options: ScheduleOptions, now: float) -> Telemetry:
    """Return new metrics, all zero; *now* is in seconds since 1970."""
    health_metrics = HealthMetrics(now)
    health = Health(public=True, observe_check=health_metrics.observe_check)
    metrics = make_scheduler_metrics(
        options.setup.profiles, options.disabled_metrics, options.setup.gates, shows_hidden=options.shows_hidden_metrics
    )
    return Telemetry(metrics, health_metrics, health, now)


def make_scheduler_diagnostics_app(
    options: ScheduleOptions, scheduler: StandaloneScheduler, telemetry: Telemetry, explain: ExplainPod | None = None
) -> FastAPI:
    """Return the diagnostics application without authentication; *explain* replaces the default page `/explain`."""
    telemetry.health.readiness_checks, telemetry.health.healthz_checks = _make_health_checks(scheduler)
    release = options.setup.gates.release
    python_version = f"python{sys.version.split()[0]}"
    build = BuildInfo(
        f"{release.version}.0",
        platform.python_implementation(),
        python_version,
        f"{sys.platform}/{platform.machine()}",
        options.features,
    )
    telemetry.metrics.registry.register(StalenessCollector(scheduler.informers.get_seconds_by_kind))
    telemetry.metrics.set_sources(build, partial(read_gauges, scheduler), session_count=3)

    def explain_pod(namespace: str, name: str, as_json: bool) -> str | None:
        key = f"{namespace}/{name}"
        return render_explain_page(key, scheduler.cache, scheduler.context.profiles, as_json=as_json)

    def render_metrics() -> Iterator[bytes]:
        if scheduler.elector is not None:
            telemetry.metrics.set_leading(leading=scheduler.elector.election.leading)
        return telemetry.metrics.render()

    return make_diagnostics_app(
        DiagnosticsService(
            health=telemetry.health,
            metrics=MetricsPage(render_metrics, telemetry.metrics.reset),
            slis=MetricsPage(telemetry.health_metrics.render, telemetry.health_metrics.reset),
            render_resource_metrics=lambda: render_pod_resource_lines(
                scheduler, leading=scheduler.elector is None or scheduler.elector.election.leading
            ),
            configuration=options.setup.build_document(),
            flags=options.flags,
            process_info=ProcessInfo(telemetry.start_time, python_version, __version__, release.version),
            explain=explain or explain_pod,
            set_verbosity=make_verbosity_setter(options.setup.configuration, options.logs),
            has_statusz=_is_enabled("ComponentStatusz", options),
            has_flagz=_is_enabled("ComponentFlagz", options),
        )
    )


def _is_enabled(gate: str, options: ScheduleOptions) -> bool:
    return all(enabled for (name, _), enabled in options.features.items() if name == gate)


def _make_health_checks(scheduler: StandaloneScheduler) -> tuple[dict[str, HealthCheck], dict[str, HealthCheck]]:
    """Return the checks of `/readyz`, and the checks of `/healthz` and `/livez`.

    Source: apiserver/pkg/server/healthz/healthz.go, InstallPathHandlerWithHealthyFunc;
    cmd/kube-scheduler/app/server.go, Run (1.36).
    """
    elector = scheduler.elector
    election_checks: dict[str, HealthCheck] = {}
    if elector is not None:

        def describe_lease_error() -> str:
            lease_name = elector.election.settings.resource_name
            healthy = elector.election.is_healthy(elector.clock.monotonic())
            return "" if healthy else f"failed election to renew leadership on lease {lease_name}"

        election_checks = {"leaderElection": describe_lease_error}

    readiness_checks = {
        **election_checks,
        "sched-handler-sync": lambda: "" if scheduler.informers.synced else "handlers are not fully synchronized",
        "informer-sync": scheduler.informers.describe_staleness,
    }
    return readiness_checks, election_checks


def make_verbosity_setter(configuration: Configuration, logs: LoggingOptions) -> Callable[[int], None] | None:
    """Return the function that sets the log verbosity; None unless profiling is enabled.

    Source: cmd/kube-scheduler/app/server.go, newEndpointsHandler (1.36).
    """
    if not configuration.enable_profiling:
        return None
    return lambda v: configure_logging(replace(logs, v=v))
