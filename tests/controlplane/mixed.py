"""A cluster of fifty unlike nodes, and pods with every kind of wish, drawn from a seed: the same ones each time."""

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


def nodes(count: int = 50) -> list[Manifest]:
    """Nodes of three sizes in three zones (and some in none), with taints, images, GPUs, huge pages, a cordon."""
    return [_node(number) for number in range(count)]


def _node(number: int) -> Manifest:
    name = f"node-{number:02}"
    labels = {HOST: name, "disk": ("ssd", "hdd")[number % 2], "generation": str(number % 7)}
    if number % 10 != 9:
        labels[ZONE] = f"zone-{number % 3}"
    room = {
        "cpu": ("2", "4", "7500m")[number % 3],
        "memory": ("4Gi", "16Gi", "30500Mi")[number % 3],
        "pods": ("8", "110", "20")[number % 3],
        "ephemeral-storage": "100Gi",
    }
    if number % 8 == 3:
        room["example.com/gpu"] = str(1 + number % 4)
    if number % 11 == 5:
        room["hugepages-2Mi"] = "64Mi"
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
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": number in {20, 41}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "images": images,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def surroundings() -> list[Manifest]:
    """Namespaces, and the services and replica sets that the pods' default spreading follows from."""
    found: list[Manifest] = [
        {"kind": "Namespace", "metadata": {"name": name, "labels": {"team": name}}} for name in NAMESPACES
    ]
    for name in NAMESPACES:
        ports = [{"port": 80}]
        selector = {"app": "web"}
        found.append(
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
        found.append(
            {
                "kind": "ReplicaSet",
                "metadata": {"name": "batch", "namespace": name},
                "spec": {"selector": {"matchLabels": {"app": "batch"}}, "replicas": 0, "template": template},
            }
        )
    return found


def pods(seed: int, count: int = 200) -> list[Manifest]:
    """Pods with one to three wishes each."""
    chance = Random(seed)
    return [_pod(number, chance) for number in range(count)]


def _pod(number: int, chance: Random) -> Manifest:
    app = chance.choice(APPS)
    requests = {"cpu": f"{chance.randint(1, 40) * 25}m", "memory": f"{chance.randint(1, 60) * 32}Mi"}
    container: Manifest = {"name": "app", "image": chance.choice(_IMAGES), "resources": {"requests": requests}}
    pod: Manifest = {
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number:03}",
            "namespace": chance.choice(NAMESPACES),
            "labels": {"app": app, "track": chance.choice(("stable", "canary"))},
        },
        "spec": {"containers": [container]},
    }
    for wish in chance.sample(WISHES, chance.randint(1, 3)):
        wish(pod, chance)
    return pod


def _selector(pod: Manifest) -> Manifest:
    return {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}


def _affinity(pod: Manifest, kind: str, rule: str, term: Manifest) -> None:
    pod["spec"].setdefault("affinity", {}).setdefault(kind, {}).setdefault(rule, []).append(term)


REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def wants_a_disk(pod: Manifest, chance: Random) -> None:
    pod["spec"]["nodeSelector"] = {"disk": chance.choice(("ssd", "hdd"))}


def wants_what_no_node_has(pod: Manifest, chance: Random) -> None:
    pod["spec"]["nodeSelector"] = {"disk": "nvme"}


def requires_a_zone(pod: Manifest, chance: Random) -> None:
    zones = chance.sample(("zone-0", "zone-1", "zone-2"), 2)
    terms = [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]},
        {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["5"]}]},
    ]
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}


def prefers_nodes(pod: Manifest, chance: Random) -> None:
    for weight, key, operator in ((40, "generation", "Lt"), (7, ZONE, "DoesNotExist")):
        requirement = {"key": key, "operator": operator, **({"values": ["3"]} if operator == "Lt" else {})}
        preference = {"matchExpressions": [requirement]}
        _affinity(pod, "nodeAffinity", PREFERRED, {"weight": weight, "preference": preference})


