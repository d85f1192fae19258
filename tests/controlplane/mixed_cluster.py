"""A cluster of fifty different nodes, and pods with random constraints of all kinds, drawn from a seed."""

from collections.abc import Callable
from random import Random
from typing import Any, Final

Manifest = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
APPS: Final = ("web", "api", "cache", "batch", "queue")
NAMESPACES: Final = ("shop", "back-office")
_IMAGES: Final = ("registry.example/web:1.4", "registry.example/api:2.0", "registry.example/cache:7")
_MB: Final = 1024 * 1024


def make_nodes(count: int = 50) -> list[Manifest]:
    """Make nodes of three sizes in three zones or none, with taints, images, GPUs and huge pages; two are cordoned."""
    return [_make_node(number) for number in range(count)]


def _make_node(number: int) -> Manifest:
    name = f"node-{number:02}"
    labels = {HOST: name, "disk": ("ssd", "hdd")[number % 2], "generation": str(number % 7)}
    if number % 10 != 9:
        labels[ZONE] = f"zone-{number % 3}"
    capacity = {
        "cpu": ("2", "4", "7500m")[number % 3],
        "memory": ("4Gi", "16Gi", "30500Mi")[number % 3],
        "pods": ("8", "110", "20")[number % 3],
        "ephemeral-storage": "100Gi",
    }
    if number % 8 == 3:
        capacity["example.com/gpu"] = str(1 + number % 4)
    if number % 11 == 5:
        capacity["hugepages-2Mi"] = "64Mi"
    taints = []
    if number % 8 == 3:
        taints.append({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"})
    if number % 9 == 4:
        taints.append({"key": "old", "effect": "PreferNoSchedule"})
    if number % 17 == 8:
        taints.append({"key": "draining", "value": "yes", "effect": "NoExecute"})
    images = [
        {"names": [image], "sizeBytes": (40 + 210 * index) * _MB}
        for index, image in enumerate(_IMAGES)
        if number % (index + 2) == 0
    ]
    software = {
        "architecture": ("amd64", "arm64")[number % 2],
        "operatingSystem": "linux",
        "osImage": "Debian GNU/Linux 13",
        "kernelVersion": "6.12.57",
        "kubeletVersion": "v1.36.3",
        "containerRuntimeVersion": "containerd://2.1.4",
    }
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": number in {20, 41}},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "images": images,
            "nodeInfo": software,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def make_namespaces_and_workloads() -> list[Manifest]:
    """Make namespaces, and services and replica sets for the default topology spread constraints of the pods."""
    manifests: list[Manifest] = [
        {"kind": "Namespace", "metadata": {"name": name, "labels": {"team": name}}} for name in NAMESPACES
    ]
    for name in NAMESPACES:
        ports = [{"port": 80}]
        selector = {"app": "web"}
        manifests.append(
            {
                "kind": "Service",
                "metadata": {"name": "web", "namespace": name},
                "spec": {"selector": selector, "ports": ports},
            }
        )
        template = {
            "metadata": {"labels": {"app": "batch"}},
            "spec": {"containers": [{"name": "app", "image": _IMAGES[0]}]},
        }
        manifests.append(
            {
                "kind": "ReplicaSet",
                "metadata": {"name": "batch", "namespace": name},
                "spec": {"selector": {"matchLabels": {"app": "batch"}}, "replicas": 0, "template": template},
            }
        )
    return manifests


def make_pods(seed: int, count: int = 200) -> list[Manifest]:
    """Make pods with one to three features each."""
    rng = Random(seed)
    return [_make_pod(number, rng) for number in range(count)]


def _make_pod(number: int, rng: Random) -> Manifest:
    app = rng.choice(APPS)
    requests = {"cpu": f"{rng.randint(1, 40) * 25}m", "memory": f"{rng.randint(1, 60) * 32}Mi"}
    container: Manifest = {"name": "app", "image": rng.choice(_IMAGES), "resources": {"requests": requests}}
    pod: Manifest = {
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number:03}",
            "namespace": rng.choice(NAMESPACES),
            "labels": {"app": app, "track": rng.choice(("stable", "canary"))},
        },
        "spec": {"containers": [container]},
    }
    for add_feature in rng.sample(FEATURES, rng.randint(1, 3)):
        add_feature(pod, rng)
    return pod


def _same_app_selector(pod: Manifest) -> Manifest:
    return {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}


def _add_affinity_term(pod: Manifest, kind: str, rule: str, term: Manifest) -> None:
    pod["spec"].setdefault("affinity", {}).setdefault(kind, {}).setdefault(rule, []).append(term)


REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def select_disk(pod: Manifest, rng: Random) -> None:
    pod["spec"]["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}


def select_missing_label(pod: Manifest, rng: Random) -> None:
    pod["spec"]["nodeSelector"] = {"disk": "nvme"}


def require_zones(pod: Manifest, rng: Random) -> None:
    zones = rng.sample(("zone-0", "zone-1", "zone-2"), 2)
    terms = [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]},
        {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["5"]}]},
    ]
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}


def prefer_nodes(pod: Manifest, rng: Random) -> None:
    for weight, key, operator in ((40, "generation", "Lt"), (7, ZONE, "DoesNotExist")):
        requirement = {"key": key, "operator": operator, **({"values": ["3"]} if operator == "Lt" else {})}
        preference = {"matchExpressions": [requirement]}
        _add_affinity_term(pod, "nodeAffinity", PREFERRED, {"weight": weight, "preference": preference})


