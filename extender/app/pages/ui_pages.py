"""The pages under `/ui/` of `extender schedule` and `extender serve`: they read the process's own cache.

Lines on the pages name missing rights and lost connections. The page What if has copies of the cluster, and profiles
for other configurations.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fastapi import FastAPI
from starlette.types import ASGIApp

from extender.api.kinds.meta import KubernetesObject
from extender.app.informers import Informers
from extender.app.serve_backend import ServeBackend
from extender.app.standalone import StandaloneScheduler
from extender.app.wiring import SchedulerSetup, build_setup, load_setup, make_runtime
from extender.basics.clock import Clock, SystemClock
from extender.client.reflector import Reflector
from extender.framework.profiles import Profile
from extender.scheduler.attempt_history import PluginTimer
from extender.ui.live_feed import MAX_SHARE, ChangeFeed
from extender.ui.mounted_pages import HostCheckMiddleware, MountedPages, ResponseHeadersMiddleware
from extender.ui.page_source import ClusterAccess, PageSource
from extender.ui.pages import make_app
from extender.ui.scheduler_pages import SchedulerPages, SchedulerView
from extender.ui.waiting_view import format_utc
from extender.ui.what_if.answers import WhatIfAnswers
from extender.ui.what_if.question import CONFIG_FILE

_PAUSE_FACTOR: Final = 3.0
"""A question takes at most a quarter of the time of the event loop, which also decides."""

_MAX_AGE_SECONDS: Final = 30.0
"""How long an answer about a live cluster is used again: the page and its maps are two requests."""


def make_answers(
    source: PageSource,
    get_setup: Callable[[], SchedulerSetup],
    other_scheduler_names: Sequence[str] = (),
    *,
    delays_decisions: bool = False,
) -> WhatIfAnswers:
    """Return the answers to the questions of the page What if.

    Args:
        source: the cluster.
        get_setup: returns the configuration in force.
        other_scheduler_names: schedulers whose pods the first profile schedules.
        delays_decisions: whether decisions run in the same event loop, so that a question pauses after each slice.
    """

    def make_profiles(configuration: str) -> Mapping[str, Profile]:
        # Plugins keep state about reserved pods, so the scheduler's own plugins are not used.
        setup = get_setup()
        new_setup = (
            load_setup(configuration.encode(), CONFIG_FILE, setup.gates)
            if configuration
            else build_setup(setup.configuration, setup.gates)
        )
        return {**dict.fromkeys(other_scheduler_names, new_setup.first_profile), **new_setup.profiles}

    return WhatIfAnswers(
        source.fork_cache,
        make_profiles,
        make_runtime,
        pause_factor=_PAUSE_FACTOR if delays_decisions else 0.0,
        max_age_seconds=_MAX_AGE_SECONDS if source.is_live else float("inf"),
    )


_MAX_NAMED_KINDS: Final = 4
_FIRST_KINDS: Final = ("nodes", "pods")
_REQUEST: Final = re.compile(r"^GET /\S+: ")
"""The request in the text of a failure, which differs for each kind: `GET /api/v1/pods: no response in time`."""


def list_watch_problems(informers: Informers, clock: Clock) -> list[str]:
    """Return one line for each kind that may not be read or watched, and one for each reason of lost watches.

    The first line names the kinds that are being read for the first time, so that the pages are incomplete.

    A kind that the API server does not serve is no problem.
    """
    lost = dict[str, list[Reflector[Any]]]()
    unread = [each for each in informers.reflectors.values() if not each.synced.is_set() and not each.last_error]
    lines = [f"not complete yet: {_name_kinds(unread)} are being read"] if unread else []
    for reflector in informers.reflectors.values():
        plural, error = _get_plural(reflector), reflector.last_error
        if not error or _is_not_served(reflector):
            continue
        failure = error.removeprefix(f"{plural}: ")
        if not reflector.synced.is_set():
            lines.append(f"not readable: {plural}; {_describe_failure(reflector, failure)}")
        elif reflector.forbidden:
            time = _format_last_contact(reflector, clock)
            lines.append(f"{plural} are shown as of {time}; {_describe_failure(reflector, failure)}")
        else:
            lost.setdefault(_REQUEST.sub("", failure), []).append(reflector)
    for failure, reflectors in lost.items():
        oldest = min(reflectors, key=lambda reflector: reflector.last_contact or 0.0)
        time, kinds = _format_last_contact(oldest, clock), _name_kinds(reflectors)
        lines.append(f"the watch of {kinds} is lost, shown as of {time}: {failure}")
    return lines


def find_stale_time(informers: Informers, clock: Clock) -> datetime | None:
    """Return the oldest last contact, in UTC, of the kinds whose watches are lost; None while there are none.

    Kinds that have never been read have no age: they are missing.
    """
    contacts = [
        _get_last_contact(reflector, clock)
        for reflector in informers.reflectors.values()
        if reflector.last_error and reflector.synced.is_set() and not _is_not_served(reflector)
    ]
    return min(contacts, default=None)


def _is_not_served(reflector: Reflector[Any]) -> bool:
    return reflector.is_optional and reflector.synced.is_set() and not reflector.counts.lists


def list_unreadable_kinds(reflectors: Mapping[type[KubernetesObject], Reflector[Any]]) -> dict[str, str]:
    """Return the kinds that have not been read, with the reason: the missing right, or the last error.

    Among them are kinds that the API server does not serve, if a pod that refers to them waits for that.
    """
    reasons = dict[str, str]()
    for kind, reflector in reflectors.items():
        if not reflector.synced.is_set():
            error = reflector.last_error.removeprefix(f"{_get_plural(reflector)}: ")
            reasons[kind.__name__] = _describe_failure(reflector, error)
        elif not reflector.counts.lists and reflector.missing_kind_hint:
            reasons[kind.__name__] = reflector.missing_kind_hint
    return reasons


def _describe_failure(reflector: Reflector[Any], failure: str) -> str:
    if reflector.forbidden:
        verbs = 'verb "watch"' if reflector.synced.is_set() else 'verbs "list" and "watch"'
        return f"grant the {verbs} on {_get_plural(reflector)} ({failure})"
    return failure or "not read yet"


def _get_plural(reflector: Reflector[Any]) -> str:
    return reflector.list_watch.endpoint.plural


def _name_kinds(reflectors: list[Reflector[Any]]) -> str:
    """Return the plurals of the kinds, nodes and pods first, since every page depends on them."""
    plurals = sorted(map(_get_plural, reflectors), key=lambda plural: (plural not in _FIRST_KINDS, plural))
    if len(plurals) <= _MAX_NAMED_KINDS:
        return ", ".join(plurals)
    return f"{', '.join(plurals[:_MAX_NAMED_KINDS])} and {len(plurals) - _MAX_NAMED_KINDS} other kinds"


def _get_last_contact(reflector: Reflector[Any], clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now(), UTC) - timedelta(seconds=reflector.compute_staleness(clock.monotonic()))


def _format_last_contact(reflector: Reflector[Any], clock: Clock) -> str:
    """Return the time of the last contact, with the date if that was another day."""
    time, now = _get_last_contact(reflector, clock), datetime.fromtimestamp(clock.now(), UTC)
    return f"{time:%H:%M:%S} UTC" if time.date() == now.date() else format_utc(time)


_SHARE_WITHOUT_DECISIONS: Final = 0.5
"""The share of the time in which pages may be read again, in a process that makes no decisions."""


def make_scheduler_pages(scheduler: StandaloneScheduler, source: PageSource) -> SchedulerPages:
    """Return the pages Queue and Decisions of a scheduler, with the problems of *source* above them."""
    informers, context = scheduler.informers, scheduler.context
    plugin_timer = context.attempt_history.plugin_timer = PluginTimer()
    for runtime in scheduler.runtimes.values():
        runtime.runner.add_observer(plugin_timer)

    def get_cache_age() -> float:
        return max(map(informers.get_seconds_since_contact, informers.reflectors))

    history, clock = context.attempt_history, context.clock
    view = SchedulerView(scheduler.queue, history, get_cache_age, clock, source.list_problems, source.get_stale_time)
    return SchedulerPages(view)


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
    scheduler_pages = None if scheduler is None else make_scheduler_pages(scheduler, source)
    answers = make_answers(source, get_setup, other_scheduler_names, delays_decisions=delays_decisions)
    changes = ChangeFeed(source, MAX_SHARE if delays_decisions else _SHARE_WITHOUT_DECISIONS)

    def close() -> None:
        changes.close()
        if scheduler_pages is not None:
            scheduler_pages.close()

    return make_app(source, scheduler_pages, answers, changes), close


def make_access(informers: Informers, clock: Clock, command_options: str = "") -> ClusterAccess:
    """Return what the watches of this process cannot read; *command_options* are those of `ClusterAccess`."""
    return ClusterAccess(
        command_options,
        list_problems=lambda: list_watch_problems(informers, clock),
        get_unreadable_kinds=lambda: list_unreadable_kinds(informers.reflectors),
        get_stale_time=lambda: find_stale_time(informers, clock),
    )


def make_pages_of_scheduler(scheduler: StandaloneScheduler, title: str) -> tuple[FastAPI, Callable[[], None]]:
    """Return the pages of a scheduler as `make_live_pages` does; *title* is the name of the cluster."""
    profiles, informers = scheduler.context.profiles, scheduler.informers
    access = make_access(informers, scheduler.context.clock)
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

    access = None if backend.informers is None else make_access(backend.informers, SystemClock())
    source = PageSource(title, backend.extender_service.verbs.cache, get_profiles, make_runtime, time.monotonic, access)
    pages, close = make_live_pages(source, get_setup, other_scheduler_names, backend.scheduler)
    checked_pages = pages if authenticated else HostCheckMiddleware(pages)
    return MountedPages(backend.app, ResponseHeadersMiddleware(checked_pages), close)
