"""Small clusters for the tests of planning: nodes and pods from short descriptions."""

import json
from collections.abc import Iterable
from typing import Any

from extender.analysis.recorded_cluster import load_cache, parse_recording
from extender.api.codec import from_builtins
from extender.api.defaulting import set_defaults
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache

ZONE = "topology.kubernetes.io/zone"


def node(name: str, cpu: str = "4", pods: int = 110, zone: str = "", **spec: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, **({ZONE: zone} if zone else {})}
    size = {"cpu": cpu, "memory": "32Gi", "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": size, "capacity": size},
    }


def pod(
    name: str,
    cpu: str = "1",
    on: str = "",
    owner: str = "ReplicaSet",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Make a pod on node *on*; with an *owner* kind it has a controller of that kind."""
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "u1", "controller": True}] if owner else []
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": owners}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
        "status": status or {"phase": "Running" if on else "Pending"},
    }


def budget(name: str, labels: dict[str, str], allowed: int) -> dict[str, Any]:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1, "expectedPods": 2}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "minAvailable": 1},
        "status": status,
    }


NO_REPLICA_SETS: dict[str, object] = {"apiVersion": "apps/v1", "kind": "ReplicaSetList", "items": []}
"""Says that the cluster has no ReplicaSet. Without it, answers about a pod of a ReplicaSet have a note."""


def as_list(objects: Iterable[dict[str, Any]]) -> str:
    """Return the text of a List with *objects*."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def make_cache(*objects: dict[str, Any]) -> Cache:
    """Load *objects* as a recording."""
    return load_cache(parse_recording(as_list(objects).encode(), "test"))


def decode_pod(body: dict[str, Any]) -> Pod:
    """Decode one pod with the API server's defaults."""
    return set_defaults(from_builtins(body, Pod))


SETUP = wiring.build_setup()
