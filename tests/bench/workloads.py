"""The workloads of kube-scheduler's own performance tests: nodes of ten zones, and pods of one kind each."""

from collections.abc import Callable
from typing import Any

from extender.objects.codec import from_builtins
from extender.objects.node import Node
from extender.objects.pod import Pod

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NAMESPACE = "bench"


def node_body(number: int) -> dict[str, Any]:
    """4 CPUs, 32 GiB, 110 pods; one of ten zones."""
    name = f"node-{number}"
    size = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels = {HOST: name, ZONE: f"zone{number % 10}", "topology.kubernetes.io/region": "r1"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": size, "allocatable": size, "conditions": [ready]}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def a_node(number: int) -> Node:
    """As `node_body`."""
    return from_builtins(node_body(number), Node)


def _near(color: str, key: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key}


def _required(field: str, color: str, key: str) -> dict[str, Any]:
    return {"affinity": {field: {"requiredDuringSchedulingIgnoredDuringExecution": [_near(color, key)]}}}


def _preferred(field: str, color: str, key: str) -> dict[str, Any]:
    term = {"weight": 1, "podAffinityTerm": _near(color, key)}
    return {"affinity": {field: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread(action: str) -> dict[str, Any]:
    selector = {"matchLabels": {"color": "blue"}}
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": action, "labelSelector": selector}
        ]
    }


def _zones() -> dict[str, Any]:
    expression = {"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


SPECS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "basic": ({}, {}),
    "mixedshapes": ({}, {}),
    "nodeaffinity": ({}, _zones()),
    "podaffinity": ({"color": "blue"}, _required("podAffinity", "blue", ZONE)),
    "antiaffinity": ({"color": "green"}, _required("podAntiAffinity", "green", HOST)),
    "prefaffinity": ({"color": "red"}, _preferred("podAffinity", "red", HOST)),
    "prefantiaffinity": ({"color": "yellow"}, _preferred("podAntiAffinity", "yellow", HOST)),
    "spread": ({"color": "blue"}, _spread("DoNotSchedule")),
    "prefspread": ({"color": "blue"}, _spread("ScheduleAnyway")),
}
"""Labels and extra spec of the pods of each workload."""


def pod_body(workload: str, number: int, phase: str = "measure", namespace: str = NAMESPACE) -> dict[str, Any]:
    """Pod *number* of *workload*: 100 milli-CPU and 500 MiB, except where no two pods are alike."""
    labels, extra = SPECS[workload]
    requests = {"cpu": "100m", "memory": "500Mi"}
    if workload == "mixedshapes":
        # The same shape comes again after 38,800 pods, so those of the two phases are far apart.
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


def a_pod(workload: str, number: int, phase: str = "measure") -> Pod:
    """As `pod_body`."""
    return from_builtins(pod_body(workload, number, phase), Pod)


def pods(workload: str, count: int, phase: str, make: Callable[[str, int, str], Pod] = a_pod) -> list[Pod]:
    """*count* pods of *workload*."""
    return [make(workload, number, phase) for number in range(count)]
