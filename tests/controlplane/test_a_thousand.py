"""A thousand pods of every kind on a hundred nodes, with the rights of kube-scheduler's own role and no more."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import pytest

from tests.controlplane import events, mixed
from tests.controlplane.agreement import decided
from tests.controlplane.api import Api, Thing, condition, key
from tests.controlplane.plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.recording import Recording
from tests.controlplane.test_same_pages import Pages, flags
from tests.history import bound_twice, overfull

NODES: Final = 100
PODS: Final = 1000
CONTROLLERS: Final = ("persistentvolume-binder-controller", "resourceclaim-controller")
CLASSES: Final = {"batch": -10, "normal": 0, "important": 1000}
_PATIENCE: Final = 180.0


def nodes() -> list[Thing]:
    """Unlike nodes; every fifth has a local disk, every tenth two devices."""
    found = mixed.nodes(NODES)
    for number in range(NODES):
        name = f"node-{number:02}"
        if number % 5 == 0:
            found.append(_volume(name))
        if number % 10 == 3:
            found.append(_devices(name))
    return found


def _volume(node: str) -> Thing:
    here = [{"matchExpressions": [{"key": mixed.HOST, "operator": "In", "values": [node]}]}]
    spec = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": here}},
    }
    return {"kind": "PersistentVolume", "metadata": {"name": f"disk-{node}"}, "spec": spec}


def _devices(node: str) -> Thing:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{index}"} for index in range(2)]
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": spec}


def classes() -> list[Thing]:
    """Of storage, devices and priorities; nobody evicts anybody here, so that a decision stays as it is."""
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


def pods() -> list[Thing]:
    """The pods with their claims, each claim in front of its pod. More want disks and devices than there are."""
    chance, found = Random(11), []
    for number, pod in enumerate(mixed.pods(seed=11, count=PODS)):
        pod["metadata"]["name"] = f"pod-{number:04}"
        pod["spec"]["priorityClassName"] = chance.choice(list(CLASSES))
        if number % 40 == 0:
            found.append(_claim(pod))
        if number % 40 == 20:
            found.append(_device_claim(pod))
        found.append(pod)
    return found


def _claim(pod: Thing) -> Thing:
    meta = {"name": f"{pod['metadata']['name']}-data", "namespace": pod["metadata"]["namespace"]}
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": meta["name"]}}]
    wanted = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "resources": wanted}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def _device_claim(pod: Thing) -> Thing:
    meta = {"name": f"{pod['metadata']['name']}-gpu", "namespace": pod["metadata"]["namespace"]}
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": meta["name"]}]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}}
    return {"kind": "ResourceClaim", "metadata": meta, "spec": {"devices": {"requests": [request]}}}


@pytest.fixture
def recording(control_plane: ControlPlane) -> Recording:
    """Begins before there is anything."""
    return Recording(control_plane)


@pytest.fixture
def cluster(control_plane: ControlPlane, recording: Recording, api: Api) -> Api:
    """The nodes, their disks and devices; the controllers of volumes and of claims run."""
    for thing in [*classes(), *mixed.surroundings(), *nodes()]:
        api.create(thing)
    control_plane.controllers(*CONTROLLERS)
    api.wait_until("PersistentVolume", _all_available, "the volumes' becoming available")
    return api


def _all_available(volumes: Mapping[str, Thing]) -> bool:
    return all(each["status"].get("phase") == "Available" for each in volumes.values())


def refused_by(api: Api, start: Callable[[], Any], end: Callable[[Any], None], waiting: set[str]) -> dict[str, str]:
    """What a scheduler that knows nothing of the past says about the pods that wait."""
    events.forget(api)
    process = start()
    said = events.wait_for(api, "FailedScheduling", waiting)
    end(process)
    return {name: said[name][0] for name in waiting}


def test_a_thousand_unlike_pods_are_placed_or_told_why_not_as_by_kube_scheduler(
    control_plane: ControlPlane, recording: Recording, cluster: Api
) -> None:
    """Then our scheduler and kube-scheduler look at those that wait afresh: neither finds room, both say the same."""
    port = free_ports(1)[0]
    ours = control_plane.ours({}, *flags(control_plane, port))
    created = {key(made) for made in map(cluster.create, pods()) if made["kind"] == "Pod"}
    cluster.wait_until("Pod", lambda pods: all(decided(pods[name]) for name in created), "all decisions", _PATIENCE)
    idle = (f'scheduler_pending_pods{{queue="{queue}"}} 0.0' for queue in ("active", "backoff"))
    Pages(ours, port).until_metrics_say(control_plane.token(ADMIN), *idle)
    things = {key(pod): pod for pod in listed(cluster)}
    placed = {name: pod for name, pod in things.items() if pod["spec"].get("nodeName")}
    waiting = {
        name
        for name, pod in things.items()
        if name not in placed and condition(pod, "PodScheduled")["reason"] == "Unschedulable"
    }
    told = events.wait_for(cluster, "Scheduled", placed.keys())
    control_plane.end(ours)

    at = {name: pod["spec"]["nodeName"] for name, pod in placed.items()}
    assert told == {name: [f"Successfully assigned {name} to {node}"] for name, node in at.items()}
    assert len(placed) >= PODS // 2
    assert len(waiting) >= PODS // 10
    history = recording.history()
    assert (bound_twice(history), overfull(history)) == ([], [])
    assert taken_twice(list(placed.values())) == []
    by_us = refused_by(cluster, control_plane.ours, control_plane.end, waiting)
    by_them = refused_by(cluster, control_plane.scheduler, control_plane.end, waiting)
    assert by_us == by_them
    assert {key(pod) for pod in listed(cluster) if pod["spec"].get("nodeName")} == placed.keys()


def listed(api: Api) -> list[Thing]:
    """All pods."""
    return list(json.loads(api.list("Pod"))["items"])


def taken_twice(pods: list[Thing]) -> list[str]:
    """Ports of a node that two pods have. All ports here are of one address, or of all."""
    taken: Counter[str] = Counter()
    for pod in pods:
        node = pod["spec"].get("nodeName")
        for container in pod["spec"]["containers"] if node else ():
            for port in container.get("ports", ()):
                # Whoever takes a port of all addresses takes it of this one too.
                taken[f"{node} {port.get('protocol')} {port.get('hostPort')}"] += "hostPort" in port
    return [what for what, count in taken.items() if count > 1]
