"""The workloads of the performance tests of kube-scheduler: nodes in ten zones, and equal pods per workload."""

from collections.abc import Callable
from typing import Any

from extender.api.codec import from_builtins
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NAMESPACE = "bench"


def node_body(number: int) -> dict[str, Any]:
    """Make a node with 4 CPUs, 32 GiB and 110 pods in one of ten zones."""
    name = f"node-{number}"
    size = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels = {HOST: name, ZONE: f"zone{number % 10}", "topology.kubernetes.io/region": "r1"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": size, "allocatable": size, "conditions": [ready]}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def make_node(number: int) -> Node:
    """Decode `node_body`."""
    return from_builtins(node_body(number), Node)


def _affinity_term(color: str, key: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key}


def _required_affinity(field: str, color: str, key: str) -> dict[str, Any]:
    return {"affinity": {field: {"requiredDuringSchedulingIgnoredDuringExecution": [_affinity_term(color, key)]}}}


def _preferred_affinity(field: str, color: str, key: str) -> dict[str, Any]:
    term = {"weight": 1, "podAffinityTerm": _affinity_term(color, key)}
    return {"affinity": {field: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread_constraint(action: str) -> dict[str, Any]:
    selector = {"matchLabels": {"color": "blue"}}
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": action, "labelSelector": selector}
        ]
    }


def _zone_affinity() -> dict[str, Any]:
    expression = {"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


SPECS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "basic": ({}, {}),
    "mixedshapes": ({}, {}),
    "nodeaffinity": ({}, _zone_affinity()),
    "podaffinity": ({"color": "blue"}, _required_affinity("podAffinity", "blue", ZONE)),
    "antiaffinity": ({"color": "green"}, _required_affinity("podAntiAffinity", "green", HOST)),
    "prefaffinity": ({"color": "red"}, _preferred_affinity("podAffinity", "red", HOST)),
    "prefantiaffinity": ({"color": "yellow"}, _preferred_affinity("podAntiAffinity", "yellow", HOST)),
    "spread": ({"color": "blue"}, _spread_constraint("DoNotSchedule")),
    "prefspread": ({"color": "blue"}, _spread_constraint("ScheduleAnyway")),
}
"""Labels and additional spec fields of the pods of each workload."""


def pod_body(workload: str, number: int, phase: str = "measure", namespace: str = NAMESPACE) -> dict[str, Any]:
    """Make pod *number* of a workload, with 100 milli-CPU and 500 MiB; those of `mixedshapes` all differ."""
    labels, extra = SPECS[workload]
    requests = {"cpu": "100m", "memory": "500Mi"}
    if workload == "mixedshapes":
        # Requests and labels repeat after 38,800 pods; the two phases have different ones.
        kind = number if phase == "init" else number + 19_400
        requests = {"cpu": f"{50 + (kind * 37) % 100}m", "memory": f"{100 + (kind * 91) % 400}Mi"}
        labels = {"app": f"a{kind % 97}"}
    if phase == "init" and workload in ("spread", "prefspread"):
        extra = {}
    name = f"{phase}-{number}"
    container = {"name": "pause", "image": "registry.k8s.io/pause:3.10.1", "resources": {"requests": requests}}
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels},
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **extra},
    }


def make_pod(workload: str, number: int, phase: str = "measure") -> Pod:
    """Decode `pod_body`."""
    return from_builtins(pod_body(workload, number, phase), Pod)


def make_pods(workload: str, count: int, phase: str, make: Callable[[str, int, str], Pod] = make_pod) -> list[Pod]:
    """Make *count* pods of a workload."""
    return [make(workload, number, phase) for number in range(count)]
