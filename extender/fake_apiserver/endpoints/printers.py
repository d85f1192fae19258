"""Tables: the columns that `kubectl get` shows for each kind.

Source: pkg/printers/internalversion/printers.go; meta.k8s.io/v1 Table.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from extender.fake_apiserver.endpoints import printer_cells
from extender.fake_apiserver.endpoints.printer_cells import get_field
from extender.fake_apiserver.registry.event_conversion import to_core
from extender.fake_apiserver.registry.resources import ApiResource, Object

Cell = Callable[[Object, float], Any]
"""Returns a cell for an object and the current time in seconds since 1970."""


class Column(NamedTuple):
    """A column.

    Attributes:
        name: the header.
        cell: the function that returns the value for an object.
        type: `string`, `integer`, `boolean` or `date`.
        wide: whether the column is shown only with `-o wide`.
    """

    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False


def _make_field_cell(path: str, absent: Any = "") -> Cell:
    return lambda content, _: get_field(content, path, absent)


def _make_wide_column(name: str, cell: Cell) -> Column:
    return Column(name, cell, "string", True)


def _make_integer_column(name: str, path: str) -> Column:
    return Column(name, _make_field_cell(path, 0), "integer")


def _make_boolean_column(name: str, path: str, *, absent: bool = False) -> Column:
    return Column(name, _make_field_cell(path, absent), "boolean")


def _make_node_address_cell(kind: str) -> Cell:
    return lambda node, _: printer_cells.find_node_address(node, kind)


_NAME: Final = Column("Name", _make_field_cell("metadata.name"))
_AGE: Final = Column("Age", printer_cells.format_age)
_CONTAINERS: Final = (
    _make_wide_column(
        "Containers",
        lambda content, _: printer_cells.join_values(
            container["name"] for container in get_field(content, "spec.template.spec.containers", [])
        ),
    ),
    _make_wide_column(
        "Images",
        lambda content, _: printer_cells.join_values(
            container.get("image") for container in get_field(content, "spec.template.spec.containers", [])
        ),
    ),
)
_REPLICAS: Final = (
    _NAME,
    _make_integer_column("Desired", "spec.replicas"),
    _make_integer_column("Current", "status.replicas"),
    _make_integer_column("Ready", "status.readyReplicas"),
    _AGE,
    *_CONTAINERS,
    _make_wide_column("Selector", printer_cells.format_workload_selector),
)

_COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Pod": (
        _NAME,
        Column("Ready", printer_cells.format_ready_containers),
        Column("Status", printer_cells.format_pod_status),
        Column("Restarts", printer_cells.format_pod_restarts),
        _AGE,
        _make_wide_column("IP", _make_field_cell("status.podIP", "<none>")),
        _make_wide_column("Node", _make_field_cell("spec.nodeName", "<none>")),
        _make_wide_column("Nominated Node", _make_field_cell("status.nominatedNodeName", "<none>")),
        _make_wide_column("Readiness Gates", printer_cells.format_pod_readiness_gates),
    ),
    "Node": (
        _NAME,
        Column("Status", printer_cells.format_node_status),
        Column("Roles", printer_cells.format_node_roles),
        _AGE,
        Column("Version", _make_field_cell("status.nodeInfo.kubeletVersion")),
        _make_wide_column("Internal-IP", _make_node_address_cell("InternalIP")),
        _make_wide_column("External-IP", _make_node_address_cell("ExternalIP")),
        _make_wide_column("OS-Image", _make_field_cell("status.nodeInfo.osImage", "<unknown>")),
        _make_wide_column("Kernel-Version", _make_field_cell("status.nodeInfo.kernelVersion", "<unknown>")),
        _make_wide_column(
            "Container-Runtime", _make_field_cell("status.nodeInfo.containerRuntimeVersion", "<unknown>")
        ),
    ),
    "Namespace": (_NAME, Column("Status", _make_field_cell("status.phase")), _AGE),
    "Event": (
        Column("Last Seen", printer_cells.format_event_last_seen),
        Column("Type", _make_field_cell("type")),
        Column("Reason", _make_field_cell("reason")),
        Column("Object", printer_cells.format_event_object),
        _make_wide_column("Subobject", _make_field_cell("involvedObject.fieldPath")),
        _make_wide_column("Source", printer_cells.format_event_source),
        Column("Message", lambda content, _: str(get_field(content, "message")).strip()),
        _make_wide_column("First Seen", printer_cells.format_event_first_seen),
        _make_wide_column("Count", printer_cells.get_event_count),
        Column("Name", _make_field_cell("metadata.name"), "string", True),
    ),
    "Service": (
        _NAME,
        Column("Type", _make_field_cell("spec.type")),
        Column("Cluster-IP", _make_field_cell("spec.clusterIP", "<none>")),
        Column("External-IP", lambda content, _: printer_cells.join_values(get_field(content, "spec.externalIPs", []))),
        Column("Port(s)", printer_cells.format_service_ports),
        _AGE,
        _make_wide_column(
            "Selector", lambda content, _: printer_cells.format_labels(get_field(content, "spec.selector", {}))
        ),
    ),
    "ReplicaSet": _REPLICAS,
    "ReplicationController": _REPLICAS,
    "StatefulSet": (
        _NAME,
        Column(
            "Ready",
            lambda content, _: (
                f"{get_field(content, 'status.readyReplicas', 0)}/{get_field(content, 'spec.replicas', 0)}"
            ),
        ),
        _AGE,
        *_CONTAINERS,
    ),
    "PodDisruptionBudget": (
        _NAME,
        Column("Min Available", lambda content, _: str(get_field(content, "spec.minAvailable", "N/A"))),
        Column("Max Unavailable", lambda content, _: str(get_field(content, "spec.maxUnavailable", "N/A"))),
        _make_integer_column("Allowed Disruptions", "status.disruptionsAllowed"),
        _AGE,
    ),
    "PriorityClass": (
        _NAME,
        _make_integer_column("Value", "value"),
        Column("Global-Default", _make_field_cell("globalDefault", False), "boolean"),
        _AGE,
        Column("PreemptionPolicy", _make_field_cell("preemptionPolicy")),
    ),
    "PersistentVolume": (
        _NAME,
        Column("Capacity", _make_field_cell("spec.capacity.storage")),
        Column("Access Modes", lambda content, _: printer_cells.format_access_modes(content, "spec.accessModes")),
        Column("Reclaim Policy", _make_field_cell("spec.persistentVolumeReclaimPolicy")),
        Column("Status", _make_field_cell("status.phase")),
        Column("Claim", printer_cells.format_volume_claim),
        Column("StorageClass", _make_field_cell("spec.storageClassName")),
        Column("VolumeAttributesClass", _make_field_cell("spec.volumeAttributesClassName", "<unset>")),
        Column("Reason", _make_field_cell("status.reason")),
        _AGE,
        _make_wide_column("VolumeMode", _make_field_cell("spec.volumeMode")),
    ),
    "PersistentVolumeClaim": (
        _NAME,
        Column("Status", _make_field_cell("status.phase")),
        Column("Volume", _make_field_cell("spec.volumeName")),
        Column("Capacity", _make_field_cell("status.capacity.storage")),
        Column("Access Modes", lambda content, _: printer_cells.format_access_modes(content, "status.accessModes")),
        Column("StorageClass", _make_field_cell("spec.storageClassName")),
        Column("VolumeAttributesClass", _make_field_cell("spec.volumeAttributesClassName", "<unset>")),
        _AGE,
        _make_wide_column("VolumeMode", _make_field_cell("spec.volumeMode")),
    ),
    "StorageClass": (
        Column("Name", printer_cells.format_storage_class_name),
        Column("Provisioner", _make_field_cell("provisioner")),
        Column("ReclaimPolicy", _make_field_cell("reclaimPolicy")),
        Column("VolumeBindingMode", _make_field_cell("volumeBindingMode")),
        Column("AllowVolumeExpansion", _make_field_cell("allowVolumeExpansion", False)),
        _AGE,
    ),
    "CSINode": (
        _NAME,
        Column("Drivers", lambda content, _: len(get_field(content, "spec.drivers", [])), "integer"),
        _AGE,
    ),
    "CSIDriver": (
        _NAME,
        _make_boolean_column("AttachRequired", "spec.attachRequired", absent=True),
        _make_boolean_column("PodInfoOnMount", "spec.podInfoOnMount"),
        _make_boolean_column("StorageCapacity", "spec.storageCapacity"),
        Column(
            "TokenRequests",
            lambda content, _: printer_cells.join_values(
                (request["audience"] for request in get_field(content, "spec.tokenRequests", [])), "<unset>"
            ),
        ),
        _make_boolean_column("RequiresRepublish", "spec.requiresRepublish"),
        Column(
            "Modes", lambda content, _: printer_cells.join_values(get_field(content, "spec.volumeLifecycleModes", []))
        ),
        _AGE,
    ),
    "DeviceClass": (_NAME, _AGE),
    "ResourceClaimTemplate": (_NAME, _AGE),
    "ResourceClaim": (_NAME, Column("State", printer_cells.format_claim_state), _AGE),
    "ResourceSlice": (
        _NAME,
        Column("Node", _make_field_cell("spec.nodeName")),
        Column("Driver", _make_field_cell("spec.driver")),
        Column("Pool", _make_field_cell("spec.pool.name")),
        _AGE,
    ),
    "VolumeAttachment": (
        _NAME,
        Column("Attacher", _make_field_cell("spec.attacher")),
        Column("PV", _make_field_cell("spec.source.persistentVolumeName")),
        Column("Node", _make_field_cell("spec.nodeName")),
        Column("Attached", _make_field_cell("status.attached", False), "boolean"),
        _AGE,
    ),
    "Lease": (_NAME, Column("Holder", _make_field_cell("spec.holderIdentity")), _AGE),
}
_NAME_COLUMNS: Final = ("Name", "Attacher")
_DEFAULT_COLUMNS: Final = (_NAME, Column("Created At", _make_field_cell("metadata.creationTimestamp"), "date"))


def print_table(
    resource: ApiResource,
    objects: Iterable[Object],
    now: float,
    meta: Object,
    include: str = "Metadata",
    *,
    with_columns: bool = True,
) -> Object:
    """Return a Table of objects.

    Args:
        resource: the resource of the objects.
        objects: the rows.
        now: the current time for ages, in seconds since 1970.
        meta: the metadata of the list.
        include: the part of each object in its row: `None`, `Metadata` or `Object`.
        with_columns: whether column definitions are included; a watch sends them once.
    """
    columns = _COLUMNS.get(resource.kind, _DEFAULT_COLUMNS)
    document: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    document["columnDefinitions"] = [_make_column_definition(column) for column in columns] if with_columns else None
    document["rows"] = [_make_table_row(resource, columns, content, now, include) for content in objects]
    return document


def _make_column_definition(column: Column) -> Object:
    definition = {"name": column.name, "type": column.type, "format": "name" if column.name in _NAME_COLUMNS else ""}
    return {**definition, "description": column.name, "priority": int(column.wide)}


def _make_table_row(
    resource: ApiResource, columns: tuple[Column, ...], content: Object, now: float, include: str
) -> Object:
    core_content = to_core(content) if resource.group_version == "events.k8s.io/v1" else content
    row: Object = {"cells": [column.cell(core_content, now) for column in columns]}
    if include == "Object":
        row["object"] = content
    elif include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": content["metadata"],
        }
    return row
