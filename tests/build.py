"""Builders of small clusters for tests: nodes, pods and the state that holds them.

Everything is made the way it comes from the API: of builtins with the API's own names, decoded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.objects.codec import from_builtins
from extender.objects.kinds import KINDS
from extender.objects.node import Node
from extender.objects.pod import Pod

Raw = Mapping[str, Any]


def a_node(
    name: str = "node",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Raw] = (),
    unschedulable: bool = False,
    allocatable: Mapping[str, Any] | None = None,
    images: Sequence[Raw] = (),
    features: Sequence[str] = (),
    metadata: Raw | None = None,
    status: Raw | None = None,
) -> Node:
    """A node with 4 CPUs, 16Gi and room for 110 pods unless *allocatable* says otherwise.

    *metadata* and *status* are raw and win over what the other arguments say.
    """
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"} if allocatable is None else dict(allocatable)
    return from_builtins(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {}), **(metadata or {})},
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {
                "allocatable": room,
                "capacity": room,
                "images": list(images),
                "declaredFeatures": list(features),
                **(status or {}),
            },
        },
        Node,
    )


def a_pod(
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
    """A pod with one container that asks for *requests*; on *node*, or waiting.

    *metadata*, *spec* and *status* are raw and win over what the other arguments say.
    """
    container = {"name": "app", "image": "app", "resources": {"requests": dict(requests or {})}}
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "labels": dict(labels or {})}
    body = {"schedulerName": "default-scheduler", "priority": priority, "nodeName": node, "containers": [container]}
    return from_builtins(
        {"metadata": {**meta, **(metadata or {})}, "spec": {**body, **(spec or {})}, "status": dict(status or {})}, Pod
    )


def an_object(raw: Raw) -> Any:
    """The object that *raw*, with its `apiVersion` and `kind`, describes."""
    return from_builtins(dict(raw), KINDS[raw["apiVersion"], raw["kind"]])


def a_cluster(*things: Any, gates: FeatureGates | None = None) -> ClusterState:
    """A cluster of these nodes, pods and other objects."""
    cluster = ClusterState(gates)
    for thing in things:
        if isinstance(thing, Node):
            cluster.put_node(thing)
        elif isinstance(thing, Pod):
            cluster.put_pod(thing)
        else:
            cluster.put_object(thing)
    return cluster


def a_query(pod: Pod | None = None, cluster: ClusterState | None = None) -> PodQuery:
    """*pod* as it asks *cluster* (an empty one if None) for a node."""
    return (cluster or ClusterState()).snapshot().query(pod or a_pod())
