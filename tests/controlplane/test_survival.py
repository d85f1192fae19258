"""Schedulers that are killed, stopped and cut off, with the default times of leader election."""

import signal
import time

from tests.controlplane.api import Api
from tests.controlplane.candidates import create, extender, pods, settings, until_bound
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.recording import Recording
from tests.history import bound_by, out_of_turn, placements, wrong

FULL = 100
"""Pods of 800m that fill the nodes to the last: who knows less than all bindings puts one too many on some node."""

TAKEN_OVER = 17.0
"""Seconds: the lease's duration and one more try."""

RENEWED = 10.0
"""Seconds after the last renewal in which the leader may bind."""


def two(plane: ControlPlane) -> tuple[Process, Process]:
    """A leader and its standby, slow enough to be caught at work."""
    found = []
    for copy, state in (("one", "Successfully acquired lease"), ("two", "Attempting to acquire leader lease")):
        found.append(extender(plane, settings(plane, copy, election={}, rate=20), log=copy))
        found[-1].says(state)
    return found[0], found[1]


def took_over(recording: Recording, since: float) -> float:
    """Seconds from *since* until the second renewed the lease for the first time."""
    return next(renewal.at for renewal in recording.history().renewals if renewal.actor == "two") - since


def test_a_killed_scheduler_that_is_started_again_goes_on_where_it_was(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    """It knows nothing but what the API server tells (fault 22)."""
    first = extender(control_plane, settings(control_plane, "one", rate=50))
    create(api, pods("app", FULL, cpu="800m"))
    until_bound(api, 30)
    first.signal(signal.SIGKILL)
    extender(control_plane, settings(control_plane, "two"))
    until_bound(api, FULL)

    history = recording.history()
    assert wrong(history) == []
    assert {binding.actor for binding in history.bindings} == {"one", "two"}


def test_a_standby_takes_over_from_a_killed_leader_within_17_seconds(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    leader, _ = two(control_plane)
    create(api, pods("app", FULL, cpu="800m"))
    until_bound(api, 30)
    leader.signal(signal.SIGKILL)
    killed = time.time()
    until_bound(api, FULL)

    history = recording.history()
    assert wrong(history, lasts=RENEWED) == []
    assert len(placements(history)) == FULL
    assert took_over(recording, killed) <= TAKEN_OVER


def test_a_leader_stopped_for_30_seconds_binds_nothing_when_it_goes_on(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    leader, standby = two(control_plane)
    create(api, pods("app", FULL - 40, cpu="800m"))
    until_bound(api, 30)
    leader.signal(signal.SIGSTOP)
    stopped = time.time()
    until_bound(api, FULL - 40)
    assert took_over(recording, stopped) <= TAKEN_OVER
    create(api, pods("later", 20, cpu="800m"))
    standby.pause(stopped + 30.0 - time.time())
    create(api, pods("last", 20, cpu="800m"))
    leader.signal(signal.SIGCONT)
    assert leader.wait() == 1
    assert "Leaderelection lost" in leader.printed()
    until_bound(api, FULL)

    history = recording.history()
    assert wrong(history, lasts=RENEWED) == []
    assert {binding.actor for binding in history.bindings} == {"one", "two"}


def test_an_api_server_that_is_away_for_20_seconds_ends_the_leader_and_nobody_else(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    alone = extender(control_plane, settings(control_plane, name="alone", rate=20), log="alone")
    leader, standby = two(control_plane)
    create(api, [*pods("app", 100), *pods("alone", 100, scheduler="alone")])
    until_bound(api, 60)
    control_plane.stop_api_server()
    away = time.time()
    assert leader.wait() == 1
    assert time.time() - away <= 13.0
    standby.pause(away + 20.0 - time.time())
    control_plane.start_api_server()
    until_bound(api, 200)
    alone.pause(0.1)

    history = recording.history()
    assert wrong(history) == []
    assert len(placements(history)) == 200
    assert out_of_turn(bound_by(history, {"one", "two"}), lasts=RENEWED) == []
