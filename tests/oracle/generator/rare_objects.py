"""Adds rare fields to nodes and pods: required features, deleted nodes, many containers and images, empty labels."""

from typing import Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.nodes import IMAGES

_FEATURES: Final = (
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
)


def add_rare_object_fields(builder: ClusterBuilder, version: str) -> None:
    """Change some nodes and pods; *version* is the Kubernetes minor, which decides which fields exist."""
    for node in builder.nodes:
        if builder.chance(0.3):
            node["status"]["declaredFeatures"] = sorted(builder.sample(_FEATURES, 1, 3))
        if builder.chance(0.1):
            node["metadata"]["deletionTimestamp"] = "2026-02-28T23:00:00Z"
            node["metadata"]["finalizers"] = ["example.com/wait"]
        if builder.chance(0.1):
            node["metadata"]["labels"]["tier"] = builder.pick(("", "front"))
        if builder.chance(0.1):
            names = [name for name, _ in IMAGES]
            node["status"]["images"] = [
                {"names": [f"{name}-{number}", name], "sizeBytes": builder.pick((1, 100 << 20, 9000 << 20))}
                for number, name in enumerate(names)
            ]
    for pod in [item for item in builder.items if item["kind"] == "Pod"]:
        if builder.chance(0.2):
            builder.pick((_require_feature, _add_containers, _empty_labels, _select_empty_labels))(
                builder, pod, version
            )
        if "nodeName" in pod["spec"] and builder.chance(0.03):
            pod["spec"]["nodeName"] = "deleted-node"


def _require_feature(builder: ClusterBuilder, pod: Raw, version: str) -> None:
    container = builder.pick([*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])])
    if version != "1.36" and builder.chance(0.5):
        mount = {"name": "data", "mountPath": "/data", "bindMountOptions": ["noexec"]}
        container["volumeMounts"] = [mount]
        pod["spec"].setdefault("volumes", []).append({"name": "data", "emptyDir": {}})
    else:
        container["restartPolicy"] = "Never"
        exit_codes = {"operator": "In", "values": [42]}
        action = builder.pick(("Restart", "RestartAllContainers"))
        container["restartPolicyRules"] = [{"action": action, "exitCodes": exit_codes}]


def _add_containers(builder: ClusterBuilder, pod: Raw, _version: str) -> None:
    names = [*(name for name, _ in IMAGES), "none:1"]
    containers = pod["spec"]["containers"]
    for number in range(builder.pick((4, 12, 30))):
        resources: Raw = {"requests": {"cpu": "10m"}} if builder.chance(0.5) else {}
        containers.append({"name": f"more-{number}", "image": builder.pick(names), "resources": resources})


def _empty_labels(builder: ClusterBuilder, pod: Raw, _version: str) -> None:
    pod["metadata"]["labels"] = {"app": "", "tier": builder.pick(("", "front"))}


def _select_empty_labels(builder: ClusterBuilder, pod: Raw, _version: str) -> None:
    selector = builder.pick(
        (
            {"matchLabels": {"app": ""}},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["", "a"]}]},
            {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["", "back"]}]},
        )
    )
    term = {"topologyKey": "tier" if builder.chance(0.3) else "kubernetes.io/hostname", "labelSelector": selector}
    affinity = pod["spec"].setdefault("affinity", {})
    field = builder.pick(("podAffinity", "podAntiAffinity"))
    affinity[field] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if builder.chance(0.5):
        pod["spec"]["nodeSelector"] = {"tier": builder.pick(("", "front"))}
    if builder.chance(0.5):
        constraint = {"maxSkew": 1, "topologyKey": "tier", "whenUnsatisfiable": "ScheduleAnyway"}
        pod["spec"]["topologySpreadConstraints"] = [{**constraint, "labelSelector": selector}]
