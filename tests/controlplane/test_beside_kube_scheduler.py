"""Our scheduler and kube-scheduler on the same nodes: with two scheduler names, and with one lease."""

import signal

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.history_recorder import HistoryRecorder
from tests.controlplane.scheduler_processes import (
    FAST_ELECTION,
    create_all,
    make_configuration,
    make_pods,
    start_scheduler,
    wait_until_bound,
)
from tests.scheduling_history import find_assignments, find_violations


def test_two_schedulers_with_different_names_overcommit_no_node(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    control_plane.start_kube_scheduler(make_configuration(control_plane, "one"))
    start_scheduler(control_plane, make_configuration(control_plane, "two", name="ours"))
    for upstream, ours in zip(make_pods("kube", 200), make_pods("ours", 200, scheduler="ours"), strict=True):
        api.create(upstream)
        api.create(ours)

    wait_until_bound(api, 400)

    history = recorder.history()
    assert find_violations(history) == []
    assert len(find_assignments(history)) == 400
    senders = {binding.uid: binding.actor for binding in history.bindings}
    by = {
        placement.key.partition("/")[2].partition("-")[0]: senders[placement.uid]
        for placement in find_assignments(history)
    }
    assert by == {"kube": "one", "ours": "two"}


def test_with_a_shared_lease_only_the_leader_binds_and_the_standby_takes_over(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    upstream = control_plane.start_kube_scheduler(
        make_configuration(control_plane, "one", election=FAST_ELECTION, rate=20)
    )
    upstream.wait_for_output("Successfully acquired lease")
    ours = start_scheduler(control_plane, make_configuration(control_plane, "two", election=FAST_ELECTION, rate=20))
    ours.wait_for_output("Attempting to acquire leader lease")
    create_all(api, make_pods("first", 60, cpu="333m"))
    wait_until_bound(api, 40)
    upstream.signal(signal.SIGKILL)
    create_all(api, make_pods("second", 60, cpu="333m"))
    wait_until_bound(api, 120)

    again = control_plane.start_kube_scheduler(make_configuration(control_plane, "", election=FAST_ELECTION, rate=20))
    again.wait_for_output("Attempting to acquire leader lease")
    create_all(api, make_pods("third", 60, cpu="333m"))
    wait_until_bound(api, 160)
    ours.signal(signal.SIGKILL)
    create_all(api, make_pods("fourth", 60, cpu="333m"))
    wait_until_bound(api, 240)

    history = recorder.history()
    assert find_violations(history, lease_seconds=3.0) == []
    assert len(find_assignments(history)) == 240
    assert list(dict.fromkeys(binding.actor for binding in history.bindings)) == ["one", "two", "system:kube-scheduler"]
