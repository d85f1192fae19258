"""Adds states that other modules rarely combine: prebound volumes, preempted pods, constraints, counters, fractions."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw

_GPU: Final = "gpu.example.com"
_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_IN_TREE_CLASSES: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
}


def add_rare_states(builder: ClusterBuilder) -> None:
    """Change volumes, claims, devices and the pods on nominated nodes, each in some scenarios."""
    for change in (
        _prebind_volumes,
        _limit_in_tree_classes,
        _terminate_victims,
        _constrain_attributes,
        _share_fractions,
    ):
        if builder.chance(0.5):
            change(builder)
    if builder.chance(0.2):
        _conflict_counters(builder)


def _of_kind(builder: ClusterBuilder, kind: str) -> list[Raw]:
    return [item for item in builder.items if item["kind"] == kind]


def _prebind_volumes(builder: ClusterBuilder) -> None:
    """Let volumes refer to claims that do not refer to them, by name or also by uid.

    Each volume has a claim of its own: kube-scheduler takes any of several volumes that refer to one claim.
    """
    volumes = [item for item in _of_kind(builder, "PersistentVolume") if "claimRef" not in item["spec"]]
    for claim in _of_kind(builder, "PersistentVolumeClaim"):
        if "volumeName" in claim["spec"] or not volumes or builder.chance(0.4):
            continue
        volume = builder.pick(volumes)
        volumes.remove(volume)
        metadata, spec = volume["metadata"], volume["spec"]
        reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
        reference |= {key: claim["metadata"][key] for key in ("name", "namespace")}
        if builder.chance(0.5):
            reference["uid"] = builder.pick((claim["metadata"]["uid"], claim["metadata"]["uid"], "other"))
        spec["claimRef"] = reference
        if builder.chance(0.8):
            spec["storageClassName"] = claim["spec"].get("storageClassName", "")
        if builder.chance(0.2):
            metadata.setdefault("annotations", {})[_STORAGE_CLASS] = spec["storageClassName"]
            spec["storageClassName"] = "other"
        if builder.chance(0.8):
            spec["capacity"] = {"storage": "1Ti"}
            spec["volumeMode"] = claim["spec"].get("volumeMode", "Filesystem")
        if builder.chance(0.1):
            volume["status"]["phase"] = "Bound"
        for item in (volume, claim):
            if builder.chance(0.15):
                item["spec"]["volumeAttributesClassName"] = builder.pick(("gold", "silver"))
        if builder.chance(0.1):
            metadata["deletionTimestamp"] = "2026-02-28T23:00:00Z"
            metadata["finalizers"] = ["kubernetes.io/pv-protection"]


def _limit_in_tree_classes(builder: ClusterBuilder) -> None:
    """Let unbound claims have a class of an in-tree provisioner, whose driver has a limit on the nodes."""
    classes = _of_kind(builder, "StorageClass")
    if not classes:
        return
    provisioner = builder.pick(list(_IN_TREE_CLASSES))
    fields: Raw = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"}
    builder.add("storage.k8s.io/v1", "StorageClass", "migrated", **fields)
    for claim in _of_kind(builder, "PersistentVolumeClaim"):
        if "volumeName" not in claim["spec"] and builder.chance(0.5):
            claim["spec"]["storageClassName"] = "migrated"
    for node in _of_kind(builder, "CSINode"):
        name = _IN_TREE_CLASSES[provisioner]
        if all(entry["name"] != name for entry in node["spec"]["drivers"]) and builder.chance(0.8):
            entry = {"name": name, "nodeID": "x", "topologyKeys": [], "allocatable": {"count": builder.pick((0, 1, 2))}}
            node["spec"]["drivers"].append(entry)
        if builder.chance(0.7):
            migrated = builder.pick((provisioner, "kubernetes.io/aws-ebs,kubernetes.io/gce-pd", ""))
            annotations = node["metadata"].setdefault("annotations", {})
            annotations["storage.alpha.kubernetes.io/migrated-plugins"] = migrated


def _terminate_victims(builder: ClusterBuilder) -> None:
    """Nominate pending pods for nodes on which preempted pods still end, or pods that end for another reason."""
    bound = [pod for pod in _of_kind(builder, "Pod") if pod["spec"].get("nodeName")]
    pending = [pod for pod in _of_kind(builder, "Pod") if not pod["spec"].get("nodeName")]
    if not bound:
        return
    for pod in builder.sample(pending, 0, 2):
        node = builder.pick(bound)["spec"]["nodeName"]
        pod["status"]["nominatedNodeName"] = node
        if builder.chance(0.7):
            pod["spec"]["priority"] = builder.pick((100, 1000, 2000))
        for victim in [other for other in bound if other["spec"]["nodeName"] == node]:
            if builder.chance(0.5):
                continue
            if builder.chance(0.9):
                victim["metadata"]["deletionTimestamp"] = "2026-02-28T23:59:00Z"
                victim["metadata"]["deletionGracePeriodSeconds"] = 30
            status, reason = builder.pick(
                (("True", "PreemptionByScheduler"),) * 4
                + (("False", "PreemptionByScheduler"), ("True", "EvictionByEvictionAPI"))
            )
            conditions = victim["status"].setdefault("conditions", [])
            conditions.append({"type": "DisruptionTarget", "status": status, "reason": reason})


def _constrain_attributes(builder: ClusterBuilder) -> None:
    """Let claims for several devices constrain attributes of all types, for all requests or some of them."""
    for claim in _of_kind(builder, "ResourceClaim"):
        if claim["status"].get("allocation") or builder.chance(0.4):
            continue
        requests = claim["spec"]["devices"]["requests"]
        for request in requests:
            for each in [request.get("exactly"), *request.get("firstAvailable", ())]:
                if each and each.get("allocationMode") != "All" and builder.chance(0.7):
                    each["count"] = builder.pick((2, 2, 3))
        names = [request["name"] for request in requests] + [
            f"{request['name']}/{each['name']}" for request in requests for each in request.get("firstAvailable", ())
        ]
        constraints: list[Raw] = []
        for _ in range(builder.rng.randint(1, 2)):
            attribute = builder.pick(("healthy", "version", "model", "numa", "index", "missing"))
            field = builder.pick(("matchAttribute", "distinctAttribute"))
            constraint: Raw = {field: f"{_GPU}/{attribute}"}
            if builder.chance(0.3):
                constraint["requests"] = builder.sample(names, 1, 2)
            constraints.append(constraint)
        claim["spec"]["devices"]["constraints"] = constraints


def _share_fractions(builder: ClusterBuilder) -> None:
    """Let devices share capacities with fractions, and claims request such amounts."""
    policies: tuple[dict[str, Any], ...] = (
        {"default": "500m", "validRange": {"min": "500m", "step": "250m"}},
        {"default": "1", "validRange": {"min": "100m", "max": "3300m", "step": "400m"}},
        {"default": "1", "validRange": {"min": "1", "max": "4"}},
        {"default": "1500m", "validValues": ["500m", "1500m", "2"]},
        {"default": "1", "validRange": {"min": "1", "step": "1"}},
    )
    for item in _of_kind(builder, "ResourceSlice"):
        for device in item["spec"].get("devices", []):
            if builder.chance(0.5):
                device["allowMultipleAllocations"] = True
                device.setdefault("capacity", {})["share"] = {"value": builder.pick(("4", "2500m", "7300m", "10"))}
                if builder.chance(0.8):
                    device["capacity"]["share"]["requestPolicy"] = builder.pick(policies)
    for claim in _of_kind(builder, "ResourceClaim"):
        for request in claim["spec"]["devices"]["requests"]:
            for each in [request.get("exactly"), *request.get("firstAvailable", ())]:
                if each and builder.chance(0.5):
                    amount = builder.pick(("1", "700m", "1250m", "2", "1u", "3300m", "1333m", "5", "0"))
                    each["capacity"] = {"requests": {"share": amount}}


def _conflict_counters(builder: ClusterBuilder) -> None:
    """Let a pool have two counter sets of one name, or a device use a counter that its set does not have."""
    slices = _of_kind(builder, "ResourceSlice")
    for item in [item for item in slices if item["spec"].get("sharedCounters")]:
        if builder.chance(0.3):
            builder.add("resource.k8s.io/v1", "ResourceSlice", f"{item['metadata']['name']}-again", spec=item["spec"])
            count, pool = item["spec"]["pool"]["resourceSliceCount"] + 1, item["spec"]["pool"]["name"]
            for other in slices:
                if other["spec"]["pool"]["name"] == pool:
                    other["spec"]["pool"] = {**other["spec"]["pool"], "resourceSliceCount": count}
    uses = [
        use
        for item in slices
        for device in item["spec"].get("devices", ())
        for use in device.get("consumesCounters", ())
    ]
    for use in uses:
        if builder.chance(0.1):
            use["counters"]["missing"] = {"value": "1"}
