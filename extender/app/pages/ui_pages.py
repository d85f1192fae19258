"""The pages under `/ui/` of `extender schedule` and `extender serve`: they read the process's own cache."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fastapi import FastAPI
from starlette.types import ASGIApp

from extender.app.informers import Informers
from extender.app.pages.watch_problems import list_unreadable_kinds, list_watch_problems
from extender.app.pages.what_if_answers import make_answers
from extender.app.serve_backend import ServeBackend
from extender.app.standalone import StandaloneScheduler
from extender.app.wiring import SchedulerSetup, make_runtime
from extender.basics.clock import Clock, SystemClock
from extender.framework.profiles import Profile
from extender.scheduler.attempt_history import PluginTimer
from extender.ui.live_feed import MAX_SHARE, ChangeFeed
from extender.ui.mounted_pages import HostCheckMiddleware, MountedPages, ResponseHeadersMiddleware
from extender.ui.page_source import ClusterAccess, PageSource
from extender.ui.pages import make_app
from extender.ui.scheduler_pages import SchedulerPages, SchedulerView

_SHARE_WITHOUT_DECISIONS: Final = 0.5
"""The share of the time in which pages may be read again, in a process that makes no decisions."""


def make_scheduler_pages(scheduler: StandaloneScheduler) -> SchedulerPages:
    """Return the pages Queue and Decisions of a scheduler."""
    informers, context = scheduler.informers, scheduler.context
    plugin_timer = context.attempt_history.plugin_timer = PluginTimer()
    for runtime in scheduler.runtimes.values():
        runtime.runner.add_observer(plugin_timer)

    def get_cache_age() -> float:
        return max(map(informers.get_seconds_since_contact, informers.reflectors))

    return SchedulerPages(SchedulerView(scheduler.queue, context.attempt_history, get_cache_age, context.clock))


def make_live_pages(
    source: PageSource,
    get_setup: Callable[[], SchedulerSetup],
    other_scheduler_names: Sequence[str] = (),
    scheduler: StandaloneScheduler | None = None,
    *,
    delays_decisions: bool = True,
) -> tuple[FastAPI, Callable[[], None]]:
    """Return the application with the pages, and the function that ends its streams before the server stops.

    Args:
        source: the cluster.
        get_setup: returns the configuration in force.
        other_scheduler_names: schedulers whose pods the first profile schedules.
        scheduler: the scheduler of this process; None without one.
        delays_decisions: whether the process schedules pods or answers the verbs.
    """
    scheduler_pages = None if scheduler is None else make_scheduler_pages(scheduler)
    answers = make_answers(source, get_setup, other_scheduler_names, delays_decisions=delays_decisions)
    changes = ChangeFeed(source, MAX_SHARE if delays_decisions else _SHARE_WITHOUT_DECISIONS)

    def close() -> None:
        changes.close()
        if scheduler_pages is not None:
            scheduler_pages.close()

    return make_app(source, scheduler_pages, answers, changes), close


def _make_access(informers: Informers, clock: Clock) -> ClusterAccess:
    """Return what the watches of this process cannot read."""
    return ClusterAccess(
        list_problems=lambda: list_watch_problems(informers, clock),
        get_unreadable_kinds=lambda: list_unreadable_kinds(informers.reflectors),
    )


def make_pages_of_scheduler(scheduler: StandaloneScheduler, title: str) -> tuple[FastAPI, Callable[[], None]]:
    """Return the pages of a scheduler as `make_live_pages` does; *title* is the name of the cluster."""
    profiles, informers = scheduler.context.profiles, scheduler.informers
    access = _make_access(informers, scheduler.context.clock)
    source = PageSource(title, scheduler.cache, lambda: profiles, make_runtime, time.monotonic, access)
    return make_live_pages(source, lambda: scheduler.setup, scheduler=scheduler)


def mount_scheduler_pages(app: ASGIApp, scheduler: StandaloneScheduler, title: str) -> MountedPages:
    """Return *app* with the pages of a scheduler; *title* is the name of the cluster."""
    pages, close = make_pages_of_scheduler(scheduler, title)
    return MountedPages(app, ResponseHeadersMiddleware(pages), close)


def mount_extender_pages(
    backend: ServeBackend,
    get_setup: Callable[[], SchedulerSetup],
    title: str,
    other_scheduler_names: Sequence[str] = (),
    *,
    authenticated: bool,
) -> MountedPages:
    """Return the application of *backend* with the pages.

    Args:
        backend: the verbs, whose profiles may be replaced later, and the scheduler of this process.
        get_setup: returns the configuration in force.
        title: the name of the cluster.
        other_scheduler_names: schedulers whose pods the default profile explains.
        authenticated: whether callers are authenticated. If not, the Host header must name loopback.
    """

    def get_profiles() -> Mapping[str, Profile]:
        verbs = backend.extender_service.verbs
        return {**dict.fromkeys(other_scheduler_names, verbs.default_profile), **verbs.profiles}

    access = None if backend.informers is None else _make_access(backend.informers, SystemClock())
    source = PageSource(title, backend.extender_service.verbs.cache, get_profiles, make_runtime, time.monotonic, access)
    pages, close = make_live_pages(source, get_setup, other_scheduler_names, backend.scheduler)
    checked_pages = pages if authenticated else HostCheckMiddleware(pages)
    return MountedPages(backend.app, ResponseHeadersMiddleware(checked_pages), close)
