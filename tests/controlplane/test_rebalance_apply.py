"""`extender rebalance --apply` on a real API server, with real controllers and a real kube-scheduler."""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from extender.analysis.recorded_cluster import Recording
from extender.app.plan_executor import ExecutionOptions, SurpriseError, execute_plan
from extender.app.wiring import build_setup
from extender.cli.live.cluster_options import ClusterOptions
from extender.cli.planning.rebalance import PlanExecution
from extender.planning.rebalance.make_room import RoomPlan
from extender.planning.rebalance.plan import Action, Change, Proof
from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.programs import make_extender_command
from tests.controlplane.replica_sets import (
    CONTROLLERS,
    create_replica_set,
    delete_pods,
    make_containers,
    wait_until_adopted,
)
from tests.controlplane.scheduler_processes import create_all, make_nodes


@pytest.fixture
def cluster(control_plane: ControlPlane, api: ApiClient) -> Iterator[ControlPlane]:
    """Run two nodes with 4 cores each: one has a pod of 2 cores, the other pods of 1 and 2; a pod of 3 cores waits."""
    create_all(api, make_nodes(2))
    create_replica_set(api, "a", ["node-0"], {"containers": make_containers(2000)})
    create_replica_set(api, "b", ["node-1"], {"containers": make_containers(1000)})
    create_replica_set(api, "c", ["node-1"], {"containers": make_containers(2000)})
    create_replica_set(api, "big", [""], {"containers": make_containers(3000)})
    control_plane.start_controllers(*CONTROLLERS)
    control_plane.start_kube_scheduler()
    wait_until_adopted(api, 4)
    api.wait_until("Pod", lambda pods: any(is_unschedulable(pod) for pod in pods.values()), "an unschedulable pod")
    yield control_plane
    delete_pods(control_plane, api)


def is_unschedulable(pod: dict[str, Any]) -> bool:
    return any(
        condition["reason"] == "Unschedulable"
        for condition in pod["status"].get("conditions", ())
        if "reason" in condition
    )


def rebalance(plane: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = make_extender_command("rebalance", f"--kubeconfig={plane.write_kubeconfig()}", *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def list_nodes_of_pods(api: ApiClient) -> dict[str, list[str]]:
    """Return the nodes of the pods of each app; an empty string for a waiting pod."""
    nodes: dict[str, list[str]] = {}
    for pod in json.loads(api.list("Pod"))["items"]:
        nodes.setdefault(pod["metadata"]["labels"]["app"], []).append(pod["spec"].get("nodeName", ""))
    return nodes


def is_cordoned(api: ApiClient, name: str) -> bool:
    return bool(api.get("Node", name)["spec"].get("unschedulable"))


def test_the_plan_for_a_waiting_pod_is_carried_out(cluster: ControlPlane, api: ApiClient) -> None:
    result = rebalance(cluster, "--for", "replicaset/big", "--apply", "-o", "json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["moves"] == 1
    nodes = list_nodes_of_pods(api)
    assert all(nodes["big"])
    assert sum(map(len, nodes.values())) == 4
    assert not is_cordoned(api, "node-0")
    assert not is_cordoned(api, "node-1")
    assert result.stderr.splitlines()[-1] == "extender: the plan is carried out; 3 steps"


def test_a_budget_that_forbids_the_evictions_leaves_no_plan(cluster: ControlPlane, api: ApiClient) -> None:
    for app in ("a", "b", "c"):
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": app}}}
        api.create({"kind": "PodDisruptionBudget", "metadata": {"name": app, "namespace": "default"}, "spec": spec})
    result = rebalance(cluster, "--for", "replicaset/big", "--apply", "--exit-code")
    assert (result.returncode, result.stdout.partition("\n")[0].startswith("No plan was found")) == (3, True)
    assert list_nodes_of_pods(api)["big"] == [""]


def test_the_first_surprise_stops_the_plan_and_uncordons_the_node(cluster: ControlPlane, api: ApiClient) -> None:
    (target,) = (pod for pod in json.loads(api.list("Pod"))["items"] if pod["metadata"]["labels"]["app"] == "big")
    key = f"default/{target['metadata']['name']}"
    changes = [Change(Action.CORDON, "node-1"), Change(Action.EVICT, "default/c-0"), Change(Action.UNCORDON, "node-1")]
    reports: list[str] = []

    def report(line: str) -> None:
        reports.append(line)
        if line.startswith("step 1"):  # another pod takes the room to which c would move
            create_replica_set(api, "other", ["node-0"], {"containers": make_containers(1500)})

    options = ExecutionOptions(make_prove(cluster, key), report, timeout=60)
    source = ClusterOptions(str(cluster.write_kubeconfig())).credential_source
    with pytest.raises(SurpriseError, match=r"^stopped before step 2 of 3, evict default/c-0: the plan is not"):
        execute_plan(source, changes, options)
    assert reports[-1] == "uncordon node-1, because the plan is not finished"
    assert not is_cordoned(api, "node-1")
    assert list_nodes_of_pods(api)["c"] == ["node-1"]


def make_prove(cluster: ControlPlane, key: str) -> Callable[[Recording, Sequence[Change]], Proof]:
    execution = PlanExecution(build_setup(), ClusterOptions(str(cluster.write_kubeconfig())), 60, 0)
    plan = RoomPlan((key,), Proof())
    return lambda recording, changes: execution.prove(plan, recording, changes)
