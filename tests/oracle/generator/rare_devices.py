"""Adds rare fields to the devices of a cluster: pools of many shapes, shares, taint rules, allocations, expressions."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw

_GPU: Final = "gpu.example.com"
_DEVICE: Final = f'device.attributes["{_GPU}"]'
_EXPRESSIONS: Final = (
    f"{_DEVICE}.index in [0, 2]",
    f"has({_DEVICE}.index) && {_DEVICE}.index >= 1",
    f'{_DEVICE}.model.matches("^a[0-9]+$")',
    f'{_DEVICE}.model.lowerAscii().contains("T4".lowerAscii())',
    f'device.capacity["{_GPU}"].memory.isLessThan(quantity("50Gi"))',
    f'device.capacity["{_GPU}"].memory.asInteger() > 20000000000',
    f'{_DEVICE}.version.major() == 2 || {_DEVICE}.version.minor() > 1',
    f'{_DEVICE}.version.compareTo(semver("1.2.3")) > 0',
    f'cel.bind(d, {_DEVICE}, d.index + 1 > 1 ? d.model == "t4" : true)',
    f'{_DEVICE}.?nothing.orValue("x") == "x"',
    'device.attributes["other.example.com"].model == "x"',
    'device.attributes["resource.kubernetes.io"].pcieRoot.endsWith("0")',
    f'{_DEVICE}.all(name, name != "zzz")',
    f'{_DEVICE}.exists(name, name == "index")',
    f'{_DEVICE}.exists(name, name != "") && {_DEVICE}.?index.optMap(index, index < 2).orValue(true)',
    f'!{_DEVICE}.all(name, name == "") && [2, 1].sort()[0] == 1',
    f'{_DEVICE}.size() > 4',
    'device.allowMultipleAllocations == true',
    f'{_DEVICE}.index / 0 == 1',
    f'{_DEVICE}.model == "a100" || {_DEVICE}.nothing',
    f'{_DEVICE}.nothing || {_DEVICE}.model == "a100"',
    f'{_DEVICE}.index == 1.0',
    f'{_DEVICE}.model + 1 == "x"',
    f'semver("1.2.3") == {_DEVICE}.version',
    f'semver("1.2.3") == {_DEVICE}.model || true',
    f'{_DEVICE}.numa == 1 || quantity("1") == {_DEVICE}.index',
    f'{_DEVICE}.index',
    f'device.capacity["{_GPU}"].nothing.compareTo(quantity("1")) > 0',
    'quantity("x") == quantity("1")',
    'isQuantity("1Gi") && isSemver("1.2.3") && !isSemver("v1.2", false)',
    '[1, 2, 3].sum() == 6 && ["a", "b"].indexOf("b") == 1 && [1, 2].isSorted()',
    '"10.0.0.1" == string(ip("10.0.0.1")) && cidr("10.0.0.0/8").containsIP("10.0.0.1")',
    'url("https://example.com/a").getHost() == "example.com"',
    f'{_DEVICE}.model.split("0").size() > 1 && "a,b".replace(",", "") == "ab"',
    f'sets.contains([{_DEVICE}.index], [0])',
    'duration("1h") > duration("1m") && timestamp("2026-01-01T00:00:00Z").getFullYear() == 2026',
    f'type({_DEVICE}.index) == int && int("3") == 3 && double("1.5") < 2.0',
    f'device.driver == "{_GPU}" ? {_DEVICE}.numa == 0 : false',
    f'"model" in {_DEVICE} && !("x" in device.attributes)',
    f'{_DEVICE}.version.includes(semver("2.0.0")) || {_DEVICE}.index.includes(1) || {_DEVICE}.healthy.includes(true)',
    f'{_DEVICE}.index in [{_DEVICE}.numa, 1]',
)  # fmt: skip
_TAINT_EFFECTS: Final = ("NoSchedule", "NoExecute", "None")
_TIME: Final = {"lastTransitionTime": "2026-02-28T00:00:00Z"}


def add_rare_device_fields(builder: ClusterBuilder, version: str) -> None:
    """Change slices, classes, claims and extended resources, if the cluster has devices."""
    slices = [item for item in builder.items if item["kind"] == "ResourceSlice"]
    classes = [item for item in builder.items if item["kind"] == "DeviceClass"]
    if not classes:
        return
    # The items are in order of their names, as an API server lists them: the first of equal classes counts.
    positions = [index for index, item in enumerate(builder.items) if item["kind"] == "DeviceClass"]
    for index, item in zip(positions, sorted(classes, key=lambda item: str(item["metadata"]["name"])), strict=True):
        builder.items[index] = item
    for item in slices:
        if builder.chance(0.3):
            _change_devices(builder, item["spec"].get("devices", []))
            _change_slice(builder, item["spec"])
    if builder.chance(0.3):
        _add_pool(builder)
    for item in classes:
        _change_class(builder, item["spec"])
    if version != "1.36" and builder.chance(0.3):
        for number in range(builder.rng.randint(1, 2)):
            _add_rule(builder, number)
    _change_claims(builder)
    for pod in [item for item in builder.items if item["kind"] == "Pod"]:
        if builder.chance(0.12):
            _request_extended(builder, pod, slices)
        if builder.chance(0.05) and "nodeName" not in pod["spec"]:
            _add_second_claim(builder, pod)


def _change_class(builder: ClusterBuilder, spec: Raw) -> None:
    if builder.chance(0.2):
        spec["extendedResourceName"] = builder.pick(("example.com/gpu", "example.com/fpga"))
    if builder.chance(0.1):
        spec.setdefault("selectors", []).append({"cel": {"expression": builder.pick(_EXPRESSIONS)}})
    if builder.chance(0.1):
        spec["config"] = [{"opaque": {"driver": _GPU, "parameters": {"a": 1}}}]


def _change_claims(builder: ClusterBuilder) -> None:
    for claim in [item for item in builder.items if item["kind"] == "ResourceClaim"]:
        if claim.get("status", {}).get("allocation"):
            if builder.chance(0.4):
                _change_allocation(builder, claim)
            continue
        if builder.chance(0.5):
            _change_claim(builder, claim)
        if builder.chance(0.1):
            _allocate(builder, claim)


def _change_devices(builder: ClusterBuilder, devices: list[Raw]) -> None:
    for device in devices:
        if builder.chance(0.3):
            device["capacity"]["bandwidth"] = _capacity(builder)
        if builder.chance(0.3):
            device["allowMultipleAllocations"] = True
            device["capacity"]["memory"] = _capacity(builder)
        if builder.chance(0.15):
            device["taints"] = [
                {"key": builder.pick(("broken", "slow")), "value": builder.pick(("", "yes")), "effect": effect}
                for effect in builder.sample(_TAINT_EFFECTS, 1, 2)
            ]
        if builder.chance(0.1):
            device["bindsToNode"] = builder.chance(0.7)
            device["bindingConditions"] = ["ready", "steady"]
            device["bindingFailureConditions"] = ["failed"]
        if builder.chance(0.1):
            name = builder.pick(("model", "numa", "index", "other.example.com/model"))
            value = builder.pick(({"string": "t4"}, {"int": 1}, {"bool": True}, {"version": "2.0.0"}))
            device["attributes"][name] = value


def _change_slice(builder: ClusterBuilder, spec: Raw) -> None:
    change = builder.pick(("counters", "per device", "duplicate", "count", "selector", "generation", "none"))
    if change == "counters" and "devices" in spec and spec.get("nodeName") and spec["pool"]["resourceSliceCount"] == 1:
        _add_counters(builder, spec)
    elif change == "per device" and "devices" in spec and not any("consumesCounters" in d for d in spec["devices"]):
        for field in ("nodeName", "nodeSelector", "allNodes"):
            spec.pop(field, None)
        spec["perDeviceNodeSelection"] = True
        for device in spec["devices"]:
            device.update(_placement(builder))
    elif change == "duplicate" and spec.get("devices"):
        spec["devices"].append({**spec["devices"][0]})
    elif change == "count":
        spec["pool"]["resourceSliceCount"] = builder.pick((1, 2, 3))
    elif change == "selector" and "nodeName" in spec and "sharedCounters" not in spec:
        del spec["nodeName"]
        spec.update(_placement(builder))
    elif change == "generation":
        spec["pool"]["generation"] = builder.pick((1, 2))


def _placement(builder: ClusterBuilder) -> Raw:
    zone = {"key": "topology.kubernetes.io/zone", "operator": builder.pick(("In", "NotIn")), "values": ["z1"]}
    name = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    return builder.pick(
        (
            {"nodeName": builder.pick(builder.nodes)["metadata"]["name"]},
            {"allNodes": True},
            {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
            {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [name]}]}},
        )
    )


def _capacity(builder: ClusterBuilder) -> Raw:
    capacity: Raw = {"value": builder.pick(("10", "40Gi", "100G", "1500m"))}
    policy = builder.pick(
        (
            None,
            {"default": "2"},
            {"default": "1", "validRange": {"min": "1", "max": "8", "step": "2"}},
            {"default": "2", "validRange": {"min": "2"}},
            {"default": "1", "validValues": ["1", "3", "9"]},
            {"default": "0", "validRange": {"min": "0", "step": "500m"}},
        )
    )
    if policy is not None:
        capacity["requestPolicy"] = policy
    return capacity


def _add_counters(builder: ClusterBuilder, spec: Raw) -> None:
    """Give a slice with devices a slice of its pool with two counter sets."""
    sets = [
        {"name": name, "counters": {"slots": {"value": builder.pick(("1", "2", "5"))}, "memory": {"value": "40Gi"}}}
        for name in ("card", "bus")
    ]
    for device in spec["devices"]:
        uses = [
            {
                "counterSet": name,
                "counters": {
                    counter: {"value": builder.pick(amounts)}
                    for counter, amounts in builder.sample((("slots", ("1", "2")), ("memory", ("10Gi", "30Gi"))), 1, 2)
                },
            }
            for name in builder.sample(("card", "bus", "bus"), 1, 2)
        ]
        device["consumesCounters"] = list({use["counterSet"]: use for use in uses}.values())
        if builder.chance(0.05):
            device["consumesCounters"][0]["counterSet"] = "missing"
    spec["pool"]["resourceSliceCount"] = 2
    fields = {key: value for key, value in spec.items() if key != "devices"}
    name = f"counters-{len(builder.items)}"
    builder.add("resource.k8s.io/v1", "ResourceSlice", name, spec={**fields, "sharedCounters": sets})


def _add_pool(builder: ClusterBuilder) -> None:
    """Add a pool of another driver, perhaps of several nodes, whose name a pool of the first driver may have."""
    attributes = {"model": {"string": "t4"}, "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"}}
    count = builder.pick((1, 1, 2, 3))
    pool = {
        "name": builder.pick(("node-0", "node-1", "shared")),
        "generation": 1,
        "resourceSliceCount": count + builder.chance(0.05),
    }
    spec: Raw = {}
    for index in range(count):
        devices: list[Raw] = [
            {"name": f"gpu-{index + number}", "attributes": attributes, "capacity": {"memory": _capacity(builder)}}
            for number in range(0, builder.rng.randint(1, 3) * count, count)
        ]
        spec = {"driver": "other.example.com", "pool": pool, "devices": devices, **_placement(builder)}
        builder.add("resource.k8s.io/v1", "ResourceSlice", f"rare-pool-{index}", spec=spec)
    if builder.chance(0.4) and count == 1 and "nodeName" in spec:
        _add_counters(builder, spec)


def _add_rule(builder: ClusterBuilder, number: int) -> None:
    selector = {"driver": _GPU, "pool": builder.pick(("node-0", "node-1")), "device": builder.pick(("gpu-0", "gpu-1"))}
    spec: Raw = {"taint": {"key": "broken", "effect": builder.pick(_TAINT_EFFECTS), "value": "rule"}}
    if builder.chance(0.9):
        spec["deviceSelector"] = dict(builder.sample(list(selector.items()), 0, 3))
    builder.add("resource.k8s.io/v1", "DeviceTaintRule", f"rule-{number}", spec=spec)


def _parts(claim: Raw) -> list[Raw]:
    requests = claim["spec"]["devices"]["requests"]
    return [part for request in requests for part in request.get("firstAvailable") or [request["exactly"]]]


def _make_expressions(builder: ClusterBuilder) -> list[str]:
    """Return one or two expressions, each alone or combined with another one."""
    expressions = builder.sample(_EXPRESSIONS, 1, 2)
    if builder.chance(0.3):
        form = builder.pick(("({}) && ({})", "({}) || ({})", "!({}) || ({})", "({}) ? ({}) : true"))
        expressions[0] = form.format(expressions[0], builder.pick(_EXPRESSIONS))
    return expressions


def _change_claim(builder: ClusterBuilder, claim: Raw) -> None:
    devices = claim["spec"]["devices"]
    if builder.chance(0.3):
        part = {"deviceClassName": builder.pick(("gpu", "any")), "allocationMode": "ExactCount", "count": 1}
        devices["requests"].append({"name": "extra", "exactly": part})
    for part in _parts(claim):
        if builder.chance(0.3):
            part["selectors"] = [{"cel": {"expression": text}} for text in _make_expressions(builder)]
        if builder.chance(0.2):
            amounts = {"memory": builder.pick(("1", "3", "10Gi", "8", "0", "1500m")), "bandwidth": "1", "nothing": "1"}
            part["capacity"] = {"requests": dict(builder.sample(list(amounts.items()), 1, 2))}
        if builder.chance(0.2):
            part["tolerations"] = builder.sample(
                (
                    {"operator": "Exists"},
                    {"key": "broken", "operator": "Equal", "value": "yes"},
                    {"key": "broken", "operator": "Exists", "effect": "NoExecute"},
                    {"key": "slow", "value": ""},
                ),
                1,
                2,
            )
        if part.get("allocationMode") == "ExactCount" and builder.chance(0.1):
            part["count"] = builder.pick((3, 5, 32, 33))
    names = [request["name"] for request in devices["requests"]]
    names += [f"{r['name']}/{part['name']}" for r in devices["requests"] for part in r.get("firstAvailable", [])]
    if builder.chance(0.4):
        attribute = builder.pick(("model", "numa", "index", "version", "healthy", "nothing"))
        constraint: Raw = {builder.pick(("matchAttribute", "distinctAttribute")): f"{_GPU}/{attribute}"}
        if builder.chance(0.7):
            constraint["requests"] = builder.sample(names, 1, 2)
        devices.setdefault("constraints", []).append(constraint)
    if builder.chance(0.1):
        devices["config"] = [{"requests": builder.sample(names, 0, 2), "opaque": {"driver": _GPU, "parameters": {}}}]


def _allocate(builder: ClusterBuilder, claim: Raw) -> None:
    """Allocate a device of any pool to a claim, perhaps a share of it or with admin access."""
    pools = [item["spec"] for item in builder.items if item["kind"] == "ResourceSlice" and item["spec"].get("devices")]
    if not pools:
        return
    spec = builder.pick(pools)
    device = builder.pick(spec["devices"])
    result: Raw = {
        "request": "r0",
        "driver": spec["driver"],
        "pool": spec["pool"]["name"],
        "device": device["name"],
    }
    if device.get("allowMultipleAllocations") and builder.chance(0.8):
        result["shareID"] = "11111111-1111-1111-1111-11111111111" + str(builder.rng.randint(0, 9))
        if builder.chance(0.9):
            result["consumedCapacity"] = {"memory": builder.pick(("1", "10Gi", "3"))}
    if builder.chance(0.1):
        result["adminAccess"] = True
    if builder.chance(0.2):
        result["bindingConditions"] = ["ready"]
        result["bindingFailureConditions"] = ["failed"]
    allocation: Raw = {"devices": {"results": [result]}, "allocationTimestamp": "2026-02-28T00:00:00Z"}
    if builder.chance(0.7):
        names = [builder.pick(builder.nodes)["metadata"]["name"]]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [term]}
    claim["status"] = {"allocation": allocation}
    _change_allocation(builder, claim)


def _change_allocation(builder: ClusterBuilder, claim: Raw) -> None:
    status = claim["status"]
    if builder.chance(0.3):
        status["reservedFor"] = [
            {"resource": "pods", "name": f"other-{number}", "uid": f"other-{number}"}
            for number in range(builder.pick((0, 1, 1, 255, 256)))
        ]
    result = status["allocation"]["devices"]["results"][0]
    if builder.chance(0.3):
        conditions = [
            {"type": name, "status": builder.pick(("True", "False")), "reason": "x", "message": "", **_TIME}
            for name in builder.sample(("ready", "failed"), 1, 2)
        ]
        entry = {key: result[key] for key in ("driver", "pool", "device")}
        if "shareID" in result:
            entry["shareID"] = result["shareID"]
        status["devices"] = [{**entry, "conditions": conditions}]


def _request_extended(builder: ClusterBuilder, pod: Raw, slices: list[Raw]) -> None:
    classes = (f"deviceclass.resource.kubernetes.io/{name}" for name in ("gpu", "missing", "any"))
    names = ("example.com/gpu", "example.com/fpga", *classes)
    spec = pod["spec"]
    if "initContainers" not in spec and builder.chance(0.4):
        spec["initContainers"] = [{"name": "rare", "image": "busybox:1"}]
        if builder.chance(0.5):
            spec["initContainers"][0]["restartPolicy"] = "Always"
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        for name in builder.sample(names, 0, 2):
            resources: dict[str, Any] = container.setdefault("resources", {})
            amount = builder.pick(("1", "1", "2", "0", "3"))
            resources.setdefault("requests", {})[name] = amount
            resources.setdefault("limits", {})[name] = amount
    if builder.chance(0.4):
        _add_extended_claim(builder, pod, slices)


def _add_extended_claim(builder: ClusterBuilder, pod: Raw, slices: list[Raw]) -> None:
    """Add the claim for extended resources that an earlier attempt wrote, perhaps with a device; a bound pod has it."""
    metadata, node = pod["metadata"], pod["spec"].get("nodeName")
    name = f"{metadata['name']}-extended-resources-x"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    if builder.chance(0.1):
        owner["uid"] = "earlier-pod"
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    request = {"name": "container-0-request-0", "exactly": exactly}
    devices = [
        {"driver": item["spec"]["driver"], "pool": item["spec"]["pool"]["name"], "device": device["name"]}
        for item in slices
        if not node or item["spec"].get("nodeName") == node
        for device in item["spec"].get("devices", ())
    ]
    status: Raw = {}
    if devices and (node or builder.chance(0.6)):
        status["allocation"] = {"devices": {"results": [{"request": request["name"], **builder.pick(devices)}]}}
        if node or builder.chance(0.5):
            status["reservedFor"] = [{"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}]
    annotations = {"resource.kubernetes.io/extended-resource-claim": builder.pick(("true", "true", "true", "false"))}
    claim_metadata = {"annotations": annotations, "ownerReferences": [owner]}
    spec = {"devices": {"requests": [request]}}
    namespace = metadata["namespace"]
    builder.add(
        "resource.k8s.io/v1", "ResourceClaim", name, namespace, metadata=claim_metadata, spec=spec, status=status
    )
    if node:
        pod["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": name, "requestMappings": []}


def _add_second_claim(builder: ClusterBuilder, pod: Raw) -> None:
    name, namespace = pod["metadata"]["name"] + "-second", pod["metadata"]["namespace"]
    part = {"deviceClassName": "gpu", "allocationMode": builder.pick(("All", "ExactCount")), "count": 1}
    if part["allocationMode"] == "All":
        del part["count"]
    spec = {"devices": {"requests": [{"name": "r0", "exactly": part}]}}
    builder.add("resource.k8s.io/v1", "ResourceClaim", name, namespace, spec=spec, status={})
    pod["spec"].setdefault("resourceClaims", []).append({"name": "second", "resourceClaimName": name})
    pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("claims", []).append({"name": "second"})
