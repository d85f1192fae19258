"""Volumes with the real PV controller and devices with the real API: decisions, bindings and allocations."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.controlplane.api_client import ApiClient, JsonObject, find_condition, object_key
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.decision_diff import describe_difference, is_decided
from tests.controlplane.offline_scheduler import OfflineScheduler, list_objects
from tests.controlplane.programs import RELEASE

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
CONTROLLERS = ("persistentvolume-binder-controller", "resourceclaim-controller")
NODES = 8


@pytest.fixture
def cluster(control_plane: ControlPlane, api: ApiClient) -> ApiClient:
    """Create eight nodes in two zones with local volumes and GPUs; run the controllers of volumes and of claims."""
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "30"}
    for number in range(NODES):
        name = f"node-{number}"
        labels = {HOST: name, ZONE: f"zone-{number % 2}"}
        status = {"capacity": capacity, "allocatable": capacity}
        api.create({"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status})
        drivers = [{"name": "disk.example.com", "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": 2}}]
        api.create({"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}})
    for obj in [*make_storage_classes(), *make_volumes(), *make_device_classes(), *make_slices()]:
        api.create(obj)
    control_plane.start_controllers(*CONTROLLERS)
    api.wait_until("PersistentVolume", all_volumes_available, "available volumes")
    return api


def all_volumes_available(volumes: Mapping[str, JsonObject]) -> bool:
    """Return whether the PV controller has made all volumes available."""
    return all(name_["status"].get("phase") == "Available" for name_ in volumes.values())


def make_storage_classes() -> list[JsonObject]:
    """Make a class that waits for the first consumer and one that binds immediately, without provisioners."""
    local = {"kind": "StorageClass", "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"}
    at_once = {"kind": "StorageClass", "metadata": {"name": "at-once"}, "provisioner": "kubernetes.io/no-provisioner"}
    return [{**local, "volumeBindingMode": "WaitForFirstConsumer"}, {**at_once, "volumeBindingMode": "Immediate"}]


def make_volumes() -> list[JsonObject]:
    """Make two local volumes of different sizes on each even node, and four volumes of zones."""
    local = [
        make_volume(f"local-{node}-{index}", "local", f"{(index + 1) * 5}Gi", HOST, f"node-{node}", {"path": "/data"})
        for node in range(0, NODES, 2)
        for index in range(2)
    ]
    csi = {"driver": "disk.example.com"}
    return [*local, *(make_volume(f"shared-{n}", "at-once", "10Gi", ZONE, f"zone-{n % 2}", csi) for n in range(4))]


def make_volume(name: str, storage: str, size: str, label: str, value: str, source: JsonObject) -> JsonObject:
    """Make a volume with node affinity to a label."""
    terms = [{"matchExpressions": [{"key": label, "operator": "In", "values": [value]}]}]
    source_field = {"local": source} if "path" in source else {"csi": {**source, "volumeHandle": name}}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage,
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            **source_field,
        },
    }


def make_device_classes() -> list[JsonObject]:
    """Make a class of all devices of the driver."""
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    return [{"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}]


def make_slices() -> list[JsonObject]:
    """Make two GPUs of different models and memory sizes on each of three nodes."""
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


def make_volume_claim(name: str, storage: str, size: str, mode: str = "ReadWriteOnce") -> JsonObject:
    """Make a PersistentVolumeClaim."""
    resources = {"requests": {"storage": size}}
    spec = {"storageClassName": storage, "accessModes": [mode], "resources": resources}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def make_device_claim(name: str, expression: str, count: int = 1) -> JsonObject:
    """Make a ResourceClaim with a CEL selector."""
    exactly = {"deviceClassName": "gpu", "count": count, "selectors": [{"cel": {"expression": expression}}]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def make_pod(name: str, *, claims: tuple[str, ...] = (), devices: tuple[str, ...] = (), **spec: Any) -> JsonObject:
    """Make a pod that uses volume claims and device claims by name."""
    resources = {"requests": {"cpu": "500m"}, "claims": [{"name": name_} for name_ in devices]}
    container = {"name": "app", "image": "app", "resources": resources}
    mounts = [{"name": name_, "persistentVolumeClaim": {"claimName": name_}} for name_ in claims]
    uses = [{"name": name_, "resourceClaimName": name_} for name_ in devices]
    body = {"containers": [container], "volumes": mounts, "resourceClaims": uses, **spec}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": body}


def schedule_and_compare(cluster: ApiClient, scheduler: OfflineScheduler, manifest: JsonObject) -> JsonObject:
    """Create a pod, compare the decision of kube-scheduler with ours, and return the pod."""
    lists = list_objects(cluster)
    pod = cluster.create(manifest)
    explanation = scheduler.explain(pod, lists)
    upstream = cluster.wait_for(pod, is_decided, f"a decision about {object_key(pod)}")
    assert describe_difference(upstream, explanation) == ""
    return upstream


def wait_until_claim_is_bound(cluster: ApiClient, name: str) -> JsonObject:
    """Wait until the PV controller has bound the claim, and return it."""
    claim = cluster.get("PersistentVolumeClaim", name, "default")
    return cluster.wait_for(claim, lambda name_: name_["status"].get("phase") == "Bound", f"binding of {name}")


def test_claims_that_wait_for_a_consumer_are_bound_to_volumes_of_the_selected_node(
    control_plane: ControlPlane, cluster: ApiClient
) -> None:
    """There are eight volumes on four nodes; half of them are large enough for every second pod."""
    scheduler, used_volumes = OfflineScheduler(), set()
    for number in range(6):
        cluster.create(make_volume_claim(f"data-{number}", "local", ("1Gi", "8Gi")[number % 2]))
    cluster.create(make_volume_claim("too-large", "local", "50Gi"))
    control_plane.start_kube_scheduler()  # after its objects exist
    for number in range(6):
        pod = schedule_and_compare(cluster, scheduler, make_pod(f"pod-{number}", claims=(f"data-{number}",)))
        volume = wait_until_claim_is_bound(cluster, f"data-{number}")["spec"]["volumeName"]
        assert volume.startswith(f"local-{pod['spec']['nodeName'].removeprefix('node-')}-")
        used_volumes.add(volume)
    assert len(used_volumes) == 6
    rejected = schedule_and_compare(cluster, scheduler, make_pod("pod-too-large", claims=("too-large",)))
    deallocation = "no new claims to deallocate, " if RELEASE == "1.36" else ""
    assert find_condition(rejected, "PodScheduled")["message"] == (
        "0/8 nodes are available: 8 node(s) didn't find available persistent volumes to bind. "
        f"{deallocation}preemption: 0/8 nodes are available: 8 Preemption is not helpful for scheduling."
    )


def test_bound_claims_restrict_pods_to_their_zone_and_count_against_attach_limits(
    control_plane: ControlPlane, cluster: ApiClient
) -> None:
    scheduler = OfflineScheduler()
    names = [f"zonal-{number}" for number in range(4)]
    for name in names:
        cluster.create(make_volume_claim(name, "at-once", "10Gi"))
        wait_until_claim_is_bound(cluster, name)
    cluster.create(make_volume_claim("unbound", "at-once", "900Gi"))
    control_plane.start_kube_scheduler()  # after its objects exist
    pods = [schedule_and_compare(cluster, scheduler, make_pod(name, claims=(name,))) for name in names]
    assert all(pod["spec"].get("nodeName") for pod in pods)
    rejected = {
        "all-of-them": (*names,),  # NodeVolumeLimits runs before VolumeZone
        "missing": ("nowhere",),
        "not-bound": ("unbound",),
    }
    messages = {
        name: find_condition(schedule_and_compare(cluster, scheduler, make_pod(name, claims=claims)), "PodScheduled")[
            "message"
        ]
        for name, claims in rejected.items()
    }
    assert messages["all-of-them"].startswith("0/8 nodes are available: 8 node(s) exceed max volume count. ")
    assert 'persistentvolumeclaim "nowhere" not found' in messages["missing"]
    assert "pod has unbound immediate PersistentVolumeClaims" in messages["not-bound"]


DEVICE_REQUESTS = {
    "two": ("true", 2),
    "large": ("device.capacity['gpu.example.com'].memory.compareTo(quantity('64Gi')) >= 0", 1),
    "a100": ("device.attributes['gpu.example.com'].model == 'a100'", 1),
    "any": ("true", 1),
    "none": ("device.attributes['gpu.example.com'].model == 'h100'", 1),
}
"""CEL expression and device count by claim name."""


def test_devices_are_allocated_on_the_node_that_we_find(control_plane: ControlPlane, cluster: ApiClient) -> None:
    """Six GPUs on three nodes are claimed by count, memory and model; one claim fits none, one is shared."""
    scheduler = OfflineScheduler()
    for name, (expression, count) in DEVICE_REQUESTS.items():
        cluster.create(make_device_claim(name, expression, count))
    control_plane.start_kube_scheduler()  # after its objects exist
    allocated = {}
    for name in DEVICE_REQUESTS:
        node = schedule_and_compare(cluster, scheduler, make_pod(f"pod-{name}", devices=(name,)))["spec"].get(
            "nodeName"
        )
        claim = cluster.get("ResourceClaim", name, "default")
        results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        assert {name_["pool"] for name_ in results} == ({node} if node else set())
        allocated[name] = len(results)
    assert allocated == {"two": 2, "large": 1, "a100": 1, "any": 1, "none": 0}
    shared = schedule_and_compare(cluster, scheduler, make_pod("pod-shares", devices=("any",)))
    claim = cluster.get("ResourceClaim", "any", "default")
    assert [name_["name"] for name_ in claim["status"]["reservedFor"]] == ["pod-any", "pod-shares"]
    assert shared["spec"]["nodeName"] == claim["status"]["allocation"]["devices"]["results"][0]["pool"]
