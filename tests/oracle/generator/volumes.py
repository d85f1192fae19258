"""Adds random storage: classes, drivers, volumes, claims and capacities, and the volumes of a pod."""

from typing import Any, Final

from tests.oracle.generator.builder import ClusterBuilder, Raw
from tests.oracle.generator.nodes import ZONES

_EBS: Final = "ebs.csi.aws.com"
_LOCAL: Final = "topolvm.io"
_NODE_KEY: Final = "topology.topolvm.io/node"
_ZONE: Final = "topology.kubernetes.io/zone"
_SIZES: Final = ("1Gi", "5Gi", "10Gi", "100Gi")
_CLASSES: Final = ("standard", "late", "capacity", "manual", "zonal")
_MODES: Final = ("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod")


def add_storage(builder: ClusterBuilder) -> None:
    """Add the storage classes, drivers and CSI nodes of a cluster, and volumes without a claim."""
    classes: dict[str, Raw] = {
        "standard": {"provisioner": _EBS, "volumeBindingMode": "Immediate"},
        "late": {"provisioner": _EBS, "volumeBindingMode": "WaitForFirstConsumer"},
        "capacity": {"provisioner": _LOCAL, "volumeBindingMode": "WaitForFirstConsumer"},
        "manual": {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
        "zonal": {
            "provisioner": _EBS,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": _ZONE, "values": [builder.pick(ZONES)]}]}],
        },
    }
    for name, fields in classes.items():
        builder.add("storage.k8s.io/v1", "StorageClass", name, reclaimPolicy="Delete", **fields)
    # Only one driver, because kube-scheduler names any of several missing drivers.
    required_drivers = [driver for driver in (_EBS, _LOCAL) if builder.chance(0.1)][:1]
    for driver in (_EBS, _LOCAL):
        spec: Raw = {"attachRequired": driver == _EBS, "podInfoOnMount": False, "storageCapacity": driver == _LOCAL}
        if driver in required_drivers:
            spec["preventPodSchedulingIfMissing"] = True
        builder.add("storage.k8s.io/v1", "CSIDriver", driver, spec=spec)
    for node in builder.nodes:
        _add_csi_node(builder, node)
    for number in range(builder.rng.randint(0, 3)):
        _add_volume(builder, f"free-{number}", builder.pick(("manual", "late", "standard")))


def _add_csi_node(builder: ClusterBuilder, node: Raw) -> None:
    name = node["metadata"]["name"]
    node["metadata"]["labels"][_NODE_KEY] = name
    drivers = []
    for driver, key in ((_EBS, _ZONE), (_LOCAL, _NODE_KEY)):
        if builder.chance(0.85):
            entry: Raw = {"name": driver, "nodeID": f"{name}-id", "topologyKeys": [key]}
            if builder.chance(0.7):
                entry["allocatable"] = {"count": builder.pick((0, 1, 2, 25))}
            drivers.append(entry)
    if builder.chance(0.9):
        metadata: Raw = {}
        if builder.chance(0.5):
            migrated = "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"
            metadata["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
        builder.add("storage.k8s.io/v1", "CSINode", name, metadata=metadata, spec={"drivers": drivers})
    if builder.chance(0.7):
        fields: Raw = {"storageClassName": "capacity", "nodeTopology": {"matchLabels": {_NODE_KEY: name}}}
        if builder.chance(0.9):
            fields["capacity"] = builder.pick(_SIZES)
        if builder.chance(0.2):
            fields["maximumVolumeSize"] = builder.pick(_SIZES)
        builder.add("storage.k8s.io/v1", "CSIStorageCapacity", f"capacity-{name}", "kube-system", **fields)


def _add_volume(builder: ClusterBuilder, name: str, class_name: str, claim: Raw | None = None, node: str = "") -> Raw:
    mode = builder.pick(_MODES)
    spec: Raw = {
        "capacity": {"storage": builder.pick(_SIZES)},
        "accessModes": [mode],
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": class_name,
        "volumeMode": "Filesystem" if builder.chance(0.95) else "Block",
    }
    kind = builder.pick(("csi", "csi", "csi", "local", "awsElasticBlockStore", "gcePersistentDisk", "nfs"))
    if kind == "csi":
        spec["csi"] = {"driver": _EBS, "volumeHandle": f"vol-{name}"}
    elif kind == "local":
        spec["local"] = {"path": "/mnt"}
    elif kind == "awsElasticBlockStore":
        spec[kind] = {"volumeID": f"vol-{name}"}
    elif kind == "gcePersistentDisk":
        spec[kind] = {"pdName": f"disk-{name}"}
    else:
        spec[kind] = {"server": "nfs", "path": "/share"}
    if kind == "local" or builder.chance(0.4):
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [_volume_term(builder, node)]}}
    metadata: Raw = {"labels": {"disk": builder.pick(("fast", "slow"))}}
    if builder.chance(0.25):
        metadata["labels"][_ZONE] = builder.pick((*ZONES, "z1__z2"))
    if claim is not None:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **claim}
        metadata["annotations"] = {"pv.kubernetes.io/bound-by-controller": "yes"}
    phase = "Bound" if claim is not None else "Available"
    return builder.add("v1", "PersistentVolume", f"pv-{name}", metadata=metadata, spec=spec, status={"phase": phase})


