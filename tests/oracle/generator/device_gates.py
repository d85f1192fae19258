"""Adds fields of devices and requests that gates of 1.37 guard: groups, derived attributes, lists, operations."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw

_GPU: Final = "gpu.example.com"
_GROUPS: Final = ("shared", "exclusive", "video")
_EXPRESSIONS: Final = (
    f'device.attributes["{_GPU}"].numa',
    f'device.attributes["{_GPU}"].model + "-" + device.driver',
    f'device.attributes["{_GPU}"].version',
    f'device.attributes["{_GPU}"].healthy && device.driver == "{_GPU}"',
    f'device.attributes["{_GPU}"].?index.orValue(7) % 2',
    f'device.capacity["{_GPU}"].memory.isGreaterThan(quantity("40Gi")) ? "large" : "small"',
    'device.driver.startsWith("gpu")',
    f'device.attributes["{_GPU}"].index',
    '["a", device.driver]',
    "[true]",
    '[semver("1.2.3"), semver("2.0.0")]',
)
_NON_STABLE: Final = ("DRAConsumableCapacity", "DRAFractionalCapacityRange", "DRADeviceBindingConditions")
"""Gates that are on by default and need another allocator than the stable one."""

_LIST_VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "int": (0, 1, 2),
    "string": ("A100", "x"),
    "bool": (True, False),
    "version": ("1.0.0", "2.0.0"),
}
_RARE_EXPRESSIONS: Final = (
    "[1, 2]",
    "[]",
    "1.5",
    "[[1]]",
    f'[device.attributes["{_GPU}"].index, 1]',
    "no_such_variable",
)


def add_gated_device_fields(builder: ClusterBuilder) -> dict[str, bool]:
    """Add the fields to devices and requests that are there, and return the feature gates."""
    gates = {name: True for name in ("DRADeviceCompatibilityGroups", "DRADerivedAttributes") if builder.chance(0.6)}
    if builder.chance(0.9 if "DRADeviceCompatibilityGroups" in gates else 0.1):
        _add_compatibility_groups(builder)
    if builder.chance(0.9 if "DRADerivedAttributes" in gates else 0.1):
        for item in builder.items:
            if item["kind"] == "ResourceClaim" and not item["status"] and builder.chance(0.7):
                _derive_attributes(builder, item["spec"]["devices"])
    return {**gates, **_add_skipped_operations(builder)}


def _add_skipped_operations(builder: ClusterBuilder) -> dict[str, bool]:
    """Let devices skip operations of the kubelet, and return gates that select another allocator."""
    gates = {name: True for name in ("DRAOptionalNodeOperations", "DRAListTypeAttributes") if builder.chance(0.3)}
    if builder.chance(0.3):
        gates.update(dict.fromkeys(_NON_STABLE, False))
    if builder.chance(0.7):
        _make_lists(builder)
    if builder.chance(0.3):
        return gates
    for item in builder.items:
        if item["kind"] == "Node" and builder.chance(0.6):
            features = item["status"].setdefault("declaredFeatures", [])
            item["status"]["declaredFeatures"] = sorted((*features, "DRAOptionalNodeOperations"))
        elif item["kind"] == "ResourceSlice" and builder.chance(0.5):
            item["spec"]["skipNodeOperations"] = ["*"]
        elif item["kind"] == "ResourceClaim" and builder.chance(0.5):
            for result in item["status"].get("allocation", {}).get("devices", {}).get("results", []):
                result["skipNodeOperations"] = ["NodeUnprepareResources"]
    return gates


def _make_lists(builder: ClusterBuilder) -> None:
    """Replace values of devices by lists."""
    for item in builder.items:
        for device in item["spec"].get("devices", ()) if item["kind"] == "ResourceSlice" else ():
            for attribute in device.get("attributes", {}).values():
                for kind, more in _LIST_VALUES.items():
                    if kind in attribute and builder.chance(0.4):
                        attribute[f"{kind}s"] = sorted({attribute.pop(kind), builder.pick(more)})


def _add_compatibility_groups(builder: ClusterBuilder) -> None:
    """Add groups to devices with counters. Some allocated devices of their pools consume counters from now on."""
    allocated = {
        (result["pool"], result["device"])
        for item in builder.items
        if item["kind"] == "ResourceClaim"
        for result in item["status"].get("allocation", {}).get("devices", {}).get("results", [])
    }
    slices = [item["spec"] for item in builder.items if item["kind"] == "ResourceSlice"]
    pools = {spec["pool"]["name"] for spec in slices if spec.get("sharedCounters")}
    for spec in slices:
        for counter_set in spec.get("sharedCounters", ()) if builder.chance(0.7) else ():
            counter_set["counters"] = {"slots": {"value": "9"}}  # so that the groups decide
        for device in spec.get("devices", []):
            is_allocated = (spec["pool"]["name"], device["name"]) in allocated and spec["pool"]["name"] in pools
            if is_allocated and builder.chance(0.6):
                uses: list[Any] = [{"counterSet": "card", "counters": {"slots": {"value": "1"}}}]
                device.setdefault("consumesCounters", uses)
            for use in device.get("consumesCounters", []):
                if builder.chance(0.7):
                    use["compatibilityGroups"] = sorted(set(builder.sample(_GROUPS, 1, 2)))


def _derive_attributes(builder: ClusterBuilder, devices: Raw) -> None:
    """Derive an attribute in the requests, and mostly constrain it."""
    name = builder.pick(("example.com/derived", "example.com/derived", f"{_GPU}/model"))
    for request in devices["requests"]:
        for part in request.get("firstAvailable") or [request["exactly"]]:
            if builder.chance(0.85):
                expressions = _RARE_EXPRESSIONS if builder.chance(0.06) else _EXPRESSIONS
                part["derivedAttributes"] = [{"name": name, "expression": builder.pick(expressions)}]
    if builder.chance(0.85):
        field = builder.pick(("matchAttribute", "matchAttribute", "distinctAttribute"))
        devices["constraints"] = [{field: name}, *devices.get("constraints", ())]
