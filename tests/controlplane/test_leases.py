"""Leaders that lose their lease, or give it up: when they stop binding, how they end, who goes on."""

import json
import signal
import time

from tests.controlplane.api import Api
from tests.controlplane.candidates import BRISK, Line, create, extender, pods, settings, until_bound
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.recording import LEASE, Recording
from tests.history import wrong

FULL = 100
"""Pods of 800m that fill the nodes to the last: who knows less than all bindings puts one too many on some node."""

RENEWED = 3.0
"""Seconds after the last renewal in which the leader may bind."""


def candidate(plane: ControlPlane, copy: str, server: str = "") -> Process:
    """One of the two, slow enough to be caught at work."""
    return extender(plane, settings(plane, copy, election=BRISK, rate=20, server=server), log=copy)


def leader_and_standby(plane: ControlPlane, server: str = "") -> tuple[Process, Process]:
    """Both at work; the leader reaches the API server at *server*."""
    leader = candidate(plane, "one", server)
    leader.says("Successfully acquired lease")
    standby = candidate(plane, "two")
    standby.says("Attempting to acquire leader lease")
    return leader, standby


def told_of_leases(api: Api, holder: str) -> list[str]:
    """What the events on leases say of *holder*, in the form in which kube-scheduler writes them, oldest first."""
    events = json.loads(api.call("GET", "/api/v1/namespaces/kube-system/events?fieldSelector=reason%3DLeaderElection"))
    about = [event for event in events["items"] if event["involvedObject"]["kind"] == "Lease"]
    said = (str(event["message"]) for event in sorted(about, key=lambda event: str(event["eventTime"])))
    return [message for message in said if message.startswith(holder)]


def test_a_leader_cut_off_binds_nothing_after_its_deadline_and_ends_and_the_standby_goes_on(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    line = Line(control_plane)
    leader, _ = leader_and_standby(control_plane, line.url)
    create(api, pods("app", FULL, cpu="800m"))
    until_bound(api, 30)
    line.cut()
    cut = time.time()
    assert leader.wait() == 1
    assert time.time() - cut <= 5.0
    assert "the lease could not be renewed within 3 s" in leader.printed()
    line.mend()
    until_bound(api, FULL)

    history = recording.history()
    assert wrong(history, lasts=RENEWED) == []
    assert {binding.actor for binding in history.bindings} == {"one", "two"}
    assert next(each.at for each in history.renewals if each.actor == "two") - cut <= 6.0


def test_a_leader_told_to_end_gives_the_lease_away_when_its_bindings_are_done(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    leader, _ = leader_and_standby(control_plane)
    create(api, pods("app", FULL - 40, cpu="800m"))
    until_bound(api, 30)
    holder = json.loads(api.call("GET", LEASE))["spec"]["holderIdentity"]
    leader.signal(signal.SIGTERM)
    assert leader.wait() == 0
    ended = time.time()
    assert told_of_leases(api, holder) == [f"{holder} became leader", f"{holder} stopped leading"]
    create(api, pods("late", 40, cpu="800m"))  # of the others the leader may have begun the bindings of all
    until_bound(api, FULL)

    history = recording.history()
    assert wrong(history, lasts=RENEWED) == []
    assert [each.holder for each in history.renewals if each.actor == "one"][-1] == ""
    assert next(each.at for each in history.renewals if each.actor == "two") - ended <= 1.0


def test_a_leader_whose_lease_is_given_to_another_ends(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    """Fault 20."""
    leader, _ = leader_and_standby(control_plane)
    lease = json.loads(api.call("GET", LEASE))
    lease["spec"] |= {"holderIdentity": "somebody", "leaseDurationSeconds": 2}
    api.call("PUT", LEASE, lease)
    assert leader.wait() == 1
    assert "the lease is held by somebody" in leader.printed()
    create(api, pods("app", 20))
    until_bound(api, 20)

    history = recording.history()
    assert wrong(history, lasts=RENEWED) == []
    assert {binding.actor for binding in history.bindings} == {"two"}


def test_a_lease_that_is_deleted_is_made_again_by_the_leader(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    """The standby must not: the leader may act on it until it would have run out (fault 20)."""
    _, standby = leader_and_standby(control_plane)
    api.call("DELETE", LEASE)
    deleted = time.time()
    while recording.history().renewals[-1].at < deleted:
        standby.pause(0.05)
    create(api, pods("app", 20))
    until_bound(api, 20)

    history = recording.history()
    assert wrong(history, lasts=RENEWED) == []
    assert {binding.actor for binding in history.bindings} == {"one"}
