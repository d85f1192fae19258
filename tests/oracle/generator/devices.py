"""Adds random devices: classes, slices and claims of dynamic resource allocation."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw

_GPU: Final = "gpu.example.com"
_NIC: Final = "nic.example.com"
_MODELS: Final = ("a100", "t4")
_EXPRESSIONS: Final = (
    f'device.attributes["{_GPU}"].model == "a100"',
    f'device.attributes["{_GPU}"].index < 2',
    f'device.capacity["{_GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
    f'device.attributes["{_GPU}"].healthy',
    f'device.attributes["{_GPU}"].version.isGreaterThan(semver("1.5.0"))',
    f'"index" in device.attributes["{_GPU}"] && device.driver == "{_GPU}"',
    'device.driver.startsWith("gpu")',
    "true",
)


def add_devices(builder: ClusterBuilder, *, beta: bool) -> None:
    """Add classes and slices. With *beta* also taints, shared counters, capacities to share and binding conditions."""
    gpu_class: Raw = {"selectors": [{"cel": {"expression": f'device.driver == "{_GPU}"'}}]}
    if beta and builder.chance(0.5):
        gpu_class["extendedResourceName"] = "example.com/gpu"
    builder.add("resource.k8s.io/v1", "DeviceClass", "gpu", spec=gpu_class)
    large = f'device.driver == "{_GPU}" && device.attributes["{_GPU}"].model == "a100"'
    builder.add("resource.k8s.io/v1", "DeviceClass", "gpu-a100", spec={"selectors": [{"cel": {"expression": large}}]})
    builder.add("resource.k8s.io/v1", "DeviceClass", "any", spec={})
    for node in builder.nodes:
        if builder.chance(0.8):
            _add_slices(builder, node["metadata"]["name"], beta=beta)
    if builder.chance(0.4):
        devices = [_device(builder, _NIC, f"nic-{number}", number) for number in range(builder.rng.randint(1, 3))]
        pool = {"name": "network", "generation": 1, "resourceSliceCount": 1}
        spec: Raw = {"driver": _NIC, "pool": pool, "devices": devices}
        if builder.chance(0.5):
            spec["allNodes"] = True
        else:
            expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1", "z2"]}
            spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        builder.add("resource.k8s.io/v1", "ResourceSlice", "network", spec=spec)


def _add_slices(builder: ClusterBuilder, node: str, *, beta: bool) -> None:
    devices = [_device(builder, _GPU, f"gpu-{number}", number) for number in range(builder.rng.randint(1, 4))]
    count = 2 if builder.chance(0.05) else 1
    counters: list[Raw] = []
    if beta:
        counters = _add_beta_fields(builder, devices)
        count += bool(counters)
    pool: Raw = {"name": node, "generation": 1, "resourceSliceCount": count}
    spec: Raw = {"driver": _GPU, "pool": pool, "nodeName": node}
    builder.add("resource.k8s.io/v1", "ResourceSlice", f"{node}-gpu", spec={**spec, "devices": devices})
    if counters:
        builder.add(
            "resource.k8s.io/v1", "ResourceSlice", f"{node}-counters", spec={**spec, "sharedCounters": counters}
        )
    if builder.chance(0.1):
        old = {**spec, "pool": {**pool, "generation": 0}, "devices": devices[:1]}
        builder.add("resource.k8s.io/v1", "ResourceSlice", f"{node}-old", spec=old)


def _device(builder: ClusterBuilder, driver: str, name: str, number: int) -> Raw:
    attributes: dict[str, Any] = {"model": {"string": builder.pick(_MODELS)}, "numa": {"int": number % 2}}
    if builder.chance(0.9):
        attributes["index"] = {"int": number}
    if builder.chance(0.9):
        attributes["healthy"] = {"bool": builder.chance(0.9)}
    if builder.chance(0.9):
        attributes["version"] = {"version": builder.pick(("1.2.3", "2.0.0"))}
    attributes["resource.kubernetes.io/pcieRoot"] = {"string": f"pci0000:0{number % 2}"}
    return {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": builder.pick(("16Gi", "40Gi", "80Gi"))}},
    }


def _add_beta_fields(builder: ClusterBuilder, devices: list[Raw]) -> list[Raw]:
    """Add beta fields to the devices, and return the shared counters."""
    counters: list[Raw] = []
    if builder.chance(0.4):
        counters = [{"name": "card", "counters": {"slots": {"value": builder.pick(("1", "2", "3"))}}}]
    for device in devices:
        if counters and builder.chance(0.8):
            use = {"slots": {"value": builder.pick(("1", "2"))}}
            device["consumesCounters"] = [{"counterSet": "card", "counters": use}]
        if builder.chance(0.25):
            effect = builder.pick(("NoSchedule", "NoExecute", "None"))
            device["taints"] = [
                {"key": "broken", "value": "yes", "effect": effect, "timeAdded": "2026-02-01T00:00:00Z"}
            ]
        if builder.chance(0.25):
            device["allowMultipleAllocations"] = True
            if builder.chance(0.6):
                policy = builder.pick(
                    (
                        {"default": "8Gi", "validRange": {"min": "4Gi", "step": "4Gi"}},
                        {"default": "8Gi", "validValues": ["8Gi", "16Gi"]},
                    )
                )
                device["capacity"]["memory"]["requestPolicy"] = policy
        if builder.chance(0.15):
            device["bindsToNode"] = True
            device["bindingConditions"] = ["ready"]
            device["bindingFailureConditions"] = ["failed"]
    return counters


def add_claims(builder: ClusterBuilder, pod: Raw, pod_name: str, namespace: str, node: str) -> None:
    """Add claims to a pod: for a bound pod an allocated claim, else one in any state."""
    kind = builder.pick(("claim", "claim", "claim", "claim", "shared", "template", "missing"))
    if node:
        kind = "claim"
    entry: Raw = {"name": "devices", "resourceClaimName": f"{pod_name}-claim"}
    if kind == "missing":
        entry["resourceClaimName"] = "no-claim"
    elif kind == "template":
        entry = {"name": "devices", "resourceClaimTemplateName": "template"}
        if builder.chance(0.8):
            name = f"{pod_name}-generated"
            owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": f"uid-{pod_name}", "controller": True}
            pod["metadata"]["uid"] = f"uid-{pod_name}"
            metadata = {"ownerReferences": [owner], "annotations": {"resource.kubernetes.io/pod-claim-name": "devices"}}
            builder.add(
                "resource.k8s.io/v1",
                "ResourceClaim",
                name,
                namespace,
                metadata=metadata,
                spec=_claim_spec(builder, namespace),
                status={},
            )
            pod["status"]["resourceClaimStatuses"] = [{"name": "devices", "resourceClaimName": name}]
    else:
        if kind == "shared":
            entry["resourceClaimName"] = "shared-claim"
        _add_claim(builder, entry["resourceClaimName"], namespace, pod, pod_name, node)
    pod["spec"]["resourceClaims"] = [entry]
    pod["spec"]["containers"][0].setdefault("resources", {})["claims"] = [{"name": "devices"}]


def _add_claim(builder: ClusterBuilder, name: str, namespace: str, pod: Raw, pod_name: str, node: str) -> None:
    claims = [item for item in builder.items if item["kind"] == "ResourceClaim"]
    if any(item["metadata"]["name"] == name and item["metadata"]["namespace"] == namespace for item in claims):
        return
    spec = _claim_spec(builder, namespace)
    status: Raw = {}
    metadata: Raw = {}
    device = _find_free_device(builder, node) if node or builder.chance(0.15) else None
    if device is not None:
        # An allocated claim has the simple request that its allocation satisfies.
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        spec = {"devices": {"requests": [{"name": "r0", "exactly": exactly}]}}
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [device[0]]}]}
        result = {"request": "r0", "driver": _GPU, "pool": device[0], "device": device[1]}
        allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
        status = {"allocation": allocation}
        if node:
            pod["metadata"]["uid"] = f"uid-{pod_name}"
            status["reservedFor"] = [{"resource": "pods", "name": pod_name, "uid": f"uid-{pod_name}"}]
        metadata = {"finalizers": ["resource.kubernetes.io/delete-protection"]}
    elif builder.chance(0.03):
        metadata = {"deletionTimestamp": "2026-02-28T23:00:00Z", "finalizers": ["example.com/wait"]}
    builder.add("resource.k8s.io/v1", "ResourceClaim", name, namespace, metadata=metadata, spec=spec, status=status)


def _find_free_device(builder: ClusterBuilder, node: str) -> tuple[str, str] | None:
    """Return pool and name of a plain device that no claim has."""
    used = {
        (result["pool"], result["device"])
        for item in builder.items
        if item["kind"] == "ResourceClaim"
        for result in item["status"].get("allocation", {}).get("devices", {}).get("results", [])
    }
    free = [
        (item["spec"]["nodeName"], device["name"])
        for item in builder.items
        if item["kind"] == "ResourceSlice" and item["spec"].get("nodeName") and item["spec"]["pool"]["generation"]
        for device in item["spec"].get("devices", [])
        if not device.keys() & {"consumesCounters", "allowMultipleAllocations", "bindingConditions"}
    ]
    left = [entry for entry in free if entry not in used and (not node or entry[0] == node)]
    return builder.pick(left) if left else None


def _claim_spec(builder: ClusterBuilder, namespace: str) -> Raw:
    requests: list[Raw] = []
    for number in range(builder.pick((1, 1, 2))):
        name = f"r{number}"
        if builder.chance(0.25):
            alternatives = [{"name": f"s{index}", **_request(builder)} for index in range(builder.rng.randint(1, 3))]
            requests.append({"name": name, "firstAvailable": alternatives})
        else:
            exactly = _request(builder)
            if namespace == "shop" and builder.chance(0.15):
                exactly["adminAccess"] = True
            requests.append({"name": name, "exactly": exactly})
    devices: Raw = {"requests": requests}
    if builder.chance(0.35):
        attribute = builder.pick((f"{_GPU}/model", f"{_GPU}/numa", "resource.kubernetes.io/pcieRoot"))
        field = builder.pick(("matchAttribute", "matchAttribute", "distinctAttribute"))
        devices["constraints"] = [{field: attribute}]
    return {"devices": devices}


def _request(builder: ClusterBuilder) -> Raw:
    request: Raw = {"deviceClassName": builder.pick(("gpu", "gpu", "gpu-a100", "any", "gpu"))}
    if builder.chance(0.02):
        request["deviceClassName"] = "no-such-class"
    if builder.chance(0.15):
        request["allocationMode"] = "All"
    else:
        request["allocationMode"] = "ExactCount"
        request["count"] = builder.pick((1, 1, 1, 2, 3))
    if builder.chance(0.5):
        request["selectors"] = [{"cel": {"expression": text}} for text in builder.sample(_EXPRESSIONS, 1, 2)]
    if builder.chance(0.2):
        request["tolerations"] = [{"key": "broken", "operator": "Exists"}]
    if builder.chance(0.15):
        request["capacity"] = {"requests": {"memory": builder.pick(("4Gi", "6Gi", "16Gi"))}}
    return request
