"""Lets device classes serve extended resources with the devices of any slices, and scores nodes by these resources."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.configuration import make_plugin_config

_GPU: Final = "gpu.example.com"
_NAMES: Final = ("example.com/gpu", "example.com/fpga")
_EXPRESSIONS: Final = (
    f'device.driver == "{_GPU}"',
    f'device.attributes["{_GPU}"].index < 2',
    f'device.attributes["{_GPU}"].nothing',
    "device.allowMultipleAllocations == true",
)
_PLACES: Final = ("nodeName", "nodeSelector", "allNodes")


def add_scored_extended_resources(builder: ClusterBuilder, scenario: Raw, scheduler: str) -> None:
    """Change the classes, slices and pods of a *scenario* with devices, and its configuration."""
    items = scenario["items"]
    nodes = [item["metadata"]["name"] for item in items if item["kind"] == "Node"]
    if not nodes or not any(item["kind"] == "DeviceClass" for item in items):
        return
    for item in items:
        match item["kind"]:
            case "DeviceClass" if builder.chance(0.7):
                _serve_resource(builder, item["spec"])
            case "ResourceSlice" if builder.chance(0.6):
                _place(builder, item["spec"], nodes)
            case "Pod" if not item["spec"].get("nodeName") and "resources" not in item["spec"]:
                _request(builder, item["spec"]["containers"][0])
    scenario["config"] = _make_configuration(builder, scheduler)


def _serve_resource(builder: ClusterBuilder, spec: Raw) -> None:
    spec["extendedResourceName"] = builder.pick(_NAMES)
    spec.pop("selectors", None)
    if builder.chance(0.7):
        spec["selectors"] = [{"cel": {"expression": text}} for text in builder.sample(_EXPRESSIONS, 1, 2)]


def _place(builder: ClusterBuilder, spec: Raw, nodes: list[str]) -> None:
    """Replace the nodes of a slice, or those of its devices, unless it shares counters with other slices."""
    devices = spec.get("devices", ())
    if not devices or spec["pool"]["resourceSliceCount"] != 1 or any("consumesCounters" in it for it in devices):
        return
    spec.pop("perDeviceNodeSelection", None)
    for part in (spec, *devices):
        for place in _PLACES:
            part.pop(place, None)
    if builder.chance(0.5):
        spec.update(_make_place(builder, nodes))
        return
    spec["perDeviceNodeSelection"] = True
    spec["devices"] = [{**device, **_make_place(builder, nodes)} for device in devices]


def _make_place(builder: ClusterBuilder, nodes: list[str]) -> Raw:
    zone = {"key": "topology.kubernetes.io/zone", "operator": builder.pick(("In", "NotIn")), "values": ["z1"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    return builder.pick(({"nodeName": builder.pick(nodes)}, {"allNodes": True}, {"nodeSelector": selector}))


def _request(builder: ClusterBuilder, container: Raw) -> None:
    name, amount = builder.pick(_NAMES), builder.pick(("1", "1", "2"))
    for field in ("requests", "limits"):
        container.setdefault("resources", {}).setdefault(field, {})[name] = amount


def _make_configuration(builder: ClusterBuilder, scheduler: str) -> Raw:
    names = [*builder.sample(_NAMES, 1, 2), *builder.sample(("cpu", "memory"), 0, 2)]
    strategy: dict[str, Any] = {
        "type": builder.pick(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")),
        "resources": [{"name": name, "weight": builder.pick((1, 5))} for name in names],
    }
    if strategy["type"] == "RequestedToCapacityRatio":
        shape = [{"utilization": utilization, "score": builder.rng.randint(0, 10)} for utilization in (0, 100)]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    balanced: Raw = {"resources": [{"name": name, "weight": 1} for name in names]}
    arguments: dict[str, Raw] = {
        "NodeResourcesFit": {"scoringStrategy": strategy},
        "NodeResourcesBalancedAllocation": balanced,
    }
    profile = {"schedulerName": scheduler, "pluginConfig": make_plugin_config(arguments)}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**kind, "profiles": [profile]}
