"""Our scheduler and kube-scheduler on the same nodes: under two names, and in turn under one lease."""

import signal

from tests.controlplane.api import Api
from tests.controlplane.candidates import BRISK, create, extender, pods, settings, until_bound
from tests.controlplane.plane import ControlPlane
from tests.controlplane.recording import Recording
from tests.history import placements, wrong


def test_beside_kube_scheduler_under_another_name_both_finish_and_no_node_is_overfull(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    control_plane.scheduler(settings(control_plane, "one"))
    extender(control_plane, settings(control_plane, "two", name="ours"))
    for theirs, ours in zip(pods("theirs", 200), pods("ours", 200, scheduler="ours"), strict=True):
        api.create(theirs)
        api.create(ours)

    until_bound(api, 400)

    history = recording.history()
    assert wrong(history) == []
    assert len(placements(history)) == 400
    senders = {binding.uid: binding.actor for binding in history.bindings}
    by = {
        placement.key.partition("/")[2].partition("-")[0]: senders[placement.uid] for placement in placements(history)
    }
    assert by == {"theirs": "one", "ours": "two"}


def test_under_kube_scheduler_s_own_lease_only_the_leader_binds_and_the_other_takes_over(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    theirs = control_plane.scheduler(settings(control_plane, "one", election=BRISK, rate=20))
    theirs.says("Successfully acquired lease")
    ours = extender(control_plane, settings(control_plane, "two", election=BRISK, rate=20))
    ours.says("Attempting to acquire leader lease")
    create(api, pods("first", 60, cpu="333m"))
    until_bound(api, 40)
    theirs.signal(signal.SIGKILL)
    create(api, pods("second", 60, cpu="333m"))
    until_bound(api, 120)

    again = control_plane.scheduler(settings(control_plane, "", election=BRISK, rate=20))
    again.says("Attempting to acquire leader lease")
    create(api, pods("third", 60, cpu="333m"))
    until_bound(api, 160)
    ours.signal(signal.SIGKILL)
    create(api, pods("fourth", 60, cpu="333m"))
    until_bound(api, 240)

    history = recording.history()
    assert wrong(history, lasts=3.0) == []
    assert len(placements(history)) == 240
    assert list(dict.fromkeys(binding.actor for binding in history.bindings)) == ["one", "two", "system:kube-scheduler"]
