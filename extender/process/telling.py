"""What one process tells of itself, and the service that tells it: metrics, health, configuration, explanations."""

import logging
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from extender import __version__
from extender.config.documents import read
from extender.observe.checks import CheckMetrics
from extender.observe.logs import configure
from extender.observe.metrics import PluginMetrics, new_registry
from extender.observe.scheduling import Build, SchedulerMetrics
from extender.options import ScheduleOptions
from extender.process.figures import explain, figures, usage
from extender.standalone import Standalone, Watching
from extender.web.health import Check, Health
from extender.web.pages import Facts
from extender.web.service import Explain, Page, Service, new_service
from extender.wiring import engine

log = logging.getLogger("extender.process")

BEHAVES_AS: Final = "1.36"
"""The release of Kubernetes whose scheduler this is."""

AGENT: Final = f"extender/{__version__} ({platform.system().lower()}/{platform.machine()})"


@dataclass(slots=True)
class Told:
    """Where everything is told.

    Attributes:
        registry: of all metrics.
        plugins: metrics of plugins.
        metrics, checks: the pages of metrics.
        health: answers probes.
        started: seconds since 1970.
    """

    registry: CollectorRegistry
    plugins: PluginMetrics
    metrics: SchedulerMetrics
    checks: CheckMetrics
    health: Health
    started: float


def told(options: ScheduleOptions, now: float) -> Told:
    """Nothing has been told yet; *now* is in seconds since 1970."""
    registry = new_registry()
    profiles = options.scheduling.profiles
    plugins = PluginMetrics(registry, list(profiles), hidden=options.disabled_metrics)
    for profile in profiles.values():
        plugins.expects(profile)
    checks = CheckMetrics(now)
    health = Health(open=True, told=checks.checked)
    metrics = SchedulerMetrics(registry, plugins, options.disabled_metrics, options.scheduling.gates)
    return Told(registry, plugins, metrics, checks, health, now)


def watching(seen: Told) -> Watching:
    """What the scheduler reports to."""
    metrics = seen.metrics

    def on_holder(holder: str) -> None:
        log.info("new leader elected", extra={"identity": holder})

    return Watching(
        observer=metrics.observer,
        tally=metrics,
        on_hint=metrics.hinted,
        on_move=metrics.moved,
        on_event=metrics.handled,
        on_holder=on_holder,
        on_request=metrics.requested,
    )


def service(options: ScheduleOptions, scheduler: Standalone, seen: Told, explains: Explain | None = None) -> FastAPI:
    """The service, not yet guarded; *explains* what is known of a pod in place of the scheduler itself."""
    seen.health.ready, seen.health.healthy = _checks(scheduler)
    runtime = f"python{sys.version.split()[0]}"
    build = Build(
        f"{BEHAVES_AS}.0",
        platform.python_implementation(),
        runtime,
        f"{sys.platform}/{platform.machine()}",
        options.features,
    )
    seen.metrics.tells(build, figures(scheduler))
    explainers = {name: engine() for name in options.scheduling.profiles}

    def page() -> bytes:
        if scheduler.elector is not None:
            seen.metrics.leads(leading=scheduler.elector.election.leading)
        return seen.metrics.page()

    return new_service(
        Service(
            health=seen.health,
            metrics=Page(page, seen.metrics.reset),
            checks=Page(seen.checks.page, seen.checks.reset),
            usage=lambda: usage(scheduler, leading=_leads(scheduler)),
            configuration=_configuration(options),
            flags=options.flags,
            facts=Facts(seen.started, runtime, __version__, BEHAVES_AS),
            explain=explains
            or (lambda namespace, name, as_json: explain(scheduler, explainers, namespace, name, as_json=as_json)),
            verbose=_verbosity(options),
        )
    )


def _leads(scheduler: Standalone) -> bool:
    return scheduler.elector is None or scheduler.elector.election.leading


def _checks(scheduler: Standalone) -> tuple[dict[str, Check], dict[str, Check]]:
    """Of readiness, and of health. Source: H043 to H045."""
    elector = scheduler.elector
    watchdog: dict[str, Check] = {}
    if elector is not None:

        def renewed() -> str:
            lock = elector.election.settings.resource_name
            healthy = elector.election.healthy(elector.clock.monotonic())
            return "" if healthy else f"failed election to renew leadership on lease {lock}"

        watchdog = {"leaderElection": renewed}

    def handlers() -> str:
        return "" if scheduler.watches.synced else "handlers are not fully synchronized"

    return {**watchdog, "sched-handler-sync": handlers, "informer-sync": scheduler.watches.stale}, watchdog


def _configuration(options: ScheduleOptions) -> dict[str, Any]:
    document, _ = read(options.scheduling.defaulted().encode(), "configuration")
    return dict(document) if isinstance(document, dict) else {}


def _verbosity(options: ScheduleOptions) -> Callable[[int], None] | None:
    """Changes how much is logged, where profiling is enabled. Source: H048."""
    if not options.scheduling.configuration.enable_profiling:
        return None
    return lambda v: configure(replace(options.logs, v=v))