def tolerates_gpus(pod: Manifest, chance: Random) -> None:
    _tolerate(pod, {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"})


def tolerates_everything(pod: Manifest, chance: Random) -> None:
    _tolerate(pod, {"operator": "Exists"})


def _tolerate(pod: Manifest, toleration: Manifest) -> None:
    pod["spec"].setdefault("tolerations", []).append(toleration)


def asks_for_a_gpu(pod: Manifest, chance: Random) -> None:
    amounts = {"example.com/gpu": str(chance.randint(1, 2))}
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"].update(amounts)
    resources["limits"] = {**resources.get("limits", {}), **amounts}
    tolerates_gpus(pod, chance)


def asks_for_huge_pages(pod: Manifest, chance: Random) -> None:
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"]["hugepages-2Mi"] = "16Mi"
    resources["limits"] = {**resources.get("limits", {}), "hugepages-2Mi": "16Mi"}


def asks_for_too_much(pod: Manifest, chance: Random) -> None:
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "40Gi"


def has_limits_only(pod: Manifest, chance: Random) -> None:
    sidecar = {"name": "limits", "image": _IMAGES[1], "resources": {"limits": {"cpu": "0.25", "memory": "0.1Gi"}}}
    pod["spec"]["containers"].append(sidecar)


def has_no_requests(pod: Manifest, chance: Random) -> None:
    pod["spec"]["containers"].append({"name": "nothing", "image": _IMAGES[2]})


def has_init_containers(pod: Manifest, chance: Random) -> None:
    heavy = {"name": "heavy", "image": _IMAGES[0], "resources": {"requests": {"cpu": "1500m", "memory": "1e9"}}}
    sidecar = {
        "name": "sidecar",
        "image": _IMAGES[1],
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "100m"}},
    }
    pod["spec"]["initContainers"] = [sidecar, heavy] if chance.random() < 1 / 2 else [heavy, sidecar]


def opens_a_host_port(pod: Manifest, chance: Random) -> None:
    number = chance.choice((8080, 9090))
    port = {"containerPort": number, "hostPort": number, "protocol": chance.choice(("TCP", "UDP"))}
    if chance.random() < 1 / 2:
        port["hostIP"] = "127.0.0.1"
    pod["spec"]["containers"][0]["ports"] = [port]


def is_on_the_host_network(pod: Manifest, chance: Random) -> None:
    pod["spec"]["hostNetwork"] = True
    pod["spec"]["containers"].append({"name": "port", "image": _IMAGES[2], "ports": [{"containerPort": 7070}]})


def spreads_over_zones(pod: Manifest, chance: Random) -> None:
    rule = {"maxSkew": chance.randint(1, 3), "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    pod["spec"].setdefault("topologySpreadConstraints", []).append({**rule, "labelSelector": _selector(pod)})


def spreads_over_nodes_if_it_can(pod: Manifest, chance: Random) -> None:
    rule = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Honor"}
    pod["spec"].setdefault("topologySpreadConstraints", []).append({**rule, "labelSelector": _selector(pod)})


def keeps_away_from_its_like(pod: Manifest, chance: Random) -> None:
    _affinity(pod, "podAntiAffinity", REQUIRED, {"labelSelector": _selector(pod), "topologyKey": HOST})


def keeps_away_from_a_zone(pod: Manifest, chance: Random) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "queue", "track": "canary"}}, "topologyKey": ZONE}
    _affinity(pod, "podAntiAffinity", REQUIRED, term)


def prefers_company(pod: Manifest, chance: Random) -> None:
    term = {"labelSelector": {"matchLabels": {"app": chance.choice(APPS)}}, "topologyKey": ZONE}
    _affinity(pod, "podAffinity", PREFERRED, {"weight": chance.randint(1, 100), "podAffinityTerm": term})
    other = {"labelSelector": _selector(pod), "topologyKey": HOST, "namespaceSelector": {}}
    _affinity(pod, "podAntiAffinity", PREFERRED, {"weight": chance.randint(1, 100), "podAffinityTerm": other})


def needs_company(pod: Manifest, chance: Random) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": [chance.choice(APPS), "none"]}]}
    term = {"labelSelector": selector, "topologyKey": ZONE, "namespaces": list(NAMESPACES)}
    _affinity(pod, "podAffinity", REQUIRED, term)


def belongs_to_a_replica_set(pod: Manifest, chance: Random) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "batch", "uid": "batch", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    pod["metadata"]["labels"]["app"] = "batch"


def is_gated(pod: Manifest, chance: Random) -> None:
    pod["spec"]["schedulingGates"] = [{"name": "example.com/quota"}, {"name": "example.com/licence"}]


WISHES: Final[tuple[Callable[[Manifest, Random], None], ...]] = (
    wants_a_disk,
    wants_what_no_node_has,
    requires_a_zone,
    prefers_nodes,
    tolerates_gpus,
    tolerates_everything,
    asks_for_a_gpu,
    asks_for_huge_pages,
    asks_for_too_much,
    has_limits_only,
    has_no_requests,
    has_init_containers,
    opens_a_host_port,
    is_on_the_host_network,
    spreads_over_zones,
    spreads_over_nodes_if_it_can,
    keeps_away_from_its_like,
    keeps_away_from_a_zone,
    prefers_company,
    needs_company,
    belongs_to_a_replica_set,
    is_gated,
)
