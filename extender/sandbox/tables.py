"""Tables: the columns that `kubectl get` shows of each kind, computed here as the server does.

Source: pkg/printers/internalversion/printers.go; meta.k8s.io/v1 Table.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from extender.sandbox import cells
from extender.sandbox.cells import at
from extender.sandbox.event_forms import to_core
from extender.sandbox.served import Object, Served

Cell = Callable[[Object, float], Any]
"""Given the object and the time now, in seconds since 1970."""


class Column(NamedTuple):
    """A column.

    Attributes:
        name: its head.
        cell: what it says.
        type: `string` or `integer`.
        wide: it is shown with `-o wide` only.
    """

    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False


def _field(path: str, absent: Any = "") -> Cell:
    return lambda thing, _: at(thing, path, absent)


def _wide(name: str, cell: Cell) -> Column:
    return Column(name, cell, "string", True)


def _whole(name: str, path: str) -> Column:
    return Column(name, _field(path, 0), "integer")


def _yes(name: str, path: str, *, absent: bool = False) -> Column:
    return Column(name, _field(path, absent), "boolean")


def _address(kind: str) -> Cell:
    return lambda node, _: cells.node_address(node, kind)


_NAME: Final = Column("Name", _field("metadata.name"))
_AGE: Final = Column("Age", cells.age)
_CONTAINERS: Final = (
    _wide("Containers", lambda it, _: cells.texts(c["name"] for c in at(it, "spec.template.spec.containers", []))),
    _wide("Images", lambda it, _: cells.texts(c.get("image") for c in at(it, "spec.template.spec.containers", []))),
)
_REPLICAS: Final = (
    _NAME,
    _whole("Desired", "spec.replicas"),
    _whole("Current", "status.replicas"),
    _whole("Ready", "status.readyReplicas"),
    _AGE,
    *_CONTAINERS,
    _wide("Selector", cells.selector),
)

_COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Pod": (
        _NAME,
        Column("Ready", cells.pod_ready),
        Column("Status", cells.pod_status),
        Column("Restarts", cells.pod_restarts),
        _AGE,
        _wide("IP", _field("status.podIP", "<none>")),
        _wide("Node", _field("spec.nodeName", "<none>")),
        _wide("Nominated Node", _field("status.nominatedNodeName", "<none>")),
        _wide("Readiness Gates", cells.pod_gates),
    ),
    "Node": (
        _NAME,
        Column("Status", cells.node_status),
        Column("Roles", cells.node_roles),
        _AGE,
        Column("Version", _field("status.nodeInfo.kubeletVersion")),
        _wide("Internal-IP", _address("InternalIP")),
        _wide("External-IP", _address("ExternalIP")),
        _wide("OS-Image", _field("status.nodeInfo.osImage", "<unknown>")),
        _wide("Kernel-Version", _field("status.nodeInfo.kernelVersion", "<unknown>")),
        _wide("Container-Runtime", _field("status.nodeInfo.containerRuntimeVersion", "<unknown>")),
    ),
    "Namespace": (_NAME, Column("Status", _field("status.phase")), _AGE),
    "Event": (
        Column("Last Seen", cells.event_seen),
        Column("Type", _field("type")),
        Column("Reason", _field("reason")),
        Column("Object", cells.event_object),
        _wide("Subobject", _field("involvedObject.fieldPath")),
        _wide("Source", cells.event_source),
        Column("Message", lambda it, _: str(at(it, "message")).strip()),
        _wide("First Seen", cells.event_first_seen),
        _wide("Count", cells.event_count),
        Column("Name", _field("metadata.name"), "string", True),
    ),
    "Service": (
        _NAME,
        Column("Type", _field("spec.type")),
        Column("Cluster-IP", _field("spec.clusterIP", "<none>")),
        Column("External-IP", lambda it, _: cells.texts(at(it, "spec.externalIPs", []))),
        Column("Port(s)", cells.service_ports),
        _AGE,
        _wide("Selector", lambda it, _: cells.pairs(at(it, "spec.selector", {}))),
    ),
    "ReplicaSet": _REPLICAS,
    "ReplicationController": _REPLICAS,
    "StatefulSet": (
        _NAME,
        Column("Ready", lambda it, _: f"{at(it, 'status.readyReplicas', 0)}/{at(it, 'spec.replicas', 0)}"),
        _AGE,
        *_CONTAINERS,
    ),
    "PodDisruptionBudget": (
        _NAME,
        Column("Min Available", lambda it, _: str(at(it, "spec.minAvailable", "N/A"))),
        Column("Max Unavailable", lambda it, _: str(at(it, "spec.maxUnavailable", "N/A"))),
        _whole("Allowed Disruptions", "status.disruptionsAllowed"),
        _AGE,
    ),
    "PriorityClass": (
        _NAME,
        _whole("Value", "value"),
        Column("Global-Default", _field("globalDefault", False), "boolean"),
        _AGE,
        Column("PreemptionPolicy", _field("preemptionPolicy")),
    ),
    "PersistentVolume": (
        _NAME,
        Column("Capacity", _field("spec.capacity.storage")),
        Column("Access Modes", lambda it, _: cells.modes(it, "spec.accessModes")),
        Column("Reclaim Policy", _field("spec.persistentVolumeReclaimPolicy")),
        Column("Status", _field("status.phase")),
        Column("Claim", cells.volume_claim),
        Column("StorageClass", _field("spec.storageClassName")),
        Column("VolumeAttributesClass", _field("spec.volumeAttributesClassName", "<unset>")),
        Column("Reason", _field("status.reason")),
        _AGE,
        _wide("VolumeMode", _field("spec.volumeMode")),
    ),
    "PersistentVolumeClaim": (
        _NAME,
        Column("Status", _field("status.phase")),
        Column("Volume", _field("spec.volumeName")),
        Column("Capacity", _field("status.capacity.storage")),
        Column("Access Modes", lambda it, _: cells.modes(it, "status.accessModes")),
        Column("StorageClass", _field("spec.storageClassName")),
        Column("VolumeAttributesClass", _field("spec.volumeAttributesClassName", "<unset>")),
        _AGE,
        _wide("VolumeMode", _field("spec.volumeMode")),
    ),
    "StorageClass": (
        Column("Name", cells.class_name),
        Column("Provisioner", _field("provisioner")),
        Column("ReclaimPolicy", _field("reclaimPolicy")),
        Column("VolumeBindingMode", _field("volumeBindingMode")),
        Column("AllowVolumeExpansion", _field("allowVolumeExpansion", False)),
        _AGE,
    ),
    "CSINode": (_NAME, Column("Drivers", lambda it, _: len(at(it, "spec.drivers", [])), "integer"), _AGE),
    "CSIDriver": (
        _NAME,
        _yes("AttachRequired", "spec.attachRequired", absent=True),
        _yes("PodInfoOnMount", "spec.podInfoOnMount"),
        _yes("StorageCapacity", "spec.storageCapacity"),
        Column(
            "TokenRequests",
            lambda it, _: cells.texts((t["audience"] for t in at(it, "spec.tokenRequests", [])), "<unset>"),
        ),
        _yes("RequiresRepublish", "spec.requiresRepublish"),
        Column("Modes", lambda it, _: cells.texts(at(it, "spec.volumeLifecycleModes", []))),
        _AGE,
    ),
    "DeviceClass": (_NAME, _AGE),
    "ResourceClaimTemplate": (_NAME, _AGE),
    "ResourceClaim": (_NAME, Column("State", cells.claim_state), _AGE),
    "ResourceSlice": (
        _NAME,
        Column("Node", _field("spec.nodeName")),
        Column("Driver", _field("spec.driver")),
        Column("Pool", _field("spec.pool.name")),
        _AGE,
    ),
    "VolumeAttachment": (
        _NAME,
        Column("Attacher", _field("spec.attacher")),
        Column("PV", _field("spec.source.persistentVolumeName")),
        Column("Node", _field("spec.nodeName")),
        Column("Attached", _field("status.attached", False), "boolean"),
        _AGE,
    ),
    "Lease": (_NAME, Column("Holder", _field("spec.holderIdentity")), _AGE),
}
_NAMES: Final = ("Name", "Attacher")
_ANY: Final = (_NAME, Column("Created At", _field("metadata.creationTimestamp"), "date"))


def table(
    kind: Served, objects: Iterable[Object], now: float, meta: Object, include: str = "Metadata", *, heads: bool = True
) -> Object:
    """A Table of objects.

    Args:
        kind: what they are.
        objects: the rows.
        now: for ages, in seconds since 1970.
        meta: of the list.
        include: what of each object goes with its row: `None`, `Metadata` or `Object`.
        heads: with the columns; a watch sends them once.
    """
    columns = _COLUMNS.get(kind.kind, _ANY)
    made: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    made["columnDefinitions"] = [_head(column) for column in columns] if heads else None
    made["rows"] = [_row(kind, columns, thing, now, include) for thing in objects]
    return made


def _head(column: Column) -> Object:
    shape = {"name": column.name, "type": column.type, "format": "name" if column.name in _NAMES else ""}
    return {**shape, "description": column.name, "priority": int(column.wide)}


def _row(kind: Served, columns: tuple[Column, ...], thing: Object, now: float, include: str) -> Object:
    read = to_core(thing) if kind.version == "events.k8s.io/v1" else thing
    row: Object = {"cells": [column.cell(read, now) for column in columns]}
    if include == "Object":
        row["object"] = thing
    elif include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": thing["metadata"],
        }
    return row
