"""The default objects of scheduler_perf, and the paths of objects on the API server."""

from collections.abc import Mapping
from typing import Any

_CLUSTER_KINDS = frozenset(
    {
        "CSINode",
        "DeviceClass",
        "DeviceTaintRule",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "StorageClass",
    }
)
DEFAULT_NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"generateName": "scheduler-perf-"},
    "status": {
        "capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"},
        "conditions": [{"status": "True", "type": "Ready"}],
    },
}
DEFAULT_CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "true"}},
    "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
}


def make_path(obj: Mapping[str, Any], namespace: str) -> str:
    """Return the path of the collection of *obj*, whose plural is regular."""
    version, kind = obj["apiVersion"], obj["kind"]
    plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
    scope = "" if kind in _CLUSTER_KINDS else f"/namespaces/{namespace}"
    return f"/{'apis' if '/' in version else 'api'}/{version}{scope}/{plural}"


def make_selector(labels: Mapping[str, str]) -> str:
    """Return the query parameter that selects objects with *labels*."""
    return "labelSelector=" + ",".join(f"{key}%3D{value}" for key, value in labels.items())


def make_pods_path(namespace: str, labels: Mapping[str, str] | None, field_selector: str) -> str:
    """Return the path of a list of the pods of *namespace* (empty: all)."""
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/api/v1{scope}/pods?{make_selector(labels or {})}&fieldSelector={field_selector}"


def make_csi_node(name: str, strategy: Mapping[str, Any]) -> dict[str, Any]:
    """Make the CSINode of a node by the `nodeAllocatableStrategy` of its operation."""
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": allocatable, "topologyKeys": []}
        for driver, allocatable in strategy["csiNodeAllocatable"].items()
    ]
    migrated = ",".join(strategy.get("migratedPlugins", ()))
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}
