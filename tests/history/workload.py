"""A random workload: operations on pods, nodes, claims and budgets, all drawn from a seed before the run.

The operations do not depend on the decisions of the scheduler, so that a part of them can run again. An operation on
an object that does not exist does nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.history.node_rules import HOST, REQUIRED

Manifest = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
APPS: Final = ("web", "api", "batch")
NODE_COUNT: Final = 5
OPERATIONS_PER_SECOND: Final = 20
CONTROLLERS: Final = (
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "resourceclaim-controller",
    "disruption-controller",
)
"""The controllers of kube-controller-manager that the workload needs. It replaces all others and the kubelets."""

_PRIORITIES: Final = {"low": 10, "high": 1000}
_NAMESPACE: Final = "default"
_CAPACITY: Final = {"cpu": "4", "memory": "8Gi", "pods": "8", "ephemeral-storage": "100Gi"}
_GPU: Final = "example.com/gpu"


@dataclass(frozen=True, slots=True)
class Operation:
    """One step of a workload.

    Attributes:
        time: seconds since the start.
        action: `create`, `delete`, `finish`, `ungate` or `patch`.
        manifest: the object to create, or kind and name of an existing one.
        change: the merge patch of `patch`.
    """

    time: float
    action: str
    manifest: Manifest
    change: Manifest = field(default_factory=dict)

    def __str__(self) -> str:
        name = f"{self.manifest['kind']} {self.manifest['metadata']['name']}"
        return f"{self.time:7.3f} s {self.action} {name}" + (f" {self.change}" if self.change else "")


def make_cluster() -> list[Manifest]:
    """Make the objects that exist before the first operation: classes, nodes, volumes and devices."""
    storage = {"kind": "StorageClass", "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"}
    return [
        *({"kind": "PriorityClass", "metadata": {"name": name}, "value": value} for name, value in _PRIORITIES.items()),
        {**storage, "volumeBindingMode": "WaitForFirstConsumer"},
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        *(make_node(number) for number in range(NODE_COUNT)),
        *(make_volume(f"disk-{number}-{copy}", f"node-{number}") for number in (0, 2, 4) for copy in range(2)),
        *(_make_slice(f"node-{number}") for number in (1, 3)),
    ]


def make_node(number: int) -> Manifest:
    """Make a node; every third one has two devices as an extended resource."""
    name = f"node-{number}"
    capacity = {**_CAPACITY, **({_GPU: "2"} if number % 3 == 0 else {})}
    labels = {HOST: name, ZONE: f"zone-{number % 2}", "disk": ("ssd", "hdd")[number % 2]}
    status = {"capacity": capacity, "allocatable": capacity}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


def make_volume(name: str, node: str) -> Manifest:
    """Make a local volume of a node."""
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}]
    spec = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def _make_slice(node: str) -> Manifest:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
    }
    return {"kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": spec}


def make_operations(seed: int, seconds: float) -> list[Operation]:
    """Return the operations of *seconds* in the order of time. Equal arguments give equal operations."""
    return _Generator(Random(seed)).run(seconds)


class _Generator:
    """Draws operations one after another."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._pods: list[Manifest] = []
        self._gated: list[Manifest] = []
        self._deleted_nodes: list[int] = []
        self._next_number = 0
        self._operations: list[Operation] = []
        self._time = 0.0
        self._actions: dict[Callable[[], None], int] = {
            self._create_pod: 50,
            self._delete_pod: 24,
            self._finish_pod: 24,
            self._ungate_pod: 3,
            self._cordon: 6,
            self._taint: 4,
            self._relabel: 4,
            self._replace_node: 3,
            self._change_allocatable: 2,
            self._change_budget: 3,
        }

    def run(self, seconds: float) -> list[Operation]:
        while self._time < seconds:
            self._time += self._rng.expovariate(OPERATIONS_PER_SECOND)
            self._rng.choices(list(self._actions), list(self._actions.values()))[0]()
        return self._operations

    def _add(self, action: str, manifest: Manifest, change: Manifest | None = None) -> None:
        self._operations.append(Operation(round(self._time, 3), action, manifest, change or {}))

    def _create_pod(self) -> None:
        pod = _make_pod(self._next_number, self._rng)
        self._next_number += 1
        features = [feature for feature in FEATURES if self._rng.random() < FEATURES[feature]]
        for add_feature in features:
            for claim in add_feature(pod, self._rng):
                self._add("create", claim)
        self._pods.append(pod)
        if "schedulingGates" in pod["spec"]:
            self._gated.append(pod)
        self._add("create", pod)

    def _delete_pod(self) -> None:
        if self._pods:
            pod = self._pods.pop(self._rng.randrange(len(self._pods)))
            self._add("delete", reference(pod))
            for kind, name in _claims_of(pod):
                self._add("delete", {"kind": kind, "metadata": {"name": name, "namespace": _NAMESPACE}})

    def _finish_pod(self) -> None:
        if self._pods:
            self._add("finish", reference(self._rng.choice(self._pods[-30:])))

    def _ungate_pod(self) -> None:
        if self._gated:
            self._add("ungate", reference(self._gated.pop(0)))

    def _patch_node(self, change: Manifest) -> None:
        name = f"node-{self._rng.randrange(NODE_COUNT)}"
        self._add("patch", {"kind": "Node", "metadata": {"name": name}}, change)

    def _cordon(self) -> None:
        self._patch_node({"spec": {"unschedulable": self._rng.random() < 0.25}})

    def _taint(self) -> None:
        taints = [{"key": "dedicated", "value": "batch", "effect": self._rng.choice(("NoSchedule", "NoExecute"))}]
        self._patch_node({"spec": {"taints": taints if self._rng.random() < 0.2 else []}})

    def _relabel(self) -> None:
        self._patch_node({"metadata": {"labels": {"disk": self._rng.choice(("ssd", "hdd"))}}})

    def _change_allocatable(self) -> None:
        self._patch_node({"status": {"allocatable": {"memory": self._rng.choice(("6Gi", "8Gi"))}}})

    def _replace_node(self) -> None:
        """Create the node that was deleted last, or delete one."""
        if self._deleted_nodes:
            self._add("create", make_node(self._deleted_nodes.pop()))
        else:
            self._deleted_nodes.append(self._rng.randrange(NODE_COUNT))
            self._add("delete", {"kind": "Node", "metadata": {"name": f"node-{self._deleted_nodes[0]}"}})

    def _change_budget(self) -> None:
        app = self._rng.choice(APPS)
        spec = {"selector": {"matchLabels": {"app": app}}, "minAvailable": self._rng.randint(0, 3)}
        manifest = {"kind": "PodDisruptionBudget", "metadata": {"name": app, "namespace": _NAMESPACE}}
        self._add("delete" if self._rng.random() < 0.5 else "create", {**manifest, "spec": spec})


