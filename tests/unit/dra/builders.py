"""Builders of resource slices, device classes and claims from the short form of tests/cases/devices."""

from collections.abc import Mapping, Sequence
from typing import Any

from extender.api.kinds.devices import ResourceClaim
from extender.basics.clock import SystemClock
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, Release
from extender.dra.allocator import Allocator, NodeAllocation
from extender.dra.features import Features
from tests.build import make_cluster, make_node, make_object

DRIVER = "gpu.example.com"
V1 = "resource.k8s.io/v1"
Raw = Mapping[str, Any]


def make_attribute_value(raw: Any) -> dict[str, Any]:
    """Return an attribute's value; `v1.2.3` is a version."""
    if isinstance(raw, bool):
        return {"bool": raw}
    if isinstance(raw, int):
        return {"int": raw}
    if isinstance(raw, list):
        return {"ints" if isinstance(raw[0], int) else "strings": raw}
    return {"version": raw[1:]} if raw[:1] == "v" and raw[1:2].isdigit() else {"string": raw}


def make_device(name: str, body: Raw | None) -> dict[str, Any]:
    """Build a device: keys that are not fields of the API are attributes."""
    fields = {
        "capacity", "consumesCounters", "nodeName", "nodeSelector", "allNodes", "taints", "bindsToNode",
        "bindingConditions", "bindingFailureConditions", "allowMultipleAllocations", "attributes",
        "nodeAllocatableResourceMappings", "nodeAllocatableResources",
    }  # fmt: skip
    body = dict(body or {})
    device: dict[str, Any] = {"name": name, **{key: body.pop(key) for key in fields & body.keys()}}
    device["attributes"] = {
        **device.get("attributes", {}),
        **{key: make_attribute_value(value) for key, value in body.items()},
    }
    device["capacity"] = {
        key: value if isinstance(value, Mapping) else {"value": value}
        for key, value in device.get("capacity", {}).items()
    }
    return device


def make_slice(raw: Raw) -> Any:
    """Build a slice of all nodes by default; `node` names one node, with `by_device` each device selects its nodes."""
    selection_fields = {"node": "nodeName", "selector": "nodeSelector", "by_device": "perDeviceNodeSelection"}
    node_selection = {selection_fields[key]: raw[key] for key in selection_fields if key in raw} or {"allNodes": True}
    pool = {"name": raw.get("pool", "pool"), "generation": raw.get("generation", 1)}
    return make_object(
        {
            "apiVersion": V1,
            "kind": "ResourceSlice",
            "metadata": {"name": raw.get("name", f"slice-{pool['name']}")},
            "spec": {
                "driver": raw.get("driver", DRIVER),
                "pool": {**pool, "resourceSliceCount": raw.get("count", 1)},
                "devices": [make_device(name, body) for name, body in (raw.get("devices") or {}).items()],
                "sharedCounters": raw.get("counters", []),
                "skipNodeOperations": raw.get("skips", []),
                **node_selection,
            },
        }
    )


def make_device_class(name: str, *expressions: str, **spec: Any) -> Any:
    """Build a device class with these selectors."""
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    body = {"selectors": selectors, **spec}
    return make_object({"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": name}, "spec": body})


def _make_exact_request(raw: Raw) -> dict[str, Any]:
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", **raw}
    if request["allocationMode"] == "ExactCount":
        request.setdefault("count", 1)
    request["selectors"] = [{"cel": {"expression": expression}} for expression in raw.get("selectors", ())]
    return request


def make_request(name: str, raw: Raw | None) -> dict[str, Any]:
    """Build a request, by default for one device of class `gpu`; `firstAvailable` contains subrequests by name."""
    if isinstance(raw, Mapping) and "firstAvailable" in raw:
        subrequests = [{"name": key, **_make_exact_request(body or {})} for key, body in raw["firstAvailable"].items()]
        return {"name": name, "firstAvailable": subrequests}
    return {"name": name, "exactly": _make_exact_request(raw or {})}


def make_claim(name: str, requests: Raw, *, constraints: Sequence[Raw] = (), **body: Any) -> ResourceClaim:
    """Build a claim in the namespace default."""
    devices = {"requests": [make_request(key, raw) for key, raw in requests.items()], "constraints": list(constraints)}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", **body.pop("metadata", {})}
    devices |= body.pop("devices", {})
    raw = {"apiVersion": V1, "kind": "ResourceClaim", "metadata": meta, "spec": {"devices": devices}, **body}
    claim = make_object(raw)
    assert isinstance(claim, ResourceClaim)
    return claim


def make_allocated_claim(name: str, allocated: Sequence[str | Raw], **status: Any) -> ResourceClaim:
    """Build a claim to which devices of the pool `pool` are allocated."""
    results = [
        {
            "request": "r",
            "driver": DRIVER,
            "pool": "pool",
            **({"device": device} if isinstance(device, str) else device),
        }
        for device in allocated
    ]
    allocation = {"devices": {"results": results}, **status.pop("allocation", {})}
    return make_claim(name, {"r": {}}, status={"allocation": allocation, **status})


def make_allocator(gates: Mapping[str, bool] | None = None, release: Release = RELEASE_1_36) -> Allocator:
    """Build an allocator with the system clock."""
    return Allocator(Features(FeatureGates(gates, release)), SystemClock())


def make_cluster_with_devices(case: Raw) -> Cache:
    """Build the cluster of a case: the node `n`, slices, classes, and claims with devices."""
    allocated = [
        make_allocated_claim(f"taken-{number}", [device]) for number, device in enumerate(case.get("taken", ()))
    ]
    classes = {"gpu": [], **case.get("classes", {})}
    return make_cluster(
        make_node("n", labels=case.get("labels", {}), features=case.get("features", ())),
        *map(make_slice, case.get("slices", ())),
        *(make_device_class(name, *expressions) for name, expressions in classes.items()),
        *allocated,
    )


def format_allocation(allocation: NodeAllocation | None) -> list[list[str]] | None:
    """Format an allocation as `request: device`, by claim."""
    if allocation is None:
        return None
    return [[f"{result.request.qualified_name}: {result.device.id[2]}" for result in results] for results in allocation]
