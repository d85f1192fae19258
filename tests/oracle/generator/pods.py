"""Adds random pods: bound ones, and those that wait to be scheduled."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.devices import add_claims
from tests.oracle.generator.resources import add_resize, set_resources
from tests.oracle.generator.terms import (
    add_images,
    add_node_affinity,
    add_pod_affinity,
    add_ports,
    add_spread,
    add_tolerations,
)
from tests.oracle.generator.volumes import add_volumes

_PRIORITIES: Final = (-10, 0, 0, 0, 100, 1000)


def add_pods(builder: ClusterBuilder, bound: int, pending: int, chances: dict[str, float], scheduler: str) -> None:
    """Add pods. *chances* has the probability of each group of fields, such as `spread`."""
    for number in range(bound + pending):
        node = builder.pick(builder.nodes)["metadata"]["name"] if builder.nodes and number < bound else ""
        if number < bound and not node:
            continue
        _add_pod(builder, f"{'run' if node else 'pod'}-{number:02}", node, chances, scheduler)


def _add_pod(builder: ClusterBuilder, name: str, node: str, chances: dict[str, float], scheduler: str) -> None:
    def wants(group: str) -> bool:
        return builder.chance(chances.get(group, 0.0) * (0.6 if node else 1.0))

    pod = _make_pod(builder, node, scheduler)
    namespace = builder.pick(builder.namespaces)
    set_resources(builder, pod, rich=wants("resources"))
    additions = {
        "tolerations": add_tolerations,
        "nodeaffinity": add_node_affinity,
        "images": add_images,
        "interpodaffinity": add_pod_affinity,
        "spread": add_spread,
        "ports": add_ports,
    }
    for group, add in additions.items():
        if wants(group):
            add(builder, pod)
    if wants("volumes"):
        add_volumes(builder, pod, name, namespace, node)
    if wants("devices"):
        add_claims(builder, pod, name, namespace, node)
    if node and wants("resize"):
        add_resize(builder, pod)
    if wants("priority"):
        pod["spec"]["priority"] = builder.pick(_PRIORITIES)
    if not node:
        _add_pending_fields(builder, pod, chances)
    elif wants("terminating"):
        pod["metadata"]["deletionTimestamp"] = "2026-02-28T23:59:00Z"
        pod["metadata"]["deletionGracePeriodSeconds"] = 30
        if builder.chance(0.5):
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
            pod["status"].setdefault("conditions", []).append(condition)
    metadata = pod.pop("metadata")
    builder.add("v1", "Pod", name, namespace, metadata=metadata, spec=pod["spec"], status=pod["status"])


def _make_pod(builder: ClusterBuilder, node: str, scheduler: str) -> Raw:
    count = builder.pick((1, 1, 1, 2, 3))
    containers: list[Raw] = [{"name": f"c{number}", "image": "busybox:1"} for number in range(count)]
    spec: dict[str, Any] = {
        "containers": containers,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "schedulerName": scheduler if builder.chance(0.97) else "other-scheduler",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    status: Raw = {"phase": "Pending"}
    if node:
        spec["nodeName"] = node
        started = builder.rng.randrange(28 * 24 * 3600)
        day, second = divmod(started, 24 * 3600)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        status = {"phase": "Running", "startTime": f"2026-02-{day + 1:02}T{clock}Z"}
        if builder.chance(0.02):
            status["phase"] = builder.pick(("Succeeded", "Failed"))
    return {"metadata": {"labels": builder.pod_labels()}, "spec": spec, "status": status}


def _add_pending_fields(builder: ClusterBuilder, pod: Raw, chances: dict[str, float]) -> None:
    if builder.chance(chances.get("gates", 0.0)):
        pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    if builder.chance(chances.get("nominated", 0.0)) and builder.nodes:
        names = [node["metadata"]["name"] for node in builder.nodes] + ["missing"]
        pod["status"]["nominatedNodeName"] = builder.pick(names)
    if builder.chance(chances.get("priority", 0.0) * 0.8):
        pod["spec"]["priority"] = builder.pick((0, 100, 1000, 2000))
    if builder.chance(chances.get("priority", 0.0) * 0.1):
        pod["spec"]["preemptionPolicy"] = "Never"
    if builder.chance(chances.get("features", 0.0) * 0.4):
        pod["spec"]["hostNetwork"] = True
        pod["spec"]["hostUsers"] = False


def add_budgets(builder: ClusterBuilder) -> None:
    """Add disruption budgets."""
    for number in range(builder.rng.randint(0, 3)):
        allowed = builder.pick((0, 0, 1, 2))
        spec = {"minAvailable": 1, "selector": builder.label_selector()}
        status = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
        builder.add(
            "policy/v1",
            "PodDisruptionBudget",
            f"budget-{number}",
            builder.pick(builder.namespaces),
            spec=spec,
            status=status,
        )


def add_services(builder: ClusterBuilder) -> None:
    """Add services, replica sets and stateful sets, from which the default spread constraints come."""
    for number in range(builder.rng.randint(0, 2)):
        spec: Raw = {"selector": {"app": builder.pick(("a", "b", "c"))}, "ports": [{"port": 80, "protocol": "TCP"}]}
        builder.add("v1", "Service", f"service-{number}", builder.pick(builder.namespaces), spec=spec)
    pods = [item for item in builder.items if item["kind"] == "Pod"]
    for number, kind in enumerate(builder.sample(("ReplicaSet", "StatefulSet"), 0, 2)):
        namespace, app = builder.pick(builder.namespaces), builder.pick(("a", "b", "c"))
        selector = {"matchLabels": {"app": app}}
        template: Raw = {"metadata": {"labels": {"app": app}}, "spec": {}}
        spec = {"replicas": 2, "selector": selector, "template": template}
        owner = builder.add("apps/v1", kind, f"owner-{number}", namespace, spec=spec)
        for pod in pods:
            if pod["metadata"]["namespace"] == namespace and pod["metadata"]["labels"].get("app") == app:
                reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner["metadata"]["name"]}
                pod["metadata"]["ownerReferences"] = [
                    {**reference, "uid": owner["metadata"]["uid"], "controller": True}
                ]
