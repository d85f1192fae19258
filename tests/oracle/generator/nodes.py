"""Adds random nodes to a cluster."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw

ZONES: Final = ("z1", "z2", "z3")
DISKS: Final = ("ssd", "hdd")
IMAGES: Final = (
    ("registry.example.com/web:v1", 25 << 20),
    ("registry.example.com/web@sha256:" + "a" * 64, 400 << 20),
    ("docker.io/library/redis:latest", 1200 << 20),
    ("docker.io/library/redis:7", 90 << 20),
    ("registry.example.com:5000/job:1.2.3", 3000 << 20),
)
TAINTS: Final = (
    ("dedicated", "gpu"),
    ("dedicated", "batch"),
    ("maintenance", ""),
    ("node.kubernetes.io/not-ready", ""),
    ("node.kubernetes.io/disk-pressure", ""),
)
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
EXTENDED_RESOURCES: Final = ("example.com/fpga", "example.com/gpu")
FEATURES: Final = (
    "GuaranteedQoSPodCPUResize",
    "InPlacePodLevelResourcesVerticalScaling",
    "UserNamespacesHostNetworkSupport",
)


def add_nodes(builder: ClusterBuilder, count: int, options: frozenset[str]) -> None:
    """Add nodes. *options*: `taints`, `images`, `features` and `tight` nodes with little capacity."""
    for number in range(count):
        name = f"node-{number}"
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": builder.pick(("amd64", "amd64", "arm64")),
        }
        if builder.chance(0.9):
            labels["topology.kubernetes.io/zone"] = builder.pick(ZONES)
            labels["topology.kubernetes.io/region"] = "r1"
        if builder.chance(0.6):
            labels["disk"] = builder.pick(DISKS)
        if builder.chance(0.6):
            labels["rank"] = str(builder.rng.randint(1, 9))
        if builder.chance(0.3):
            labels["example.com/rack"] = builder.pick(("k1", "k2"))
        spec = _make_spec(builder, options)
        status = _make_status(builder, options)
        builder.nodes.append(builder.add("v1", "Node", name, metadata={"labels": labels}, spec=spec, status=status))


def _make_spec(builder: ClusterBuilder, options: frozenset[str]) -> Raw:
    spec: Raw = {}
    taints: list[Raw] = []
    if builder.chance(0.5 if "taints" in options else 0.08):
        for key, value in builder.sample(TAINTS, 1, 3):
            taint = {"key": key, "effect": builder.pick(EFFECTS)}
            taints.append({**taint, "value": value} if value else taint)
    if builder.chance(0.2 if "taints" in options else 0.04):
        spec["unschedulable"] = True
        if builder.chance(0.8):
            taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    if taints:
        spec["taints"] = taints
    return spec


def _make_status(builder: ClusterBuilder, options: frozenset[str]) -> Raw:
    if "tight" in options:
        allocatable: dict[str, Any] = {
            "cpu": builder.pick(("1", "1500m", "2", "4")),
            "memory": builder.pick(("1Gi", "2Gi", "3Gi", "4Gi")),
            "pods": builder.pick(("3", "4", "6", "110")),
        }
    else:
        allocatable = {
            "cpu": builder.pick(("2", "3920m", "8", "16")),
            "memory": builder.pick(("4Gi", "7665Mi", "16Gi", "33Gi")),
            "pods": builder.pick(("8", "29", "110")),
        }
    if builder.chance(0.8):
        allocatable["ephemeral-storage"] = builder.pick(("10Gi", "50Gi", "18870777Ki"))
    if builder.chance(0.3):
        allocatable["hugepages-2Mi"] = builder.pick(("0", "512Mi", "1Gi"))
    for resource in EXTENDED_RESOURCES:
        if builder.chance(0.4):
            allocatable[resource] = builder.pick(("0", "1", "2", "4"))
    status: Raw = {"capacity": dict(allocatable), "allocatable": allocatable}
    if "images" in options or builder.chance(0.2):
        status["images"] = [
            {"names": [name], "sizeBytes": size + builder.pick((0, 1, 1000))}
            for name, size in builder.sample(IMAGES, 0, len(IMAGES))
        ]
    if "features" in options and builder.chance(0.7):
        status["declaredFeatures"] = sorted(builder.sample(FEATURES, 0, 3))
    status["conditions"] = [{"type": "Ready", "status": builder.pick(("True", "True", "False", "Unknown"))}]
    return status
