"""Schedulers that are killed, stopped or disconnected, with the default times of leader election."""

import signal
import time

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.history_recorder import HistoryRecorder
from tests.controlplane.process import Process
from tests.controlplane.scheduler_processes import (
    create_all,
    make_configuration,
    make_pods,
    start_scheduler,
    wait_until_bound,
)
from tests.scheduling_history import filter_by_actors, find_assignments, find_bindings_without_lease, find_violations

POD_COUNT = 100
"""Pods of 800m that fill all nodes: a scheduler that misses a binding overcommits a node."""

TAKEOVER_SECONDS = 17.0
"""Seconds: the lease duration and one retry."""

LEASE_SECONDS = 10.0
"""Seconds after the last renewal in which the leader may bind."""


def start_leader_and_standby(plane: ControlPlane) -> tuple[Process, Process]:
    """Start a leader and a standby with low request rates, so that bindings take some time."""
    processes: list[Process] = []
    for copy, message in (("one", "Successfully acquired lease"), ("two", "Attempting to acquire leader lease")):
        processes.append(start_scheduler(plane, make_configuration(plane, copy, election={}, rate=20), log_name=copy))
        processes[-1].wait_for_output(message)
    return processes[0], processes[1]


def takeover_seconds(recorder: HistoryRecorder, since: float) -> float:
    """Return the seconds from *since* to the first renewal by the standby."""
    return next(renewal.time for renewal in recorder.history().renewals if renewal.actor == "two") - since


def test_a_restarted_scheduler_binds_the_remaining_pods(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    """Its only state is that of the API server."""
    first = start_scheduler(control_plane, make_configuration(control_plane, "one", rate=50))
    create_all(api, make_pods("app", POD_COUNT - 10, cpu="800m"))
    wait_until_bound(api, 30)
    first.signal(signal.SIGKILL)
    create_all(api, make_pods("later", 10, cpu="800m"))
    start_scheduler(control_plane, make_configuration(control_plane, "two"))
    wait_until_bound(api, POD_COUNT)

    history = recorder.history()
    assert find_violations(history) == []
    assert {binding.actor for binding in history.bindings} == {"one", "two"}


def test_a_standby_takes_over_from_a_killed_leader_within_17_seconds(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    leader, _ = start_leader_and_standby(control_plane)
    create_all(api, make_pods("app", POD_COUNT - 10, cpu="800m"))
    wait_until_bound(api, 30)
    leader.signal(signal.SIGKILL)
    killed_at = time.time()
    create_all(api, make_pods("later", 10, cpu="800m"))
    wait_until_bound(api, POD_COUNT)

    history = recorder.history()
    assert find_violations(history, lease_seconds=LEASE_SECONDS) == []
    assert len(find_assignments(history)) == POD_COUNT
    assert takeover_seconds(recorder, killed_at) <= TAKEOVER_SECONDS


def test_a_leader_stopped_for_30_seconds_binds_nothing_when_it_continues(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    leader, standby = start_leader_and_standby(control_plane)
    create_all(api, make_pods("app", POD_COUNT - 40, cpu="800m"))
    wait_until_bound(api, 30)
    leader.signal(signal.SIGSTOP)
    stopped_at = time.time()
    create_all(api, make_pods("later", 20, cpu="800m"))
    wait_until_bound(api, POD_COUNT - 20)
    assert takeover_seconds(recorder, stopped_at) <= TAKEOVER_SECONDS
    standby.pause(stopped_at + 30.0 - time.time())
    create_all(api, make_pods("last", 20, cpu="800m"))
    leader.signal(signal.SIGCONT)
    assert leader.wait() == 1
    assert "Leaderelection lost" in leader.output()
    wait_until_bound(api, POD_COUNT)

    history = recorder.history()
    assert find_violations(history, lease_seconds=LEASE_SECONDS) == []
    assert {binding.actor for binding in history.bindings} == {"one", "two"}


def test_an_api_server_downtime_of_20_seconds_ends_only_the_leader(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    other = start_scheduler(control_plane, make_configuration(control_plane, name="other", rate=20), log_name="other")
    leader, standby = start_leader_and_standby(control_plane)
    create_all(api, [*make_pods("app", 100), *make_pods("other", 100, scheduler="other")])
    wait_until_bound(api, 60)
    control_plane.stop_api_server()
    down_at = time.time()
    assert leader.wait() == 1
    assert time.time() - down_at <= 13.0
    standby.pause(down_at + 20.0 - time.time())
    control_plane.start_api_server()
    wait_until_bound(api, 200)
    other.pause(0.1)

    history = recorder.history()
    assert find_violations(history) == []
    assert len(find_assignments(history)) == 200
    assert find_bindings_without_lease(filter_by_actors(history, {"one", "two"}), lease_seconds=LEASE_SECONDS) == []
