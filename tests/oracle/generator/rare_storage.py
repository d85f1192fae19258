"""Adds rare fields to the storage of a cluster: in-tree volumes, attachments, states of claims, many topologies."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.nodes import ZONES

_DRIVERS: Final = (
    "ebs.csi.aws.com",
    "pd.csi.storage.gke.io",
    "disk.csi.azure.com",
    "cinder.csi.openstack.org",
    "pxd.portworx.com",
    "csi.vsphere.vmware.com",
    "topolvm.io",
    "unknown.example.com",
)
_IN_TREE: Final = (
    "kubernetes.io/aws-ebs",
    "kubernetes.io/gce-pd",
    "kubernetes.io/azure-disk",
    "kubernetes.io/azure-file",
    "kubernetes.io/cinder",
    "kubernetes.io/portworx-volume",
    "kubernetes.io/vsphere-volume",
    "kubernetes.io/rbd",
)
_AZURE_DISK: Final = {"cachingMode": "None", "fsType": "ext4", "readOnly": False, "kind": "Managed"}
_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_ZONE_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)


def add_rare_storage_fields(builder: ClusterBuilder) -> None:
    """Change classes, drivers, volumes, claims and the volumes of pods, if the cluster has storage."""
    classes = [item for item in builder.items if item["kind"] == "StorageClass"]
    if not classes:
        return
    for name in builder.sample(_IN_TREE, 0, 2):
        mode = builder.pick(("Immediate", "WaitForFirstConsumer", "WaitForFirstConsumer"))
        fields: Raw = {"provisioner": name, "volumeBindingMode": mode, "reclaimPolicy": "Delete"}
        class_name = f"in-tree-{name.partition('/')[2]}"
        classes.append(builder.add("storage.k8s.io/v1", "StorageClass", class_name, **fields))
    for storage_class in classes:
        if builder.chance(0.15):
            storage_class["allowedTopologies"] = [_class_term(builder) for _ in range(builder.rng.randint(1, 2))]
    _change_csi_nodes(builder)
    _change_capacities(builder, [item["metadata"]["name"] for item in classes])
    names = [*(item["metadata"]["name"] for item in classes), ""]
    for volume in [item for item in builder.items if item["kind"] == "PersistentVolume"]:
        _change_volume(builder, volume, names)
    claims = [item for item in builder.items if item["kind"] == "PersistentVolumeClaim"]
    uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in builder.items if item["kind"] == "Pod"}
    for claim in claims:
        for owner in claim["metadata"].get("ownerReferences", []):
            if builder.chance(0.7):
                owner["uid"] = uids.get(owner["name"], "unknown")
        if builder.chance(0.25):
            _change_claim(builder, claim, names)
    _add_attachments(builder)
    for pod in [item for item in builder.items if item["kind"] == "Pod"]:
        if builder.chance(0.15):
            _add_pod_volumes(builder, pod, claims)


def _class_term(builder: ClusterBuilder) -> Raw:
    expressions = [{"key": "topology.kubernetes.io/zone", "values": builder.sample(ZONES, 1, 2)}]
    if builder.chance(0.4):
        expressions.append({"key": "disk", "values": ["ssd"]})
    if builder.chance(0.2):
        expressions = [{"key": "topology.topolvm.io/node", "values": [builder.pick(builder.nodes)["metadata"]["name"]]}]
    return {"matchLabelExpressions": expressions}


def _is_required_driver(item: Raw) -> bool:
    return item["kind"] == "CSIDriver" and "preventPodSchedulingIfMissing" in item["spec"]


def _change_csi_nodes(builder: ClusterBuilder) -> None:
    for driver in _DRIVERS:
        if builder.chance(0.3) and not any(item["metadata"]["name"] == driver for item in builder.items):
            spec: Raw = {"attachRequired": builder.chance(0.7), "podInfoOnMount": False}
            if builder.chance(0.3):
                spec["storageCapacity"] = True
            # kube-scheduler names any of several missing drivers.
            if builder.chance(0.2) and not any(_is_required_driver(item) for item in builder.items):
                spec["preventPodSchedulingIfMissing"] = True
            builder.add("storage.k8s.io/v1", "CSIDriver", driver, spec=spec)
    for csi_node in [item for item in builder.items if item["kind"] == "CSINode"]:
        known = {entry["name"] for entry in csi_node["spec"]["drivers"]}
        for driver in _DRIVERS:
            if driver not in known and builder.chance(0.3):
                entry: Raw = {"name": driver, "nodeID": "x", "topologyKeys": []}
                if builder.chance(0.8):
                    entry["allocatable"] = {"count": builder.pick((0, 1, 2, 3))} if builder.chance(0.9) else {}
                csi_node["spec"]["drivers"].append(entry)
        if builder.chance(0.7):
            migrated = ",".join(builder.sample(_IN_TREE, 1, 8))
            annotations = csi_node["metadata"].setdefault("annotations", {})
            annotations["storage.alpha.kubernetes.io/migrated-plugins"] = migrated


def _change_capacities(builder: ClusterBuilder, classes: list[str]) -> None:
    selectors: tuple[Any, ...] = (
        None,
        {},
        {"matchLabels": {"topology.kubernetes.io/zone": "z1"}},
        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", "hdd"]}]},
        {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]},
    )
    for number in range(builder.rng.randint(0, 4)):
        fields: Raw = {"storageClassName": builder.pick(classes)}
        selector = builder.pick(selectors)
        if selector is not None:
            fields["nodeTopology"] = selector
        if builder.chance(0.9):
            fields["capacity"] = builder.pick(("0", "1Gi", "7Gi", "10Gi", "1500M", "100Gi"))
        if builder.chance(0.2):
            fields["maximumVolumeSize"] = builder.pick(("1Gi", "5Gi", "100Gi"))
        builder.add("storage.k8s.io/v1", "CSIStorageCapacity", f"rare-{number}", "kube-system", **fields)


def _change_volume(builder: ClusterBuilder, volume: Raw, classes: list[str]) -> None:
    metadata, spec = volume["metadata"], volume["spec"]
    if builder.chance(0.2):
        _set_source(builder, spec, metadata["name"])
    if builder.chance(0.1):
        spec["storageClassName"] = builder.pick(classes)
    if builder.chance(0.1):
        spec["accessModes"] = builder.sample(_MODES, 1, 3)
    if builder.chance(0.1):
        spec["volumeAttributesClassName"] = builder.pick(("gold", "silver"))
    if builder.chance(0.1):
        labels = metadata.setdefault("labels", {})
        for name in builder.sample(_ZONE_LABELS, 1, 3):
            labels[name] = builder.pick(("z1", "z2", "z1__z3", "r1", "r2", ""))
    _change_binding(builder, volume)


def _change_binding(builder: ClusterBuilder, volume: Raw) -> None:
    metadata, spec = volume["metadata"], volume["spec"]
    if builder.chance(0.15):
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [_volume_term(builder) for _ in range(2)]}}
    if builder.chance(0.05):
        spec["nodeAffinity"] = builder.pick(({}, {"required": {"nodeSelectorTerms": [{}]}}))
    if builder.chance(0.05):
        metadata["deletionTimestamp"] = "2026-02-28T23:00:00Z"
        metadata["finalizers"] = ["kubernetes.io/pv-protection"]
    if "claimRef" in spec and builder.chance(0.1):
        spec["claimRef"]["uid"] = builder.pick(("", "other"))
    elif "claimRef" in spec and builder.chance(0.05):
        del spec["claimRef"]
    if builder.chance(0.1):
        volume["status"]["phase"] = builder.pick(("Available", "Released", "Failed", "Bound", "Pending"))


def _volume_term(builder: ClusterBuilder) -> Raw:
    expressions = [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [builder.pick(ZONES)]},
        {"key": "disk", "operator": "Exists"},
        {"key": "rank", "operator": builder.pick(("Gt", "Lt")), "values": ["4"]},
        {"key": "kubernetes.io/arch", "operator": "NotIn", "values": ["arm64"]},
    ]
    return {"matchExpressions": builder.sample(expressions, 1, 2)}


def _set_source(builder: ClusterBuilder, spec: Raw, name: str) -> None:
    for field in ("csi", "local", "awsElasticBlockStore", "gcePersistentDisk", "nfs"):
        spec.pop(field, None)
    sources = (
        {"azureDisk": {"diskName": name, "diskURI": f"/subscriptions/{name}", **_AZURE_DISK}},
        {"azureFile": {"secretName": "s", "shareName": name}},
        {"cinder": {"volumeID": name}},
        {"portworxVolume": {"volumeID": name}},
        {"vsphereVolume": {"volumePath": f"[ds] {name}"}},
        {"rbd": {"monitors": ["m"], "image": name, "pool": "rbd"}},
        {"awsElasticBlockStore": {"volumeID": f"aws://us-east-1a/{name}"}},
        {"gcePersistentDisk": {"pdName": name, "partition": 1}},
        {"hostPath": {"path": "/x"}},
        {"csi": {"driver": builder.pick(_DRIVERS), "volumeHandle": builder.pick((name, "shared-handle"))}},
    )  # fmt: skip
    spec.update(builder.pick(sources))


def _change_claim(builder: ClusterBuilder, claim: Raw, classes: list[str]) -> None:
    metadata, spec = claim["metadata"], claim["spec"]
    annotations = metadata.setdefault("annotations", {})
    if "volumeName" in spec and builder.chance(0.2):
        annotations.pop("pv.kubernetes.io/bind-completed", None)
    elif "volumeName" not in spec and builder.chance(0.4):
        volumes = [item["metadata"]["name"] for item in builder.items if item["kind"] == "PersistentVolume"]
        names = [node["metadata"]["name"] for node in builder.nodes]
        expression = {"key": "disk", "operator": "In", "values": ["fast", "slow"]}
        field, value = builder.pick(
            (
                ("volumeName", builder.pick([*volumes, "missing"])),
                ("selector", {"matchExpressions": [expression]}),
                ("selected-node", builder.pick([*names, "missing"])),
            )
        )
        if field == "selected-node":
            annotations["volume.kubernetes.io/selected-node"] = value
        else:
            spec[field] = value
    if builder.chance(0.1):
        claim["status"]["phase"] = "Lost"
    if builder.chance(0.1):
        annotations["volume.beta.kubernetes.io/storage-class"] = builder.pick(classes)
    if builder.chance(0.1):
        spec.pop("storageClassName", None)
    changes: tuple[tuple[str, Any], ...] = (
        ("storageClassName", builder.pick(classes)),
        ("volumeAttributesClassName", builder.pick(("gold", "silver", ""))),
        ("accessModes", builder.sample(_MODES, 1, 3)),
        ("volumeMode", "Block"),
        ("resources", {"requests": {"storage": builder.pick(("1", "1500M", "5Gi", "1Ti", "0"))}}),
    )
    spec.update(builder.sample(changes, 0, 2))
    if not annotations:
        del metadata["annotations"]


def _add_attachments(builder: ClusterBuilder) -> None:
    volumes = [item["metadata"]["name"] for item in builder.items if item["kind"] == "PersistentVolume"]
    for number in range(builder.rng.randint(0, 3)):
        source: Raw = {"persistentVolumeName": builder.pick([*volumes, "missing"])}
        if builder.chance(0.2):
            inline: Raw = {"accessModes": ["ReadWriteOnce"], "awsElasticBlockStore": {"volumeID": "d1"}}
            if builder.chance(0.5):
                inline = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "h"}}
            source = {"inlineVolumeSpec": inline}
        spec = {
            "attacher": builder.pick(_DRIVERS[:3]),
            "nodeName": builder.pick(builder.nodes)["metadata"]["name"],
            "source": source,
        }
        status = {"attached": builder.chance(0.7)}
        metadata = {"deletionTimestamp": "2026-02-28T23:00:00Z", "finalizers": ["x"]} if builder.chance(0.1) else {}
        builder.add(
            "storage.k8s.io/v1", "VolumeAttachment", f"attachment-{number}", metadata=metadata, spec=spec, status=status
        )


def _add_pod_volumes(builder: ClusterBuilder, pod: Raw, claims: list[Raw]) -> None:
    volumes = pod["spec"].setdefault("volumes", [])
    read_only = builder.chance(0.5)
    sources: list[Raw] = [
        {"rbd": {"monitors": builder.sample(("m", "n"), 1, 2), "image": "i1", "pool": builder.pick(("rbd", "p2"))}},
        {"gcePersistentDisk": {"pdName": "d1", "partition": builder.pick((0, 1)), "readOnly": read_only}},
        {"azureDisk": {"diskName": "d1", "diskURI": builder.pick(("/d1", "/D1")), **_AZURE_DISK}},
        {"cinder": {"volumeID": "d1"}},
        {"portworxVolume": {"volumeID": "d1"}},
        {"vsphereVolume": {"volumePath": "[ds] d1"}},
        {"awsElasticBlockStore": {"volumeID": builder.pick(("d1", "aws://us-east-1a/d1"))}},
        {"azureFile": {"secretName": "s", "shareName": "d1"}},
        {"iscsi": {"targetPortal": builder.pick(("t", "u")), "iqn": "i1", "lun": 1, "readOnly": read_only}},
        {"emptyDir": {}},
        {"configMap": {"name": "c"}},
        {"nfs": {"server": "s", "path": "/"}},
    ]  # fmt: skip
    namespace = pod["metadata"]["namespace"]
    names = [claim["metadata"]["name"] for claim in claims if claim["metadata"]["namespace"] == namespace]
    sources += [{"persistentVolumeClaim": {"claimName": name}} for name in builder.sample(names, 0, 3)] if names else []
    for number, source in enumerate(builder.sample(sources, 1, 4)):
        volumes.append({"name": f"rare-{number}", **source})
