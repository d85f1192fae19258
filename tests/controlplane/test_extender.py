"""A real kube-scheduler with our extender over TLS: assignments pass our filters; forged requests change nothing."""

import json
from typing import Any

import pytest

from tests.controlplane.api_client import ApiClient, JsonObject, find_condition, object_key
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.extender_process import (
    ExtenderProcess,
    find_rejected_assignments,
    grant_permissions,
    is_assigned,
    node_names_by_pod,
)
from tests.controlplane.history_recorder import HistoryRecorder
from tests.controlplane.mixed_cluster import HOST, ZONE
from tests.controlplane.scheduler_processes import create_all, wait_until_bound
from tests.scheduling_history import find_violations

MODEL = "example.com/gpu-model"
GPU_PROFILE = {"plugins": {"multiPoint": {"enabled": [{"name": "GpuModel"}]}}}


def make_node(number: int, cpu: str = "8", **labels: str) -> JsonObject:
    name = f"node-{number}"
    capacity = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    all_labels = {HOST: name, ZONE: f"zone-{number % 3}", "disk": ("ssd", "hdd")[number % 2], **labels}
    status = {"capacity": capacity, "allocatable": capacity}
    return {"kind": "Node", "metadata": {"name": name, "labels": all_labels}, "status": status}


def make_pod(name: str, cpu: str = "250m", *, app: str = "plain", model: str = "", **spec: Any) -> JsonObject:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    meta: JsonObject = {"name": name, "namespace": "default", "labels": {"app": app}}
    if model:
        meta["annotations"] = {MODEL: model}
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def make_constrained_pod(number: int) -> JsonObject:
    """Make a pod with one of five constraints; all these pods are schedulable together."""
    rival_term = {"labelSelector": {"matchLabels": {"app": "rival"}}, "topologyKey": HOST}
    zone_constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    name = f"pod-{number}"
    match number % 5:
        case 0:
            required = "requiredDuringSchedulingIgnoredDuringExecution"
            return make_pod(name, app="rival", affinity={"podAntiAffinity": {required: [rival_term]}})
        case 1:
            spread = [{**zone_constraint, "labelSelector": {"matchLabels": {"app": "even"}}}]
            return make_pod(name, app="even", topologySpreadConstraints=spread)
        case 2:
            return make_pod(name, cpu="1", nodeSelector={"disk": "ssd"})
        case 3:
            pod = make_pod(name)
            pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8000 + number % 7}]
            return pod
    return make_pod(name, cpu="500m")


@pytest.fixture
def cluster(api: ApiClient) -> ApiClient:
    grant_permissions(api)
    return api


@pytest.mark.parametrize(
    ("by_names", "has_bind_verb", "count"),
    [(True, True, 500), (False, False, 500), (True, False, 150), (False, True, 150)],
    ids=[
        "node names, bind verb",
        "whole nodes, no bind verb",
        "node names, no bind verb",
        "whole nodes, bind verb",
    ],
)
def test_many_pods_are_assigned_only_to_nodes_that_pass_our_filters(
    control_plane: ControlPlane, cluster: ApiClient, by_names: bool, has_bind_verb: bool, count: int
) -> None:
    recorder = HistoryRecorder(control_plane)
    create_all(cluster, (make_node(number) for number in range(100)))
    extender = ExtenderProcess(control_plane)
    bind_field = {"bindVerb": "bind"} if has_bind_verb else {}
    control_plane.start_kube_scheduler(
        {"extenders": [extender.configuration_entry(nodeCacheCapable=by_names, **bind_field)]}
    )
    create_all(cluster, map(make_constrained_pod, range(count)))
    wait_until_bound(cluster, count, 120.0)

    history = recorder.history()
    assert find_violations(history) == []
    assert find_rejected_assignments(cluster) == []
    assert {binding.actor.startswith("system:serviceaccount") for binding in history.bindings} == {has_bind_verb}


