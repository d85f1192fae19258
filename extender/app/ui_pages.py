"""The pages under `/ui/` of `extender schedule` and `extender serve`: they read the process's own cache."""

import time
from collections.abc import Mapping, Sequence

from extender.app.standalone import StandaloneScheduler
from extender.app.wiring import make_runtime
from extender.extender_api.routes import ExtenderService
from extender.framework.profiles import Profile
from extender.ui.live_document import SchedulerView
from extender.ui.live_source import LiveSource
from extender.ui.mounted_pages import MountedPages
from extender.ui.pages import make_app
from extender.ui.response_headers import LOOPBACK_HOSTS, AsgiApp, ResponseHeadersMiddleware
from extender.ui.scheduler_pages import SchedulerPages


def make_scheduler_pages(scheduler: StandaloneScheduler) -> SchedulerPages:
    """Return the pages Queue and Decisions of a scheduler."""
    informers, context = scheduler.informers, scheduler.context

    def get_cache_age() -> float:
        return max(map(informers.get_seconds_since_contact, informers.reflectors))

    return SchedulerPages(SchedulerView(scheduler.queue, context.attempt_history, get_cache_age, context.clock))


def make_scheduler_source(scheduler: StandaloneScheduler, title: str) -> LiveSource:
    """Return the cluster of a scheduler for the pages; *title* is its name."""
    profiles = scheduler.context.profiles
    return LiveSource(title, scheduler.cache, lambda: profiles, make_runtime, time.monotonic)


def mount_scheduler_pages(app: AsgiApp, scheduler: StandaloneScheduler, title: str) -> MountedPages:
    """Return *app* with the pages of a scheduler; *title* is the name of the cluster."""
    source, scheduler_pages = make_scheduler_source(scheduler, title), make_scheduler_pages(scheduler)
    pages = ResponseHeadersMiddleware(make_app(source, scheduler_pages), hosts=None)
    return MountedPages(app, pages, scheduler_pages.close)


def mount_extender_pages(
    app: AsgiApp,
    extender_service: ExtenderService,
    title: str,
    other_scheduler_names: Sequence[str] = (),
    *,
    authenticated: bool,
    scheduler: StandaloneScheduler | None = None,
) -> MountedPages:
    """Return *app* with the pages of the extender verbs.

    Args:
        app: the application with the verbs.
        extender_service: the verbs, whose profiles may be replaced later.
        title: the name of the cluster.
        other_scheduler_names: schedulers whose pods the default profile explains.
        authenticated: whether callers are authenticated. If not, the Host header must name loopback.
        scheduler: the scheduler of this process; None without one.
    """

    def get_profiles() -> Mapping[str, Profile]:
        verbs = extender_service.verbs
        return {**dict.fromkeys(other_scheduler_names, verbs.default_profile), **verbs.profiles}

    source = LiveSource(title, extender_service.verbs.cache, get_profiles, make_runtime, time.monotonic)
    hosts = None if authenticated else LOOPBACK_HOSTS
    if scheduler is None:
        return MountedPages(app, ResponseHeadersMiddleware(make_app(source), hosts))
    scheduler_pages = make_scheduler_pages(scheduler)
    return MountedPages(app, ResponseHeadersMiddleware(make_app(source, scheduler_pages), hosts), scheduler_pages.close)
