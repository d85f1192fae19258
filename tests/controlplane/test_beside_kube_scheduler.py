"""Our scheduler and kube-scheduler on the same nodes: with two scheduler names, with one lease, and in turn."""

import signal
from collections.abc import Callable

import pytest

from tests.controlplane.api_client import ApiClient, JsonObject, find_condition
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.extender_process import is_assigned
from tests.controlplane.history_recorder import HistoryRecorder
from tests.controlplane.scheduler_processes import (
    FAST_ELECTION,
    create_all,
    make_configuration,
    make_nodes,
    make_pods,
    start_scheduler,
    wait_until_bound,
)
from tests.controlplane.scheduling_scenario import make_pod
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


def has_waiting_reason(reason: str) -> Callable[[JsonObject], bool]:
    """Return a function that returns whether the condition of a pod has *reason*."""
    return lambda pod: find_condition(pod, "PodScheduled").get("reason") == reason


@pytest.mark.parametrize("first", ["kube-scheduler", "ours"])
def test_pods_that_wait_for_one_scheduler_are_scheduled_by_the_other(
    control_plane: ControlPlane, api: ApiClient, first: str
) -> None:
    """A nominated pod, a gated pod and a pod without a node are waiting when the other scheduler takes over."""
    starts = [control_plane.start_kube_scheduler, control_plane.start_extender]
    start, start_other = starts if first == "kube-scheduler" else reversed(starts)
    api.create({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000})
    create_all(api, make_nodes(1))
    victim = api.create(make_pod("victim", "4", terminationGracePeriodSeconds=600))
    scheduler = start()
    api.wait_for(victim, is_assigned, "binding the victim")
    urgent = api.create(make_pod("urgent", "3", priorityClassName="high"))
    gated = api.create(make_pod("gated", "1", schedulingGates=[{"name": "example.com/quota"}]))
    large = api.create(make_pod("large", "9"))
    api.wait_for(urgent, lambda pod: pod["status"].get("nominatedNodeName") == "node-0", "the nomination")
    api.wait_for(large, has_waiting_reason("Unschedulable"), "the rejection of the large pod")

    control_plane.stop_program(scheduler)
    start_other()
    api.delete(victim)

    api.wait_for(urgent, is_assigned, "binding the urgent pod")
    assert has_waiting_reason("SchedulingGated")(api.get("Pod", "gated"))
    api.patch(gated, {"spec": {"schedulingGates": None}})
    api.wait_for(gated, is_assigned, "binding the gated pod")
    api.create({**make_nodes(1, cpu="10")[0], "metadata": {"name": "large"}})
    api.wait_for(large, is_assigned, "binding the large pod")