def test_an_installed_plugin_rejects_nodes_with_its_reason(control_plane: ControlPlane, cluster: ApiClient) -> None:
    models = ("a100", "h100", "t4")
    create_all(cluster, (make_node(number, **{MODEL: models[number % 3]}) for number in range(9)))
    extender = ExtenderProcess(control_plane, {"profiles": [GPU_PROFILE]}, plugins=True)
    control_plane.start_kube_scheduler({"extenders": [extender.configuration_entry()]})
    gpu_pods = [cluster.create(make_pod(f"gpu-{number}", model="h100")) for number in range(12)]
    node_names = {cluster.wait_for(pod, is_assigned, "a node")["spec"]["nodeName"] for pod in gpu_pods}
    assert node_names <= {"node-1", "node-4", "node-7"}

    rejected_pod = cluster.create(make_pod("rejected", model="b200", nodeSelector={"disk": "ssd"}))
    rejected = cluster.wait_for(rejected_pod, lambda pod: bool(find_condition(pod, "PodScheduled")), "a rejection")
    message = find_condition(rejected, "PodScheduled")["message"]
    assert message.startswith(
        "0/9 nodes are available: 4 node(s) didn't match Pod's node affinity/selector, 5 node(s) lack the GPU model. "
    )


def test_the_preempt_response_changes_the_victims(control_plane: ControlPlane, cluster: ApiClient) -> None:
    """kube-scheduler alone would evict the pod of lowest priority; our plugin rejects its node all the same."""
    for name, value in {"trifling": 1, "modest": 5, "urgent": 1000}.items():
        cluster.create({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    create_all(cluster, (make_node(0, cpu="2", **{MODEL: "t4"}), make_node(1, cpu="2", **{MODEL: "h100"})))
    running = [
        cluster.create(make_pod("on-t4", cpu="2", nodeName="node-0", priorityClassName="trifling")),
        cluster.create(make_pod("on-h100", cpu="2", nodeName="node-1", priorityClassName="modest")),
    ]
    extender = ExtenderProcess(control_plane, {"profiles": [GPU_PROFILE]}, plugins=True)
    control_plane.start_kube_scheduler({"extenders": [extender.configuration_entry(bindVerb="bind")]})
    urgent = cluster.create(make_pod("urgent", cpu="2", model="h100", priorityClassName="urgent"))

    def is_leaving(pod: JsonObject) -> bool:
        return bool(pod["metadata"].get("deletionTimestamp"))

    victim = cluster.wait_for(running[1], is_leaving, "the eviction")
    assert find_condition(victim, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
    assert not is_leaving(cluster.get("Pod", "on-t4", "default"))
    cluster.delete(victim)
    assert cluster.wait_for(urgent, is_assigned, "a node")["spec"]["nodeName"] == "node-1"


def test_forged_requests_change_nothing(control_plane: ControlPlane, cluster: ApiClient) -> None:
    create_all(cluster, (make_node(number) for number in range(2)))
    extender = ExtenderProcess(control_plane)
    pending_pod = cluster.create(make_pod("pending"))
    bound = cluster.create(make_pod("bound", nodeName="node-0"))
    other = cluster.create(make_pod("other", schedulerName="other-scheduler"))
    big = cluster.create(make_pod("big", cpu="9"))
    pods_before = cluster.list("Pod")

    def bind(pod: JsonObject, node: str, **fields: str) -> str:
        meta = pod["metadata"]
        names = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}
        return extender.bind(**{**names, **fields})

    uid = pending_pod["metadata"]["uid"]
    assert [
        bind(pending_pod, "node-0", PodName="ghost"),
        bind(pending_pod, "node-0", PodUID=bound["metadata"]["uid"]),
        bind(pending_pod, "node-9"),
        bind(bound, "node-1"),
        bind(other, "node-0"),
        bind(big, "node-0"),
    ] == [
        "pod default/ghost not found",
        f"pod default/pending has the uid {uid}, not {bound['metadata']['uid']}: it was deleted and recreated",
        "node node-9 is not known to the extender (yet)",
        "pod default/bound is on node node-0 already",
        'pod default/other is for the scheduler "other-scheduler", which is not served here',
        "pod default/big does not fit node node-0: Insufficient cpu",
    ]
    statuses = [extender.send("bind", {}, identity).status_code for identity in ("no certificate", "another name")]
    assert statuses == [401, 403]
    assert json.loads(cluster.list("Pod"))["items"] == json.loads(pods_before)["items"]

    assert bind(pending_pod, "node-1") == ""
    assert bind(pending_pod, "node-1") == ""  # a repeated request succeeds
    assert bind(pending_pod, "node-0") == "pod default/pending is on node node-1 already"
    assert node_names_by_pod(cluster)[object_key(pending_pod)] == "node-1"
