"""Leaders that lose or release their lease: when they stop binding, how they end, and how the standby takes over."""

import json
import signal
import time

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.history_recorder import LEASE_PATH, HistoryRecorder
from tests.controlplane.process import Process
from tests.controlplane.scheduler_processes import (
    FAST_ELECTION,
    ApiServerLink,
    create_all,
    make_configuration,
    make_pods,
    start_scheduler,
    wait_until_bound,
)
from tests.scheduling_history import find_violations

POD_COUNT = 100
"""Pods of 800m that fill all nodes: a scheduler that misses a binding overcommits a node."""

LEASE_SECONDS = 3.0
"""Seconds after the last renewal in which the leader may bind."""


def start_candidate(plane: ControlPlane, copy: str, server: str = "") -> Process:
    """Start a candidate with a low request rate, so that bindings take some time."""
    return start_scheduler(
        plane, make_configuration(plane, copy, election=FAST_ELECTION, rate=20, server=server), log_name=copy
    )


def start_leader_and_standby(plane: ControlPlane, server: str = "") -> tuple[Process, Process]:
    """Start a leader, which reaches the API server at *server*, and a standby that has read the leader's lease."""
    leader = start_candidate(plane, "one", server)
    leader.wait_for_output("Successfully acquired lease")
    standby = start_candidate(plane, "two")
    standby.wait_for_output("new leader elected")
    return leader, standby


def list_lease_events(api: ApiClient, holder: str) -> list[str]:
    """Return the messages of the lease events about *holder*, oldest first."""
    events = json.loads(api.call("GET", "/api/v1/namespaces/kube-system/events?fieldSelector=reason%3DLeaderElection"))
    lease_events = [event for event in events["items"] if event["involvedObject"]["kind"] == "Lease"]
    messages = (str(event["message"]) for event in sorted(lease_events, key=lambda event: str(event["eventTime"])))
    return [message for message in messages if message.startswith(holder)]


def test_a_disconnected_leader_binds_nothing_after_its_deadline_and_the_standby_takes_over(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    link = ApiServerLink(control_plane)
    leader, _ = start_leader_and_standby(control_plane, link.url)
    create_all(api, make_pods("app", POD_COUNT - 40, cpu="800m"))
    wait_until_bound(api, 30)
    link.stall()
    stalled_at = time.time()
    create_all(api, make_pods("late", 40, cpu="800m"))  # the leader may have bound all other pods
    assert leader.wait() == 1
    assert time.time() - stalled_at <= 5.0
    assert "the lease could not be renewed within 3 s" in leader.output()
    link.restore()
    wait_until_bound(api, POD_COUNT)

    history = recorder.history()
    assert find_violations(history, lease_seconds=LEASE_SECONDS) == []
    assert {binding.actor for binding in history.bindings} == {"one", "two"}
    assert next(renewal.time for renewal in history.renewals if renewal.actor == "two") - stalled_at <= 6.0


def test_a_terminated_leader_finishes_its_bindings_and_releases_the_lease(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    leader, _ = start_leader_and_standby(control_plane)
    create_all(api, make_pods("app", POD_COUNT - 40, cpu="800m"))
    wait_until_bound(api, 30)
    holder = json.loads(api.call("GET", LEASE_PATH))["spec"]["holderIdentity"]
    leader.signal(signal.SIGTERM)
    assert leader.wait() == 0
    ended_at = time.time()
    assert list_lease_events(api, holder) == [f"{holder} became leader", f"{holder} stopped leading"]
    create_all(api, make_pods("late", 40, cpu="800m"))  # the leader may have started the bindings of all other pods
    wait_until_bound(api, POD_COUNT)

    history = recorder.history()
    assert find_violations(history, lease_seconds=LEASE_SECONDS) == []
    assert [renewal.holder for renewal in history.renewals if renewal.actor == "one"][-1] == ""
    assert next(renewal.time for renewal in history.renewals if renewal.actor == "two") - ended_at <= 1.0


def test_a_leader_ends_when_the_lease_has_another_holder(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    leader, _ = start_leader_and_standby(control_plane)
    lease = json.loads(api.call("GET", LEASE_PATH))
    lease["spec"] |= {"holderIdentity": "other", "leaseDurationSeconds": 2}
    api.call("PUT", LEASE_PATH, lease)
    assert leader.wait() == 1
    assert "the lease is held by other" in leader.output()
    create_all(api, make_pods("app", 20))
    wait_until_bound(api, 20)

    history = recorder.history()
    assert find_violations(history, lease_seconds=LEASE_SECONDS) == []
    assert {binding.actor for binding in history.bindings} == {"two"}


def test_a_deleted_lease_is_recreated_by_the_leader(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    """The standby must not create it: the leader may bind until the lease would have expired."""
    _, standby = start_leader_and_standby(control_plane)
    api.call("DELETE", LEASE_PATH)
    deleted_at = time.time()
    while recorder.history().renewals[-1].time < deleted_at:
        standby.pause(0.05)
    create_all(api, make_pods("app", 20))
    wait_until_bound(api, 20)

    history = recorder.history()
    assert find_violations(history, lease_seconds=LEASE_SECONDS) == []
    assert {binding.actor for binding in history.bindings} == {"one"}
