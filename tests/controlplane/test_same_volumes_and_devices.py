"""Volumes through the real PV controller and devices through the real API: decisions and what comes of them."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.controlplane.agreement import decided, disagreement
from tests.controlplane.api import Api, Thing, condition, key
from tests.controlplane.ours import Ours, lists
from tests.controlplane.plane import ControlPlane

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
CONTROLLERS = ("persistentvolume-binder-controller", "resourceclaim-controller")
NODES = 8


@pytest.fixture
def cluster(control_plane: ControlPlane, api: Api) -> Api:
    """Eight nodes in two zones with local volumes and GPUs; the controllers of volumes and of claims run."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "30"}
    for number in range(NODES):
        name = f"node-{number}"
        labels = {HOST: name, ZONE: f"zone-{number % 2}"}
        status = {"capacity": room, "allocatable": room}
        api.create({"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status})
        drivers = [{"name": "disk.example.com", "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": 2}}]
        api.create({"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}})
    for thing in [*classes(), *volumes(), *device_classes(), *slices()]:
        api.create(thing)
    control_plane.controllers(*CONTROLLERS)
    api.wait_until("PersistentVolume", all_available, "the volumes' becoming available")
    return api


def all_available(volumes: Mapping[str, Thing]) -> bool:
    """Whether the PV controller has seen all volumes; until then nobody can have them."""
    return all(each["status"].get("phase") == "Available" for each in volumes.values())


def classes() -> list[Thing]:
    """Storage that waits for the first consumer without a provisioner, and storage that is bound at once."""
    local = {"kind": "StorageClass", "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"}
    at_once = {"kind": "StorageClass", "metadata": {"name": "at-once"}, "provisioner": "kubernetes.io/no-provisioner"}
    return [{**local, "volumeBindingMode": "WaitForFirstConsumer"}, {**at_once, "volumeBindingMode": "Immediate"}]


def volumes() -> list[Thing]:
    """Two local volumes on each even node, of different sizes, and four volumes that a zone shares."""
    local = [
        a_volume(f"local-{node}-{index}", "local", f"{(index + 1) * 5}Gi", HOST, f"node-{node}", {"path": "/data"})
        for node in range(0, NODES, 2)
        for index in range(2)
    ]
    csi = {"driver": "disk.example.com"}
    return [*local, *(a_volume(f"shared-{n}", "at-once", "10Gi", ZONE, f"zone-{n % 2}", csi) for n in range(4))]


def a_volume(name: str, storage: str, size: str, label: str, value: str, source: Thing) -> Thing:
    """A volume that only nodes with this label can use."""
    terms = [{"matchExpressions": [{"key": label, "operator": "In", "values": [value]}]}]
    where = {"local": source} if "path" in source else {"csi": {**source, "volumeHandle": name}}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage,
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            **where,
        },
    }


def device_classes() -> list[Thing]:
    """One class: every device of the driver."""
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    return [{"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}]


def slices() -> list[Thing]:
    """Two GPUs on each of three nodes, of different models and memories."""
    return [
        {
            "kind": "ResourceSlice",
            "metadata": {"name": f"node-{node}-gpus"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": f"node-{node}",
                "pool": {"name": f"node-{node}", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": f"gpu-{index}",
                        "attributes": {"model": {"string": ("a100", "t4")[(node + index) % 2]}},
                        "capacity": {"memory": {"value": f"{40 * (index + 1)}Gi"}},
                    }
                    for index in range(2)
                ],
            },
        }
        for node in (1, 2, 3)
    ]


def a_claim(name: str, storage: str, size: str, mode: str = "ReadWriteOnce") -> Thing:
    """A claim of a volume."""
    wanted = {"requests": {"storage": size}}
    spec = {"storageClassName": storage, "accessModes": [mode], "resources": wanted}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def a_device_claim(name: str, expression: str, count: int = 1) -> Thing:
    """A claim of devices for which a CEL expression holds."""
    exactly = {"deviceClassName": "gpu", "count": count, "selectors": [{"cel": {"expression": expression}}]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def a_pod(name: str, *, claims: tuple[str, ...] = (), devices: tuple[str, ...] = (), **spec: Any) -> Thing:
    """A pod that uses claims of volumes and of devices by name."""
    wanted = {"requests": {"cpu": "500m"}, "claims": [{"name": each} for each in devices]}
    container = {"name": "app", "image": "app", "resources": wanted}
    mounts = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    uses = [{"name": each, "resourceClaimName": each} for each in devices]
    body = {"containers": [container], "volumes": mounts, "resourceClaims": uses, **spec}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": body}


def agrees(cluster: Api, core: Ours, manifest: Thing) -> Thing:
    """The pod once kube-scheduler has decided about it, as we would have."""
    before = lists(cluster)
    pod = cluster.create(manifest)
    ours = core.about(pod, before)
    theirs = cluster.wait_for(pod, decided, f"a decision about {key(pod)}")
    assert disagreement(theirs, ours) == ""
    return theirs


def bound(cluster: Api, name: str) -> Thing:
    """The claim, once the PV controller has bound it."""
    claim = cluster.get("PersistentVolumeClaim", name, "default")
    return cluster.wait_for(claim, lambda each: each["status"].get("phase") == "Bound", f"binding of {name}")


def test_claims_that_wait_are_bound_to_volumes_of_the_node_that_was_chosen(
    control_plane: ControlPlane, cluster: Api
) -> None:
    """Eight volumes wait on four nodes, half of them large enough for every second pod."""
    core, used = Ours(), set()
    for number in range(6):
        cluster.create(a_claim(f"data-{number}", "local", ("1Gi", "8Gi")[number % 2]))
    cluster.create(a_claim("too-large", "local", "50Gi"))
    control_plane.scheduler()  # now that it cannot miss what the pods need
    for number in range(6):
        pod = agrees(cluster, core, a_pod(f"pod-{number}", claims=(f"data-{number}",)))
        volume = bound(cluster, f"data-{number}")["spec"]["volumeName"]
        assert volume.startswith(f"local-{pod['spec']['nodeName'].removeprefix('node-')}-")
        used.add(volume)
    assert len(used) == 6
    refused = agrees(cluster, core, a_pod("pod-too-large", claims=("too-large",)))
    assert condition(refused, "PodScheduled")["message"] == (
        "0/8 nodes are available: 8 node(s) didn't find available persistent volumes to bind. "
        "no new claims to deallocate, preemption: 0/8 nodes are available: 8 Preemption is not helpful for scheduling."
    )


def test_bound_claims_draw_pods_to_their_zone_and_count_against_attach_limits(
    control_plane: ControlPlane, cluster: Api
) -> None:
    core = Ours()
    names = [f"zonal-{number}" for number in range(4)]
    for name in names:
        cluster.create(a_claim(name, "at-once", "10Gi"))
        bound(cluster, name)
    cluster.create(a_claim("unbound", "at-once", "900Gi"))
    control_plane.scheduler()  # now that it cannot miss what the pods need
    placed = [agrees(cluster, core, a_pod(name, claims=(name,))) for name in names]
    assert all(pod["spec"].get("nodeName") for pod in placed)
    refused = {
        "all-of-them": (*names,),  # an attach limit is reached before their zones are looked at
        "missing": ("nowhere",),
        "not-bound": ("unbound",),
    }
    said = {
        name: condition(agrees(cluster, core, a_pod(name, claims=claims)), "PodScheduled")["message"]
        for name, claims in refused.items()
    }
    assert said["all-of-them"].startswith("0/8 nodes are available: 8 node(s) exceed max volume count. ")
    assert 'persistentvolumeclaim "nowhere" not found' in said["missing"]
    assert "pod has unbound immediate PersistentVolumeClaims" in said["not-bound"]


WISHES = {
    "two": ("true", 2),
    "large": ("device.capacity['gpu.example.com'].memory.compareTo(quantity('64Gi')) >= 0", 1),
    "a100": ("device.attributes['gpu.example.com'].model == 'a100'", 1),
    "any": ("true", 1),
    "none": ("device.attributes['gpu.example.com'].model == 'h100'", 1),
}
"""Claims of devices: an expression, and how many."""


def test_devices_are_allocated_where_we_would_place_the_pod(control_plane: ControlPlane, cluster: Api) -> None:
    """Six GPUs on three nodes: two of one node, a large one, one by its model, any, one there is not, a shared one."""
    core = Ours()
    for name, (expression, count) in WISHES.items():
        cluster.create(a_device_claim(name, expression, count))
    control_plane.scheduler()  # now that it cannot miss what the pods need
    allocated = {}
    for name in WISHES:
        node = agrees(cluster, core, a_pod(f"pod-{name}", devices=(name,)))["spec"].get("nodeName")
        claim = cluster.get("ResourceClaim", name, "default")
        results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        assert {each["pool"] for each in results} == ({node} if node else set())
        allocated[name] = len(results)
    assert allocated == {"two": 2, "large": 1, "a100": 1, "any": 1, "none": 0}
    shared = agrees(cluster, core, a_pod("pod-shares", devices=("any",)))
    claim = cluster.get("ResourceClaim", "any", "default")
    assert [each["name"] for each in claim["status"]["reservedFor"]] == ["pod-any", "pod-shares"]
    assert shared["spec"]["nodeName"] == claim["status"]["allocation"]["devices"]["results"][0]["pool"]
