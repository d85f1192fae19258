"""The answers of the page What if: copies of the cluster, and profiles for other configurations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from extender.app.wiring import SchedulerSetup, build_setup, load_setup, make_runtime
from extender.framework.profiles import Profile
from extender.ui.page_source import PageSource
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