def reference(obj: Manifest) -> Manifest:
    """Return kind, name and namespace of an object."""
    names = {name: obj["metadata"][name] for name in ("name", "namespace") if name in obj["metadata"]}
    return {"kind": obj["kind"], "metadata": names}


def _make_pod(number: int, rng: Random) -> Manifest:
    requests = {"cpu": f"{rng.randint(1, 16) * 125}m", "memory": f"{rng.randint(1, 12) * 128}Mi"}
    metadata = {"name": f"pod-{number:03}", "namespace": _NAMESPACE, "labels": {"app": rng.choice(APPS)}}
    container: Manifest = {"name": "app", "image": "app", "resources": {"requests": requests}}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def _claims_of(pod: Manifest) -> list[tuple[str, str]]:
    volumes = [volume["persistentVolumeClaim"]["claimName"] for volume in pod["spec"].get("volumes", ())]
    devices = [claim["resourceClaimName"] for claim in pod["spec"].get("resourceClaims", ())]
    return [*(("PersistentVolumeClaim", name) for name in volumes), *(("ResourceClaim", name) for name in devices)]


def _select_disk(pod: Manifest, rng: Random) -> list[Manifest]:
    pod["spec"]["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
    return []


def _require_zone(pod: Manifest, rng: Random) -> list[Manifest]:
    expression = {"key": ZONE, "operator": rng.choice(("In", "NotIn")), "values": [f"zone-{rng.randrange(2)}"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: terms}
    return []


def _tolerate(pod: Manifest, rng: Random) -> list[Manifest]:
    key = rng.choice(("dedicated", "node.kubernetes.io/unschedulable"))
    pod["spec"].setdefault("tolerations", []).append({"key": key, "operator": "Exists"})
    return []


def _add_host_port(pod: Manifest, rng: Random) -> list[Manifest]:
    port: Manifest = {"containerPort": 8080, "hostPort": 8080, "protocol": rng.choice(("TCP", "UDP"))}
    if rng.random() < 0.3:
        port["hostIP"] = "127.0.0.1"
    pod["spec"]["containers"][0]["ports"] = [port]
    return []


def _avoid_own_app(pod: Manifest, rng: Random) -> list[Manifest]:
    term = {"labelSelector": {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}, "topologyKey": HOST}
    pod["spec"].setdefault("affinity", {})["podAntiAffinity"] = {REQUIRED: [term]}
    return []


def _set_priority(pod: Manifest, rng: Random) -> list[Manifest]:
    pod["spec"]["priorityClassName"] = rng.choice(("low", "high"))
    return []


def _request_gpu(pod: Manifest, rng: Random) -> list[Manifest]:
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"][_GPU] = "1"
    resources["limits"] = {_GPU: "1"}
    return []


def _mount_volume(pod: Manifest, rng: Random) -> list[Manifest]:
    name = f"{pod['metadata']['name']}-data"
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "resources": resources}
    metadata = {"name": name, "namespace": _NAMESPACE}
    return [{"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}]


def _use_device(pod: Manifest, rng: Random) -> list[Manifest]:
    name = f"{pod['metadata']['name']}-gpu"
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": rng.choice((1, 1, 2))}}
    metadata = {"name": name, "namespace": _NAMESPACE}
    return [{"kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": {"requests": [request]}}}]


def _gate(pod: Manifest, rng: Random) -> list[Manifest]:
    pod["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    return []


FEATURES: Final[dict[Callable[[Manifest, Random], list[Manifest]], float]] = {
    _select_disk: 0.15,
    _require_zone: 0.15,
    _tolerate: 0.2,
    _add_host_port: 0.15,
    _avoid_own_app: 0.1,
    _set_priority: 0.4,
    _request_gpu: 0.1,
    _mount_volume: 0.1,
    _use_device: 0.1,
    _gate: 0.05,
}
"""Changes of a pod, which return the claims to create before it, and their probabilities."""