def tolerate_gpu_taint(pod: Manifest, rng: Random) -> None:
    _add_toleration(pod, {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"})


def tolerate_all_taints(pod: Manifest, rng: Random) -> None:
    _add_toleration(pod, {"operator": "Exists"})


def _add_toleration(pod: Manifest, toleration: Manifest) -> None:
    pod["spec"].setdefault("tolerations", []).append(toleration)


def request_gpus(pod: Manifest, rng: Random) -> None:
    amounts = {"example.com/gpu": str(rng.randint(1, 2))}
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"].update(amounts)
    resources["limits"] = {**resources.get("limits", {}), **amounts}
    tolerate_gpu_taint(pod, rng)


def request_huge_pages(pod: Manifest, rng: Random) -> None:
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"]["hugepages-2Mi"] = "16Mi"
    resources["limits"] = {**resources.get("limits", {}), "hugepages-2Mi": "16Mi"}


def request_too_much_memory(pod: Manifest, rng: Random) -> None:
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "40Gi"


def add_container_with_limits_only(pod: Manifest, rng: Random) -> None:
    sidecar = {"name": "limits", "image": _IMAGES[1], "resources": {"limits": {"cpu": "0.25", "memory": "0.1Gi"}}}
    pod["spec"]["containers"].append(sidecar)


def add_container_without_requests(pod: Manifest, rng: Random) -> None:
    pod["spec"]["containers"].append({"name": "nothing", "image": _IMAGES[2]})


def add_init_containers(pod: Manifest, rng: Random) -> None:
    heavy = {"name": "heavy", "image": _IMAGES[0], "resources": {"requests": {"cpu": "1500m", "memory": "1e9"}}}
    sidecar = {
        "name": "sidecar",
        "image": _IMAGES[1],
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "100m"}},
    }
    pod["spec"]["initContainers"] = [sidecar, heavy] if rng.random() < 1 / 2 else [heavy, sidecar]


def add_host_port(pod: Manifest, rng: Random) -> None:
    number = rng.choice((8080, 9090))
    port = {"containerPort": number, "hostPort": number, "protocol": rng.choice(("TCP", "UDP"))}
    if rng.random() < 1 / 2:
        port["hostIP"] = "127.0.0.1"
    pod["spec"]["containers"][0]["ports"] = [port]


def use_host_network(pod: Manifest, rng: Random) -> None:
    pod["spec"]["hostNetwork"] = True
    pod["spec"]["containers"].append({"name": "port", "image": _IMAGES[2], "ports": [{"containerPort": 7070}]})


def spread_over_zones(pod: Manifest, rng: Random) -> None:
    rule = {"maxSkew": rng.randint(1, 3), "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    pod["spec"].setdefault("topologySpreadConstraints", []).append({**rule, "labelSelector": _same_app_selector(pod)})


def prefer_spread_over_nodes(pod: Manifest, rng: Random) -> None:
    rule = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Honor"}
    pod["spec"].setdefault("topologySpreadConstraints", []).append({**rule, "labelSelector": _same_app_selector(pod)})


def avoid_pods_of_same_app(pod: Manifest, rng: Random) -> None:
    _add_affinity_term(
        pod, "podAntiAffinity", REQUIRED, {"labelSelector": _same_app_selector(pod), "topologyKey": HOST}
    )


def avoid_zones_of_canaries(pod: Manifest, rng: Random) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "queue", "track": "canary"}}, "topologyKey": ZONE}
    _add_affinity_term(pod, "podAntiAffinity", REQUIRED, term)


def prefer_pod_affinity(pod: Manifest, rng: Random) -> None:
    term = {"labelSelector": {"matchLabels": {"app": rng.choice(APPS)}}, "topologyKey": ZONE}
    _add_affinity_term(pod, "podAffinity", PREFERRED, {"weight": rng.randint(1, 100), "podAffinityTerm": term})
    avoided = {"labelSelector": _same_app_selector(pod), "topologyKey": HOST, "namespaceSelector": {}}
    _add_affinity_term(pod, "podAntiAffinity", PREFERRED, {"weight": rng.randint(1, 100), "podAffinityTerm": avoided})


def require_pod_affinity(pod: Manifest, rng: Random) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": [rng.choice(APPS), "none"]}]}
    term = {"labelSelector": selector, "topologyKey": ZONE, "namespaces": list(NAMESPACES)}
    _add_affinity_term(pod, "podAffinity", REQUIRED, term)


def add_replica_set_owner(pod: Manifest, rng: Random) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "batch", "uid": "batch", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    pod["metadata"]["labels"]["app"] = "batch"


def add_scheduling_gates(pod: Manifest, rng: Random) -> None:
    pod["spec"]["schedulingGates"] = [{"name": "example.com/quota"}, {"name": "example.com/licence"}]


FEATURES: Final[tuple[Callable[[Manifest, Random], None], ...]] = (
    select_disk,
    select_missing_label,
    require_zones,
    prefer_nodes,
    tolerate_gpu_taint,
    tolerate_all_taints,
    request_gpus,
    request_huge_pages,
    request_too_much_memory,
    add_container_with_limits_only,
    add_container_without_requests,
    add_init_containers,
    add_host_port,
    use_host_network,
    spread_over_zones,
    prefer_spread_over_nodes,
    avoid_pods_of_same_app,
    avoid_zones_of_canaries,
    prefer_pod_affinity,
    require_pod_affinity,
    add_replica_set_owner,
    add_scheduling_gates,
)
