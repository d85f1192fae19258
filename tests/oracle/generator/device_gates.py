"""Adds fields of devices and requests that gates of 1.37 guard: compatibility groups and derived attributes."""

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
)
_RARE_EXPRESSIONS: Final = ("[1, 2]", "[]", "1.5", "no_such_variable")


def add_gated_device_fields(builder: ClusterBuilder) -> dict[str, bool]:
    """Add the fields to devices and requests that are there, and return the feature gates."""
    gates = {name: True for name in ("DRADeviceCompatibilityGroups", "DRADerivedAttributes") if builder.chance(0.6)}
    if builder.chance(0.9 if "DRADeviceCompatibilityGroups" in gates else 0.1):
        _add_compatibility_groups(builder)
    if builder.chance(0.9 if "DRADerivedAttributes" in gates else 0.1):
        for item in builder.items:
            if item["kind"] == "ResourceClaim" and not item["status"] and builder.chance(0.7):
                _derive_attributes(builder, item["spec"]["devices"])
    return gates


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
