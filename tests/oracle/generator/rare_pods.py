"""Adds rare fields and values to the pods, nodes and budgets of a cluster: notations, statuses, selectors, owners."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.nodes import IMAGES
from tests.oracle.generator.terms import TOPOLOGY_KEYS, add_node_inclusion_policies, node_term

_AMOUNTS: Final = {
    "cpu": ("1001m", "33m", "0", "3"),
    "memory": ("100m", "1500m", "1e9", "129M", "1", "0", "1200Ki", "3000000001"),
    "ephemeral-storage": ("1G", "1", "500m", "0"),
}
_RESOURCES: Final = (
    "attachable-volumes-aws-ebs",
    "hugepages-1Gi",
    "hugepages-2Mi",
    "kubernetes.io/slots",
    "example.com/fpga",
)


def add_rare_pod_fields(builder: ClusterBuilder) -> None:
    """Change some fields of the nodes, pods and budgets that are there."""
    for node in builder.nodes:
        _change_node(builder, node)
    started: set[str] = set()
    for pod in [item for item in builder.items if item["kind"] == "Pod"]:
        changes = [
            _change_amounts, _change_pod_level, _change_statuses, _change_tolerations, _change_node_terms,
            _change_ports, _change_images, _change_affinity, _change_spread, _change_metadata, _change_priority,
        ]  # fmt: skip
        for change in changes:
            if builder.chance(0.12):
                change(builder, pod)
        if "nodeName" in pod["spec"] and not started and builder.chance(0.05):
            pod["status"].pop("startTime", None)
            started.add(pod["metadata"]["name"])
    for budget in [item for item in builder.items if item["kind"] == "PodDisruptionBudget"]:
        _change_budget(builder, budget)
    if builder.chance(0.1):
        _add_replication_controller(builder)


def _change_node(builder: ClusterBuilder, node: Raw) -> None:
    _change_node_labels(builder, node["metadata"]["labels"])
    _change_node_status(builder, node["status"])
    if builder.chance(0.1):
        effect = builder.pick(("NoSchedule", "PreferNoSchedule", "NoExecute"))
        taint = {"key": "level", "value": builder.pick(("5", "-1", "05", "100", "x")), "effect": effect}
        node["spec"].setdefault("taints", []).append(taint)


def _change_node_labels(builder: ClusterBuilder, labels: Raw) -> None:
    if builder.chance(0.1):
        for name in ("zone", "region"):
            value = labels.get(f"topology.kubernetes.io/{name}")
            if value:
                labels[f"failure-domain.beta.kubernetes.io/{name}"] = builder.pick((value, "z9"))
                if builder.chance(0.5):
                    del labels[f"topology.kubernetes.io/{name}"]
    if builder.chance(0.05):
        labels["kubernetes.io/hostname"] = "node-0"
    elif builder.chance(0.03):
        del labels["kubernetes.io/hostname"]
    if builder.chance(0.05):
        labels["rank"] = builder.pick(("x", "", "-3", "99999999999999999999", "07", "+2"))


def _change_node_status(builder: ClusterBuilder, status: Raw) -> None:
    if builder.chance(0.1):
        status["allocatable"].pop(builder.pick(("cpu", "memory", "pods", "ephemeral-storage")), None)
    if builder.chance(0.02):
        del status["allocatable"]
    elif builder.chance(0.15):
        status["allocatable"][builder.pick(_RESOURCES)] = builder.pick(("0", "1", "3", "2Gi"))
    for entry in status.get("images", []):
        if builder.chance(0.2):
            entry["names"] += builder.sample([name for name, _ in IMAGES] + ["registry.example.com/web:v2"], 1, 2)
        if builder.chance(0.1):
            entry["sizeBytes"] = builder.pick((0, 23 << 20, 1000 << 20, 5))
        if builder.chance(0.05):
            entry["names"] = []


def _containers(pod: Raw) -> list[Raw]:
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]


def _change_amounts(builder: ClusterBuilder, pod: Raw) -> None:
    has_pod_level = "resources" in pod["spec"]  # to which an API server would add resources with limits
    for container in _containers(pod):
        resources = container.setdefault("resources", {})
        requests = resources.setdefault("requests", {})
        for name, amounts in _AMOUNTS.items():
            if builder.chance(0.5):
                requests[name] = builder.pick(amounts)
        if builder.chance(0.3) and not has_pod_level:
            name = builder.pick(_RESOURCES)
            requests[name] = builder.pick(("0", "1", "2", "1Gi"))
            resources.setdefault("limits", {})[name] = requests[name]
        if builder.chance(0.2):
            resources["limits"] = {"cpu": "2", "memory": "1Gi"}
            requests.update(builder.pick(({"cpu": "2"}, {"memory": "1Gi"})))
    if builder.chance(0.2):
        overhead = {"cpu": "1500m", "memory": "1", "ephemeral-storage": "1Gi", "example.com/fpga": "1"}
        pod["spec"]["overhead"] = dict(builder.sample(list(overhead.items()), 1, 3))


def _change_pod_level(builder: ClusterBuilder, pod: Raw) -> None:
    amounts = {"cpu": builder.pick(("2", "1500m")), "memory": "1Gi", "hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi"}
    names = {name for container in _containers(pod) for name in container.get("resources", {}).get("limits", {})}
    names |= {"cpu", "memory", *builder.sample(list(amounts), 0, 1)}
    requests = {name: amount for name, amount in amounts.items() if name in names}
    pod["spec"]["resources"] = {"requests": requests}
    if builder.chance(0.3):
        pod["spec"]["resources"]["limits"] = dict(requests)
    if builder.chance(0.5):
        smaller = {"cpu": builder.pick(("1", "3", "0")), "memory": builder.pick(("2Gi", "1Mi")), "hugepages-2Mi": "8Mi"}
        if builder.chance(0.7):
            changed = dict(builder.sample(list(smaller.items()), 1, 3))
            pod["status"]["resources"] = {builder.pick(("requests", "requests", "limits")): changed}
        if builder.chance(0.7):
            pod["status"]["allocatedResources"] = dict(builder.sample(list(smaller.items()), 1, 3))


def _change_statuses(builder: ClusterBuilder, pod: Raw) -> None:
    for field, statuses in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        entries = []
        for container in pod["spec"].get(field, []):
            if builder.chance(0.2):
                continue
            status: Raw = {"name": container["name"], "image": "i", "imageID": "", "ready": True, "restartCount": 0}
            for place in ("requests", "allocated"):
                amounts: Any = {}
                for name in ("cpu", "memory", "ephemeral-storage", "example.com/gpu"):
                    if builder.chance(0.6 if name in ("cpu", "memory") else 0.1):
                        amounts[name] = builder.pick(_AMOUNTS.get(name, ("1", "2")))
                if amounts and builder.chance(0.8):
                    if place == "requests":
                        status["resources"] = {builder.pick(("requests", "requests", "requests", "limits")): amounts}
                    else:
                        status["allocatedResources"] = amounts
            entries.append(status)
        if builder.chance(0.1):
            entries.append({"name": "other", "image": "i", "imageID": "", "ready": True, "restartCount": 0})
        if entries:
            pod["status"][statuses] = entries
    if builder.chance(0.6):
        pod["status"].setdefault("conditions", []).append(
            {
                "type": builder.pick(("PodResizePending", "PodResizePending", "PodResizeInProgress")),
                "status": builder.pick(("True", "True", "False", "Unknown")),
                "reason": builder.pick(("Infeasible", "Infeasible", "Deferred", "Error")),
            }
        )


def _change_tolerations(builder: ClusterBuilder, pod: Raw) -> None:
    pod["spec"]["tolerations"] = builder.sample(
        (
            {"operator": "Exists", "effect": builder.pick(("NoSchedule", "PreferNoSchedule", "NoExecute"))},
            {"key": "level", "operator": builder.pick(("Lt", "Gt")), "value": builder.pick(("4", "5", "-2", "x"))},
            {"key": "level", "value": builder.pick(("5", "05"))},
            {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
            {"key": "maintenance"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "PreferNoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        ),
        1,
        4,
    )


def _change_node_terms(builder: ClusterBuilder, pod: Raw) -> None:
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    names = [node["metadata"]["name"] for node in builder.nodes] + ["missing"]
    terms = []
    for _ in range(builder.rng.randint(1, 2)):
        term = node_term(builder) if builder.chance(0.4) else {}
        operator = builder.pick(("In", "In", "In", "NotIn"))
        fields = [
            {"key": "metadata.name", "operator": operator, "values": [builder.pick(names)]}
            for _ in range(builder.pick((1, 1, 2)))
        ]
        terms.append({**term, "matchFields": fields})
    if builder.chance(0.6):
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    else:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": builder.pick((1, 100)), "preference": term} for term in terms
        ]


def _change_ports(builder: ClusterBuilder, pod: Raw) -> None:
    for container in _containers(pod):
        port: Raw = {"containerPort": 80, "hostPort": builder.pick((80, 8080))}
        if builder.chance(0.5):
            port["protocol"] = builder.pick(("TCP", "UDP", "SCTP"))
        if builder.chance(0.5):
            port["hostIP"] = builder.pick(("", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::", "fd00::1"))  # noqa: S104
        container["ports"] = [port]


def _change_images(builder: ClusterBuilder, pod: Raw) -> None:
    names = [name for name, _ in IMAGES] + ["registry.example.com:5000/job", "docker.io/library/redis", "web:v1", ""]
    names += ["registry.example.com/web:v2", "registry.example.com/web:v1@sha256:" + "a" * 64]
    for container in _containers(pod):
        container["image"] = builder.pick(names)
    volumes = pod["spec"].setdefault("volumes", [])
    for number in range(builder.rng.randint(0, 3)):
        volumes.append({"name": f"image-{number}", "image": {"reference": builder.pick(names)}})


def _change_affinity(builder: ClusterBuilder, pod: Raw) -> None:
    without_app: Raw = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    selectors: tuple[Raw | None, ...] = (None, {}, without_app, builder.label_selector())
    for field in builder.sample(("podAffinity", "podAntiAffinity"), 1, 2):
        terms = []
        for _ in range(builder.rng.randint(1, 3)):
            term: Raw = {"topologyKey": builder.pick((*TOPOLOGY_KEYS, "no/such-key", "rank"))}
            selector = builder.pick(selectors)
            if selector is not None:
                term["labelSelector"] = selector
            if builder.chance(0.4):
                term["namespaceSelector"] = builder.pick(
                    (
                        {},
                        builder.label_selector(),
                        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]},
                        {"matchLabels": {"kubernetes.io/metadata.name": builder.pick(builder.namespaces)}},
                    )
                )
            if builder.chance(0.3):
                term["namespaces"] = builder.sample((*builder.namespaces, "missing"), 1, 3)
            terms.append(term)
        affinity: Raw = {}
        if builder.chance(0.5):
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = terms
        else:
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": builder.pick((1, 33, 100)), "podAffinityTerm": term} for term in terms
            ]
        pod["spec"].setdefault("affinity", {})[field] = affinity


def _change_spread(builder: ClusterBuilder, pod: Raw) -> None:
    constraints: list[Raw] = []
    seen = set()
    for _ in range(builder.rng.randint(1, 4)):
        key = builder.pick((*TOPOLOGY_KEYS, *TOPOLOGY_KEYS, "no/such-key", "rank", "disk"))
        when = builder.pick(("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"))
        if (key, when) in seen:
            continue
        seen.add((key, when))
        constraint: Raw = {"maxSkew": builder.pick((1, 2, 7)), "topologyKey": key, "whenUnsatisfiable": when}
        selector = builder.pick((None, {}, builder.label_selector(), builder.label_selector()))
        if selector is not None:
            constraint["labelSelector"] = selector
            if selector and builder.chance(0.2):
                constraint["matchLabelKeys"] = builder.sample(("tier", "version", "missing"), 1, 2)
        if when == "DoNotSchedule" and builder.chance(0.3):
            constraint["minDomains"] = builder.pick((1, 2, 5, 9))
        add_node_inclusion_policies(builder, constraint, 0.5)
        constraints.append(constraint)
    pod["spec"]["topologySpreadConstraints"] = constraints


def _change_metadata(builder: ClusterBuilder, pod: Raw) -> None:
    metadata, status = pod["metadata"], pod["status"]
    if builder.chance(0.3):
        metadata.pop("labels", None)
    if "nodeName" in pod["spec"]:
        if builder.chance(0.5):
            metadata["deletionTimestamp"] = "2026-02-28T23:59:00Z"
            metadata["deletionGracePeriodSeconds"] = 30
        if builder.chance(0.3):
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
            status.setdefault("conditions", []).append(condition)
    elif builder.nodes and builder.chance(0.6):
        status["nominatedNodeName"] = builder.pick(builder.nodes)["metadata"]["name"]
    if builder.chance(0.2):
        pod["spec"]["schedulingGates"] = [{"name": name} for name in builder.sample(("b.io/b", "a.io/a", "c"), 1, 3)]


def _change_priority(builder: ClusterBuilder, pod: Raw) -> None:
    pod["spec"]["priority"] = builder.pick((-2147483648, 2000001000, 2000000000, 1000000000, 1, -1))
    if builder.chance(0.2):
        del pod["spec"]["priority"]
    if builder.chance(0.2):
        del pod["spec"]["preemptionPolicy"]


def _change_budget(builder: ClusterBuilder, budget: Raw) -> None:
    if builder.chance(0.2):
        budget["spec"]["selector"] = {}
    elif builder.chance(0.1):
        del budget["spec"]["selector"]
    if builder.chance(0.3):
        pods = [item["metadata"]["name"] for item in builder.items if item["kind"] == "Pod"]
        names = builder.sample(pods, 0, 4) if pods else []
        budget["status"]["disruptedPods"] = dict.fromkeys(names, "2026-02-28T23:59:00Z")
    if builder.chance(0.2):
        budget["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    if builder.chance(0.1):
        budget["status"]["disruptionsAllowed"] = builder.pick((-1, 5))


def _add_replication_controller(builder: ClusterBuilder) -> None:
    namespace, app = builder.pick(builder.namespaces), builder.pick(("a", "b", "c"))
    spec = {"replicas": 2, "selector": builder.pick(({"app": app}, {"tier": "front"}, {}))}
    owner = builder.add("v1", "ReplicationController", "controller", namespace, spec=spec)
    for pod in [item for item in builder.items if item["kind"] == "Pod" and item["metadata"]["namespace"] == namespace]:
        if builder.chance(0.5):
            reference = {"apiVersion": "v1", "kind": "ReplicationController", "name": "controller"}
            pod["metadata"]["ownerReferences"] = [
                {**reference, "uid": owner["metadata"]["uid"], "controller": builder.chance(0.8)}
            ]
    if builder.chance(0.4):
        builder.add("v1", "Service", "rare", namespace, spec={"selector": builder.pick(({}, {"tier": "back"}))})
