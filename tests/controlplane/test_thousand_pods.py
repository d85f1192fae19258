"""A thousand pods of every kind on a hundred nodes, with only the permissions of the system:kube-scheduler role."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import pytest

from tests.controlplane import events, mixed_cluster
from tests.controlplane.api_client import ApiClient, JsonObject, find_condition, object_key
from tests.controlplane.control_plane import ADMIN, ControlPlane
from tests.controlplane.decision_diff import is_decided
from tests.controlplane.history_recorder import HistoryRecorder
from tests.controlplane.process import free_ports
from tests.controlplane.test_same_endpoints import SchedulerEndpoints, serving_flags
from tests.scheduling_history import find_double_bindings, find_overcommitted_nodes

NODES: Final = 100
PODS: Final = 1000
CONTROLLERS: Final = ("persistentvolume-binder-controller", "resourceclaim-controller")
CLASSES: Final = {"batch": -10, "normal": 0, "important": 1000}
_TIMEOUT: Final = 180.0


def make_nodes_with_volumes_and_devices() -> list[JsonObject]:
    """Make different nodes; every fifth has a local disk, every tenth two devices."""
    objects = mixed_cluster.make_nodes(NODES)
    for number in range(NODES):
        name = f"node-{number:02}"
        if number % 5 == 0:
            objects.append(_make_volume(name))
        if number % 10 == 3:
            objects.append(_make_slice(name))
    return objects


def _make_volume(node: str) -> JsonObject:
    node_terms = [{"matchExpressions": [{"key": mixed_cluster.HOST, "operator": "In", "values": [node]}]}]
    spec = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": node_terms}},
    }
    return {"kind": "PersistentVolume", "metadata": {"name": f"disk-{node}"}, "spec": spec}


def _make_slice(node: str) -> JsonObject:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{index}"} for index in range(2)]
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": spec}


def make_classes() -> list[JsonObject]:
    """Make a storage class, a device class and priority classes without preemption, so that decisions are final."""
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    storage = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    return [
        {"kind": "StorageClass", "metadata": {"name": "local"}, **storage},
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}},
        *(
            {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"}
            for name, value in CLASSES.items()
        ),
    ]


def make_pods_with_claims() -> list[JsonObject]:
    """Make the pods, each after its claims. There are fewer disks and devices than claims."""
    rng, objects = Random(11), []
    for number, pod in enumerate(mixed_cluster.make_pods(seed=11, count=PODS)):
        pod["metadata"]["name"] = f"pod-{number:04}"
        pod["spec"]["priorityClassName"] = rng.choice(list(CLASSES))
        if number % 40 == 0:
            objects.append(_add_volume_claim(pod))
        if number % 40 == 20:
            objects.append(_add_device_claim(pod))
        objects.append(pod)
    return objects


def _add_volume_claim(pod: JsonObject) -> JsonObject:
    meta = {"name": f"{pod['metadata']['name']}-data", "namespace": pod["metadata"]["namespace"]}
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": meta["name"]}}]
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "resources": resources}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def _add_device_claim(pod: JsonObject) -> JsonObject:
    meta = {"name": f"{pod['metadata']['name']}-gpu", "namespace": pod["metadata"]["namespace"]}
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": meta["name"]}]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}}
    return {"kind": "ResourceClaim", "metadata": meta, "spec": {"devices": {"requests": [request]}}}


@pytest.fixture
def recorder(control_plane: ControlPlane) -> HistoryRecorder:
    """Record from the empty cluster on."""
    return HistoryRecorder(control_plane)


@pytest.fixture
def cluster(control_plane: ControlPlane, recorder: HistoryRecorder, api: ApiClient) -> ApiClient:
    """Create nodes, disks and devices; run the controllers of volumes and of claims."""
    events.delete_events(api)
    for obj in [
        *make_classes(),
        *mixed_cluster.make_namespaces_and_workloads(),
        *make_nodes_with_volumes_and_devices(),
    ]:
        api.create(obj)
    control_plane.start_controllers(*CONTROLLERS)
    api.wait_until("PersistentVolume", _all_available, "available volumes")
    return api


def _all_available(volumes: Mapping[str, JsonObject]) -> bool:
    return all(volume["status"].get("phase") == "Available" for volume in volumes.values())


def rejections_by(
    api: ApiClient, start: Callable[[], Any], stop: Callable[[Any], None], waiting: set[str]
) -> dict[str, str]:
    """Return the messages of a newly started scheduler about the pending pods."""
    events.delete_events(api)
    process = start()
    notes = events.wait_for_notes(api, "FailedScheduling", waiting)
    stop(process)
    return {name: notes[name][0] for name in waiting}


def test_a_thousand_different_pods_are_placed_or_rejected_like_by_kube_scheduler(
    control_plane: ControlPlane, recorder: HistoryRecorder, cluster: ApiClient
) -> None:
    """Then our scheduler and kube-scheduler try the pending pods again and reject them with equal messages."""
    port = free_ports(1)[0]
    scheduler = control_plane.start_extender({}, *serving_flags(control_plane, port))
    created = {object_key(made) for made in map(cluster.create, make_pods_with_claims()) if made["kind"] == "Pod"}
    cluster.wait_until("Pod", lambda pods: all(is_decided(pods[name]) for name in created), "all decisions", _TIMEOUT)
    idle = (f'scheduler_pending_pods{{queue="{queue}"}} 0.0' for queue in ("active", "backoff"))
    SchedulerEndpoints(scheduler, port).wait_for_metrics(control_plane.token(ADMIN), *idle)
    pods_by_key = {object_key(pod): pod for pod in list_pods(cluster)}
    placed = {name: pod for name, pod in pods_by_key.items() if pod["spec"].get("nodeName")}
    waiting = {
        name
        for name, pod in pods_by_key.items()
        if name not in placed and find_condition(pod, "PodScheduled")["reason"] == "Unschedulable"
    }
    notes = events.wait_for_notes(cluster, "Scheduled", placed.keys())
    control_plane.stop_program(scheduler)

    node_names = {name: pod["spec"]["nodeName"] for name, pod in placed.items()}
    assert notes == {name: [f"Successfully assigned {name} to {node}"] for name, node in node_names.items()}
    assert len(placed) >= PODS // 2
    assert len(waiting) >= PODS // 10
    history = recorder.history()
    assert (find_double_bindings(history), find_overcommitted_nodes(history)) == ([], [])
    assert find_port_conflicts(list(placed.values())) == []
    by_us = rejections_by(cluster, control_plane.start_extender, control_plane.stop_program, waiting)
    by_them = rejections_by(cluster, control_plane.start_kube_scheduler, control_plane.stop_program, waiting)
    assert by_us == by_them
    assert {object_key(pod) for pod in list_pods(cluster) if pod["spec"].get("nodeName")} == placed.keys()


def list_pods(api: ApiClient) -> list[JsonObject]:
    """Return all pods."""
    return list(json.loads(api.list("Pod"))["items"])


def find_port_conflicts(pods: list[JsonObject]) -> list[str]:
    """Return the host ports that two pods of a node use. Ports are of one address or of all addresses."""
    port_counts: Counter[str] = Counter()
    for pod in pods:
        node = pod["spec"].get("nodeName")
        for container in pod["spec"]["containers"] if node else ():
            for port in container.get("ports", ()):
                # A port of all addresses conflicts with the same port of one address.
                port_counts[f"{node} {port.get('protocol')} {port.get('hostPort')}"] += "hostPort" in port
    return [port for port, count in port_counts.items() if count > 1]
