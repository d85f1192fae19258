"""Lets devices take node resources, which the gate DRANodeAllocatableResources counts, and pods have taken them."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.resources import make_requests

_AMOUNTS: Final = {"cpu": ("100m", "500m", "1"), "memory": ("64Mi", "1Gi"), "hugepages-2Mi": ("2Mi", "4Mi")}
_DRIVER: Final = "gpu.example.com"


def add_node_resources(builder: ClusterBuilder) -> dict[str, bool]:
    """Add the resources to devices, claims in other containers, and statuses of pods on nodes; return the gates."""
    names: set[tuple[str, str]] = set()
    for item in builder.items:
        if item["kind"] == "ResourceSlice":
            for device in item["spec"].get("devices", ()):
                name = item["spec"]["pool"]["name"], device["name"]
                if builder.chance(0.6) and name not in names:  # of equal devices, kube-scheduler takes a random one
                    _add_to_device(builder, device)
                names.add(name)
        elif item["kind"] == "Node" and builder.chance(0.5):
            item["status"].setdefault("allocatable", {})["hugepages-2Mi"] = "16Mi"
        elif item["kind"] == "Pod":
            _add_to_pod(builder, item)
    return {"DRANodeAllocatableResources": builder.chance(0.95)}


def _add_to_device(builder: ClusterBuilder, device: Raw) -> None:
    if builder.chance(0.5):
        key = builder.pick(("cores", f"{_DRIVER}/cores"))
        device.setdefault("capacity", {})[key] = {"value": builder.pick(("1", "4"))}
        device["allowMultipleAllocations"] = True
    names = builder.sample(list(_AMOUNTS), 1, 2)
    device["nodeAllocatableResources"] = {name: _make_resource(builder, name) for name in names}


def _make_resource(builder: ClusterBuilder, name: str) -> Raw:
    resource: Raw = {}
    if builder.chance(0.6):
        key = builder.pick(("cores", f"{_DRIVER}/cores"))
        by_capacity = {"capacityKey": key, "capacityMultiplier": builder.pick(_AMOUNTS[name])}
        resource["mapping"] = builder.pick((by_capacity, {"deviceMultiplier": builder.pick(_AMOUNTS[name])}))
    if not resource or builder.chance(0.5):
        parts = builder.sample(("perPod", "perContainer"), 1, 2)
        resource["overhead"] = {part: builder.pick(_AMOUNTS[name]) for part in parts}
    return resource


def _add_to_pod(builder: ClusterBuilder, pod: Raw) -> None:
    spec = pod["spec"]
    if not spec.get("resourceClaims"):
        return
    claims = [{"name": entry["name"]} for entry in spec["resourceClaims"]]
    if builder.chance(0.4):
        resources = make_requests(builder, rich=False)
        spec["containers"].append({"name": "second", "image": "busybox:1", "resources": resources})
    if builder.chance(0.3):
        spec.setdefault("initContainers", []).append(
            {"name": "first", "image": "busybox:1", **builder.pick(({}, {"restartPolicy": "Always"}))}
        )
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    for container in containers:
        if builder.chance(0.5):
            container.setdefault("resources", {})["claims"] = claims
    spec.pop("resources", None)  # of several resources whose request is too low, kube-scheduler names a random one
    if builder.chance(0.2):
        for container in containers:
            container.setdefault("resources", {}).update(requests={"cpu": "100m", "memory": "64Mi"}, limits={})
        spec["resources"] = {"requests": builder.pick(({"cpu": "500m"}, {"cpu": "2"}, {"memory": "1Gi"}))}
    if spec.get("nodeName") and builder.chance(0.6):
        status: dict[str, Any] = {"resourceClaimName": "c", "containers": [spec["containers"][0]["name"]]}
        status["mapping"] = [{"name": "cpu", "quantity": builder.pick(_AMOUNTS["cpu"])}]
        overhead = {"perPod": builder.pick(_AMOUNTS["memory"]), "perContainer": builder.pick(_AMOUNTS["memory"])}
        status["overhead"] = [{"name": "memory", **overhead}]
        pod["status"]["nodeAllocatableResourceClaimStatuses"] = [status]
