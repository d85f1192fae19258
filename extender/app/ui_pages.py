"""The pages under `/ui/` of `extender schedule` and `extender serve`: they read the process's own cache."""

import time
from collections.abc import Callable, Mapping, Sequence

from extender.app.serve_backend import ServeBackend
from extender.app.standalone import StandaloneScheduler
from extender.app.what_if_answers import make_answers
from extender.app.wiring import SchedulerSetup, make_runtime
from extender.framework.profiles import Profile
from extender.ui.live_document import SchedulerView
from extender.ui.live_source import LiveSource
from extender.ui.mounted_pages import MountedPages, do_nothing
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
    answers = make_answers(source, lambda: scheduler.setup, is_live=True)
    pages = ResponseHeadersMiddleware(make_app(source, scheduler_pages, answers), hosts=None)
    return MountedPages(app, pages, scheduler_pages.close)


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

    source = LiveSource(title, backend.extender_service.verbs.cache, get_profiles, make_runtime, time.monotonic)
    answers = make_answers(source, get_setup, other_scheduler_names, is_live=True)
    scheduler_pages = None if backend.scheduler is None else make_scheduler_pages(backend.scheduler)
    pages = ResponseHeadersMiddleware(
        make_app(source, scheduler_pages, answers), None if authenticated else LOOPBACK_HOSTS
    )
    return MountedPages(backend.app, pages, do_nothing if scheduler_pages is None else scheduler_pages.close)
