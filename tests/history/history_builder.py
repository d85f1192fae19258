"""Histories written by hand: each call adds one change."""

from typing import Any, Final

from tests.history.cluster_state import Change, History
from tests.history.node_rules import HOST, REQUIRED
from tests.scheduling_history import Binding, LeaseRenewal

UNSCHEDULABLE: Final = [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
]
"""The conditions of a pod that the scheduler tried to place."""


class HistoryBuilder:
    """Builds a history with increasing revisions.

    Attributes:
        time: the time of the next change in seconds; each change adds 0.01.
    """

    def __init__(self) -> None:
        self.time = 0.0
        self._changes: list[Change] = []
        self._bindings: list[Binding] = []
        self._renewals: list[LeaseRenewal] = []

    def history(self) -> History:
        """Return the history."""
        return History(tuple(self._changes), tuple(self._bindings), tuple(self._renewals))

    def wait(self, seconds: float) -> None:
        """Let the next change happen later."""
        self.time += seconds

    def add(self, kind: str, key: str, obj: dict[str, Any] | None) -> None:
        """Add a state of an object."""
        self.time += 0.01
        namespace, _, name = key.rpartition("/")
        if obj is not None:
            metadata = {"name": name, "uid": f"{kind}:{key}", **({"namespace": namespace} if namespace else {})}
            obj = {"spec": {}, **obj, "kind": kind, "metadata": {**metadata, **obj.get("metadata", {})}}
        self._changes.append(Change(len(self._changes) + 1, self.time, kind, key, obj))

    def node(self, name: str = "alpha", *, labels: dict[str, str] | None = None, cpu: str = "4", **spec: Any) -> None:
        """Add a state of a node with four CPUs, one GPU and room for three pods."""
        allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "3", "example.com/gpu": "1"}
        metadata = {"labels": {HOST: name, **(labels or {})}}
        self.add("Node", name, {"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable}})

    def pod(
        self,
        name: str,
        node: str = "",
        *,
        uid: str = "",
        requests: dict[str, str] | None = None,
        port: int = 0,
        status: dict[str, Any] | None = None,
        app: str = "",
        **spec: Any,
    ) -> None:
        """Add a state of a pod; *node* is its node name."""
        container: dict[str, Any] = {"name": "app", "resources": {"requests": requests or {}}}
        if port:
            container["ports"] = [{"hostPort": port}]
        body = {"containers": [container], **({"nodeName": node} if node else {}), **spec}
        metadata = {"uid": uid or name, "labels": {"app": app or name}}
        default = {"phase": "Pending", **({} if node else {"conditions": UNSCHEDULABLE})}
        self.add("Pod", f"default/{name}", {"metadata": metadata, "spec": body, "status": status or default})

    def delete(self, kind: str, key: str) -> None:
        """Add the deletion of an object."""
        self.add(kind, key, None)

    def binding(self, uid: str, actor: str = "one", *, accepted: bool = True) -> None:
        """Add a request that binds a pod."""
        self._bindings.append(Binding(actor, uid, self.time, accepted))

    def lease(self, actor: str) -> None:
        """Add a renewal of the lease by a replica."""
        self.add("Lease", "kube-system/kube-scheduler", {"spec": {"holderIdentity": f"host_{actor}"}})
        self._renewals.append(LeaseRenewal(actor, f"host_{actor}", self.time))

    def volume(self, name: str, node: str, **claim_ref: str) -> None:
        """Add a local volume on a node; *claim_ref* are the fields of the reference to its claim."""
        spec = {
            "storageClassName": "local",
            "capacity": {"storage": "5Gi"},
            "nodeAffinity": {"required": host_selector(node)},
            **({"claimRef": claim_ref} if claim_ref else {}),
        }
        self.add("PersistentVolume", name, {"spec": spec, "status": {"phase": "Available"}})

    def claim(self, name: str, volume: str = "", size: str = "1Gi") -> None:
        """Add a PersistentVolumeClaim that is bound to a volume, or not."""
        spec = {"storageClassName": "local", "resources": {"requests": {"storage": size}}, "volumeName": volume}
        self.add("PersistentVolumeClaim", f"default/{name}", {"spec": spec})

    def device_claim(self, name: str, device: str = "", *, node: str = "alpha", reserved_for: str = "") -> None:
        """Add a ResourceClaim with an allocated device, or without one."""
        status: dict[str, Any] = {}
        if device:
            results = [{"driver": "gpu.example.com", "pool": node, "device": device}]
            status["allocation"] = {"devices": {"results": results}, "nodeSelector": host_selector(node)}
            status["reservedFor"] = [{"resource": "pods", "name": reserved_for, "uid": reserved_for}]
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
        self.add("ResourceClaim", f"default/{name}", {"spec": spec, "status": status})

    def device_slice(self, node: str, *devices: str) -> None:
        """Add the devices of a node."""
        spec = {"driver": "gpu.example.com", "nodeName": node, "pool": {"name": node}}
        self.add("ResourceSlice", node, {"spec": {**spec, "devices": [{"name": device} for device in devices]}})


def host_selector(node: str) -> dict[str, Any]:
    """Return a node selector with one term that matches the host name."""
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}]}


def node_affinity(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a required node affinity with one requirement."""
    expression = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


def anti_affinity(app: str) -> dict[str, Any]:
    """Return a required anti-affinity by host to the pods of an app."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def volume_of(claim: str) -> list[dict[str, Any]]:
    """Return the volumes of a pod that mounts a claim."""
    return [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]


def device_of(claim: str) -> list[dict[str, Any]]:
    """Return the resource claims of a pod that uses one."""
    return [{"name": "gpu", "resourceClaimName": claim}]
