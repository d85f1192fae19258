"""Devices in few words: slices, classes and claims as the cases of tests/cases/devices write them."""

from collections.abc import Mapping, Sequence
from typing import Any

from extender.allocation.allocator import Allocator, Solution
from extender.allocation.features import features_of
from extender.basics.clock import SystemClock
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.objects.devices import ResourceClaim
from tests.build import a_cluster, a_node, an_object

DRIVER = "gpu.example.com"
V1 = "resource.k8s.io/v1"
Raw = Mapping[str, Any]


def value(raw: Any) -> dict[str, Any]:
    """An attribute: `v1.2.3` is a version."""
    if isinstance(raw, bool):
        return {"bool": raw}
    if isinstance(raw, int):
        return {"int": raw}
    if isinstance(raw, list):
        return {"ints" if isinstance(raw[0], int) else "strings": raw}
    return {"version": raw[1:]} if raw[:1] == "v" and raw[1:2].isdigit() else {"string": raw}


def a_device(name: str, body: Raw | None) -> dict[str, Any]:
    """A device: keys that are no field of the API are attributes."""
    fields = {
        "capacity", "consumesCounters", "nodeName", "nodeSelector", "allNodes", "taints", "bindsToNode",
        "bindingConditions", "bindingFailureConditions", "allowMultipleAllocations", "attributes",
        "nodeAllocatableResourceMappings",
    }  # fmt: skip
    body = dict(body or {})
    made: dict[str, Any] = {"name": name, **{key: body.pop(key) for key in fields & body.keys()}}
    made["attributes"] = {**made.get("attributes", {}), **{key: value(raw) for key, raw in body.items()}}
    made["capacity"] = {
        key: raw if isinstance(raw, Mapping) else {"value": raw} for key, raw in made.get("capacity", {}).items()
    }
    return made


def a_slice(raw: Raw) -> Any:
    """A slice of all nodes unless it says otherwise; `node` names one, `by_device` leaves it to the devices."""
    places = {"node": "nodeName", "selector": "nodeSelector", "by_device": "perDeviceNodeSelection"}
    place = {places[key]: raw[key] for key in places if key in raw} or {"allNodes": True}
    pool = {"name": raw.get("pool", "pool"), "generation": raw.get("generation", 1)}
    return an_object(
        {
            "apiVersion": V1,
            "kind": "ResourceSlice",
            "metadata": {"name": raw.get("name", f"slice-{pool['name']}")},
            "spec": {
                "driver": raw.get("driver", DRIVER),
                "pool": {**pool, "resourceSliceCount": raw.get("count", 1)},
                "devices": [a_device(name, body) for name, body in (raw.get("devices") or {}).items()],
                "sharedCounters": raw.get("counters", []),
                **place,
            },
        }
    )


def a_class(name: str, *expressions: str, **spec: Any) -> Any:
    """A device class with these selectors."""
    selectors = [{"cel": {"expression": each}} for each in expressions]
    body = {"selectors": selectors, **spec}
    return an_object({"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": name}, "spec": body})


def _exact(raw: Raw) -> dict[str, Any]:
    made = {"deviceClassName": "gpu", "allocationMode": "ExactCount", **raw}
    if made["allocationMode"] == "ExactCount":
        made.setdefault("count", 1)
    made["selectors"] = [{"cel": {"expression": each}} for each in raw.get("selectors", ())]
    return made


def a_request(name: str, raw: Raw | None) -> dict[str, Any]:
    """A request for one device of the class `gpu` unless it says otherwise; a list gives alternatives by name."""
    if isinstance(raw, Mapping) and "firstAvailable" in raw:
        alternatives = [{"name": key, **_exact(body or {})} for key, body in raw["firstAvailable"].items()]
        return {"name": name, "firstAvailable": alternatives}
    return {"name": name, "exactly": _exact(raw or {})}


def a_claim(name: str, requests: Raw, *, constraints: Sequence[Raw] = (), **body: Any) -> ResourceClaim:
    """A claim in the namespace default."""
    devices = {"requests": [a_request(key, raw) for key, raw in requests.items()], "constraints": list(constraints)}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", **body.pop("metadata", {})}
    devices |= body.pop("devices", {})
    raw = {"apiVersion": V1, "kind": "ResourceClaim", "metadata": meta, "spec": {"devices": devices}, **body}
    claim = an_object(raw)
    assert isinstance(claim, ResourceClaim)
    return claim


def allocated_claim(name: str, taken: Sequence[str | Raw], **status: Any) -> ResourceClaim:
    """A claim that has the devices *taken* of the pool `pool` already."""
    results = [
        {"request": "r", "driver": DRIVER, "pool": "pool", **({"device": each} if isinstance(each, str) else each)}
        for each in taken
    ]
    allocation = {"devices": {"results": results}, **status.pop("allocation", {})}
    return a_claim(name, {"r": {}}, status={"allocation": allocation, **status})


def an_allocator(gates: Mapping[str, bool] | None = None) -> Allocator:
    """An allocator on the machine's clock."""
    return Allocator(features_of(FeatureGates(gates)), SystemClock())


def a_world(case: Raw) -> ClusterState:
    """The cluster of a case: the node `n`, slices, classes and the claims that have devices."""
    taken = [allocated_claim(f"taken-{number}", [each]) for number, each in enumerate(case.get("taken", ()))]
    classes = {"gpu": [], **case.get("classes", {})}
    return a_cluster(
        a_node("n", labels=case.get("labels", {})),
        *map(a_slice, case.get("slices", ())),
        *(a_class(name, *expressions) for name, expressions in classes.items()),
        *taken,
    )


def told(solution: Solution | None) -> list[list[str]] | None:
    """A solution as `request: device`, claim by claim."""
    if solution is None:
        return None
    return [[f"{each.request.qualified}: {each.device.id[2]}" for each in chosen] for chosen in solution.chosen]
