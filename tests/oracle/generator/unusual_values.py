"""Sets unusual valid values: notations of quantities, limits of integers, empty texts, repeated entries, many terms."""

from collections.abc import Callable
from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.terms import TOPOLOGY_KEYS

_AMOUNTS: Final = {
    "cpu": ("1.5", "1500000u", "2e0", "1e-1", "1n", "33.3m", "0.0", "00.25", "1k", ".5", "1.", "0.3333"),
    "memory": ("1.5Gi", "0.1Gi", "129e6", "1500.5Mi", "1u", "2E9", "1Ti", "1000000k", "3.3G", "0.7Mi"),
    "ephemeral-storage": ("1.5Gi", "1n", "2E9", "1234567.5Ki", "0.0001Ti"),
    "storage": ("1.5Gi", "1e9", "0.5Gi", "1500m", "9.9Gi", "10737418241", "1n"),
}
_LIMITS: Final = ("9223372036854775807", "-9223372036854775808", "0", "-2", "5")
_NUMBERS: Final = (*_LIMITS, "99999999999999999999", "+2", "05", "-0", "1.5", "1_0", "0x3", " 5", "x", "")
_SELECTORS: Final[tuple[Raw, ...]] = (
    {"matchLabels": {"app": ""}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "a", "b"]}]},
    {
        "matchLabels": {"app": "a"},
        "matchExpressions": [
            {"key": "app", "operator": "Exists"},
            {"key": "app", "operator": "NotIn", "values": ["b", "c"]},
            {"key": "missing", "operator": "NotIn", "values": ["x"]},
            {"key": "missing", "operator": "DoesNotExist"},
        ],
    },
    {"matchExpressions": [{"key": "tier", "operator": "In", "values": [""]}]},
    {},
)


def add_unusual_values(builder: ClusterBuilder) -> None:
    """Change some of the nodes, pods, claims, volumes and capacities."""
    for item in builder.items:
        match item["kind"]:
            case "Node":
                _change_node(builder, item)
            case "Pod":
                for change in _POD_CHANGES:
                    if builder.chance(0.12):
                        change(builder, item["spec"])
            case "PersistentVolume" if builder.chance(0.2):
                item["spec"]["capacity"] = {"storage": builder.pick(_AMOUNTS["storage"])}
            case "PersistentVolumeClaim" if builder.chance(0.2):
                item["spec"]["resources"] = {"requests": {"storage": builder.pick(_AMOUNTS["storage"])}}
            case "CSIStorageCapacity" if builder.chance(0.2):
                item["capacity"] = builder.pick(_AMOUNTS["storage"])


def _change_node(builder: ClusterBuilder, node: Raw) -> None:
    _change_amounts(builder, node["status"].get("allocatable", {}))
    labels = node["metadata"]["labels"]
    for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"):
        if builder.chance(0.04):
            labels[key] = ""
    if builder.chance(0.15):
        labels["rank"] = builder.pick([text for text in _NUMBERS if text[:1] not in "+ "])
    taints = node["spec"].setdefault("taints", [])
    if builder.chance(0.15) and all(taint["key"] != "level" for taint in taints):
        effect = builder.pick(("NoSchedule", "PreferNoSchedule", "NoExecute"))
        taints.append({"key": "level", "value": builder.pick(_LIMITS), "effect": effect})


def _change_amounts(builder: ClusterBuilder, amounts: Raw) -> None:
    for name in amounts:
        if name in _AMOUNTS and builder.chance(0.2):
            amounts[name] = builder.pick(_AMOUNTS[name])


def _change_requests(builder: ClusterBuilder, spec: Raw) -> None:
    if "resources" in spec:  # which must not be less than the sum over the containers
        return
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        resources = container.get("resources", {})
        if not resources.get("limits"):
            _change_amounts(builder, resources.get("requests", {}))
    _change_amounts(builder, spec.get("overhead", {}))


def _change_tolerations(builder: ClusterBuilder, spec: Raw) -> None:
    tolerations = [
        {"key": "level", "operator": builder.pick(("Gt", "Lt")), "value": builder.pick(_LIMITS)},
        {"key": "dedicated", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": builder.pick((0, -5))},
        {"key": "maintenance", "operator": "Equal", "value": ""},
        {"key": "node.kubernetes.io/unschedulable", "value": "x"},
    ]
    chosen = builder.sample(tolerations, 1, 3)
    spec["tolerations"] = [*chosen, *chosen[:1]]


def _change_node_affinity(builder: ClusterBuilder, spec: Raw) -> None:
    expressions: list[Raw] = [
        {"key": "rank", "operator": builder.pick(("Gt", "Lt")), "values": [builder.pick(_NUMBERS)]},
        {"key": "disk", "operator": "In", "values": ["ssd", "ssd"]},
        {"key": "topology.kubernetes.io/zone", "operator": builder.pick(("In", "NotIn")), "values": ["", "z1"]},
        {"key": "missing", "operator": "NotIn", "values": [""]},
    ]
    terms = [{"matchExpressions": builder.sample(expressions, 1, 3)} for _ in range(builder.rng.randint(1, 3))]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if builder.chance(0.5):
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    else:
        preferred = [{"weight": builder.pick((1, 37, 100)), "preference": term} for term in terms]
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred


def _change_pod_affinity(builder: ClusterBuilder, spec: Raw) -> None:
    term: Raw = {"topologyKey": builder.pick(TOPOLOGY_KEYS), "labelSelector": builder.pick(_SELECTORS)}
    if builder.chance(0.3):
        term["namespaceSelector"] = builder.pick(({}, {"matchLabels": {"team": ""}}))
    if builder.chance(0.3):
        term["namespaces"] = ["shop", "shop"]
    if builder.chance(0.4):
        term[builder.pick(("matchLabelKeys", "mismatchLabelKeys"))] = ["missing"]
    field = builder.pick(("podAffinity", "podAntiAffinity"))
    spec.setdefault("affinity", {})[field] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _change_spread(builder: ClusterBuilder, spec: Raw) -> None:
    constraint: dict[str, Any] = {
        "maxSkew": builder.pick((1, 2, 2147483647)),
        "topologyKey": builder.pick(TOPOLOGY_KEYS),
        "whenUnsatisfiable": builder.pick(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": builder.pick(_SELECTORS),
        "matchLabelKeys": builder.pick((["missing"], ["version", "missing"], ["tier", "version"])),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and builder.chance(0.3):
        constraint["minDomains"] = builder.pick((2, 2147483647))
    spec["topologySpreadConstraints"] = [constraint]


_POD_CHANGES: Final[tuple[Callable[[ClusterBuilder, Raw], None], ...]] = (
    _change_requests,
    _change_tolerations,
    _change_node_affinity,
    _change_pod_affinity,
    _change_spread,
)
