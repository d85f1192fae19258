"""Our scheduler on a real API server, with only the permissions of the system:kube-scheduler role."""

import json

from tests.controlplane import mixed_cluster
from tests.controlplane.api_client import ApiClient, find_condition, object_key
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.decision_diff import is_decided
from tests.controlplane.history_recorder import HistoryRecorder
from tests.controlplane.scheduler_processes import make_configuration, start_scheduler
from tests.scheduling_history import find_assignments, find_double_bindings, find_overcommitted_nodes


def test_different_pods_are_scheduled_or_rejected(control_plane: ControlPlane, api: ApiClient) -> None:
    recorder = HistoryRecorder(control_plane)
    for obj in [*mixed_cluster.make_namespaces_and_workloads(), *mixed_cluster.make_nodes()]:
        api.create(obj)
    scheduler = start_scheduler(control_plane, make_configuration(control_plane))
    created = {object_key(api.create(manifest)) for manifest in mixed_cluster.make_pods(seed=3)}

    api.wait_until("Pod", lambda pods: all(is_decided(pods[name]) for name in created), "all decisions")
    control_plane.stop_program(scheduler)  # before reading: a rejected pod may still be scheduled later

    history = recorder.history()
    pods = json.loads(api.list("Pod"))["items"]
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    rejected = [pod for pod in pods if not pod["spec"].get("nodeName")]
    assert len(placed) == len(find_assignments(history)) >= 100
    assert rejected
    assert (find_double_bindings(history), find_overcommitted_nodes(history)) == ([], [])
    reasons = {find_condition(pod, "PodScheduled")["reason"] for pod in rejected}
    assert reasons <= {"Unschedulable", "SchedulingGated"}
