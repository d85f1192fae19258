"""Builders of nodes, pods and caches for tests.

Objects are decoded from builtins in the format of the API.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from extender.api.codec import from_builtins
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.scheme import KINDS
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.config.feature_gates import FeatureGates

Raw = Mapping[str, Any]


def make_node(
    name: str = "node",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Raw] = (),
    unschedulable: bool = False,
    allocatable: Mapping[str, Any] | None = None,
    images: Sequence[Raw] = (),
    features: Sequence[str] = (),
    metadata: Raw | None = None,
    spec: Raw | None = None,
    status: Raw | None = None,
) -> Node:
    """Make a node, by default with 4 CPUs, 16Gi and 110 pods.

    The fields of *metadata*, *spec* and *status* override those of the other arguments.
    """
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "110"} if allocatable is None else dict(allocatable)
    return from_builtins(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {}), **(metadata or {})},
            "spec": {"taints": list(taints), "unschedulable": unschedulable, **(spec or {})},
            "status": {
                "allocatable": capacity,
                "capacity": capacity,
                "images": list(images),
                "declaredFeatures": list(features),
                **(status or {}),
            },
        },
        Node,
    )


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    node: str = "",
    labels: Mapping[str, str] | None = None,
    priority: int | None = None,
    requests: Mapping[str, Any] | None = None,
    metadata: Raw | None = None,
    spec: Raw | None = None,
    status: Raw | None = None,
) -> Pod:
    """Make a pod with one container, assigned to *node* or pending.

    The fields of *metadata*, *spec* and *status* override those of the other arguments.
    """
    container = {"name": "app", "image": "app", "resources": {"requests": dict(requests or {})}}
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "labels": dict(labels or {}),
    }
    body = {
        "schedulerName": "default-scheduler",
        "priority": priority,
        "nodeName": node,
        "containers": [container],
    }
    return from_builtins(
        {
            "metadata": {**meta, **(metadata or {})},
            "spec": {**body, **(spec or {})},
            "status": dict(status or {}),
        },
        Pod,
    )


def make_object(raw: Raw) -> Any:
    """Decode an object by its `apiVersion` and `kind`."""
    return from_builtins(dict(raw), KINDS[raw["apiVersion"], raw["kind"]])


def make_cluster(
    *objects: Any, gates: FeatureGates | None = None, group_schedulers: Collection[str] | None = None
) -> Cache:
    """Make a cache of nodes, pods and other objects; see `Cache.__init__`."""
    cache = Cache(gates, group_schedulers)
    for obj in objects:
        if isinstance(obj, Node):
            cache.add_or_update_node(obj)
        elif isinstance(obj, Pod):
            cache.add_or_update_pod(obj)
        else:
            cache.add_or_update_object(obj)
    return cache


def make_pod_info(pod: Pod | None = None, cluster: Cache | None = None) -> PodInfo:
    """Make the PodInfo of *pod* in the snapshot of *cluster*, by default an empty cache."""
    return (cluster or Cache()).snapshot().make_pod_info(pod or make_pod())