def _volume_term(builder: ClusterBuilder, node: str) -> Raw:
    if builder.chance(0.5):
        return {"matchExpressions": [{"key": _ZONE, "operator": "In", "values": builder.sample(ZONES, 1, 2)}]}
    names = [entry["metadata"]["name"] for entry in builder.nodes]
    name = node if node and builder.chance(0.8) else builder.pick(names)
    return {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]}


def add_volumes(builder: ClusterBuilder, pod: Raw, pod_name: str, namespace: str, node: str) -> None:
    """Add volumes to a pod, with their claims."""
    volumes = pod["spec"].setdefault("volumes", [])
    for number in range(builder.rng.randint(1, 2)):
        name = f"{pod_name}-{number}"
        kind = builder.pick(("claim", "claim", "claim", "shared", "missing", "disk", "ephemeral", "inline"))
        if kind == "disk":
            volumes.append({"name": f"v{number}", **_disk(builder)})
        elif kind == "inline":
            volumes.append({"name": f"v{number}", "csi": {"driver": builder.pick((_EBS, _LOCAL))}})
        elif kind == "ephemeral":
            claim_name = f"{pod_name}-v{number}"
            spec = _claim_spec(builder, builder.pick(_CLASSES))
            volumes.append({"name": f"v{number}", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
            if builder.chance(0.8):
                _add_claim(builder, claim_name, namespace, node, spec)
        else:
            claim_name = name if kind == "claim" else "no-claim" if kind == "missing" else "shared"
            existing = {item["metadata"]["name"] for item in builder.items if _is_claim_in(item, namespace)}
            if kind != "missing" and claim_name not in existing:
                _add_claim(builder, claim_name, namespace, node, _claim_spec(builder, builder.pick(_CLASSES)))
            source: Raw = {"claimName": claim_name}
            if builder.chance(0.1):
                source["readOnly"] = True
            volumes.append({"name": f"v{number}", "persistentVolumeClaim": source})


def _is_claim_in(item: Raw, namespace: str) -> bool:
    return item["kind"] == "PersistentVolumeClaim" and item["metadata"]["namespace"] == namespace


def _disk(builder: ClusterBuilder) -> dict[str, Any]:
    read_only = builder.chance(0.4)
    return builder.pick(
        (
            {"gcePersistentDisk": {"pdName": builder.pick(("d1", "d2")), "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": builder.pick(("d1", "d2")), "readOnly": read_only}},
            {"iscsi": {"targetPortal": "t", "iqn": builder.pick(("i1", "i2")), "lun": 0, "readOnly": read_only}},
            {"rbd": {"monitors": ["m"], "image": builder.pick(("i1", "i2")), "pool": "rbd", "readOnly": read_only}},
        )
    )


def _claim_spec(builder: ClusterBuilder, class_name: str) -> Raw:
    spec: Raw = {
        "accessModes": [builder.pick(_MODES)],
        "resources": {"requests": {"storage": builder.pick(_SIZES)}},
        "storageClassName": class_name if builder.chance(0.97) else "no-such-class",
        "volumeMode": "Filesystem",
    }
    if builder.chance(0.1):
        spec["selector"] = {"matchLabels": {"disk": "fast"}}
    return spec


def _add_claim(builder: ClusterBuilder, name: str, namespace: str, node: str, spec: Raw) -> None:
    spec = dict(spec)
    metadata: Raw = {}
    status: Raw = {"phase": "Pending"}
    if builder.chance(0.9 if node else 0.4):
        volume_name = f"pv-{namespace}-{name}"
        spec["volumeName"] = volume_name
        metadata["annotations"] = {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        status = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": spec["resources"]["requests"]}
    if builder.chance(0.03):
        metadata["deletionTimestamp"] = "2026-02-28T23:00:00Z"
        metadata["finalizers"] = ["kubernetes.io/pvc-protection"]
    if name.rpartition("-")[2].startswith("v"):
        pod_name = name.rpartition("-")[0]
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": "unknown", "controller": True}
        ]
    claim = builder.add("v1", "PersistentVolumeClaim", name, namespace, metadata=metadata, spec=spec, status=status)
    if "volumeName" in spec and builder.chance(0.95):
        reference = {"name": name, "namespace": namespace, "uid": claim["metadata"]["uid"]}
        _add_volume(builder, f"{namespace}-{name}", spec["storageClassName"], reference, node)
