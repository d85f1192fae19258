"""Build the tables that `kubectl get` shows, with the columns of each kind.

Source: pkg/printers/internalversion/printers.go, AddHandlers; apimachinery/pkg/apis/meta/v1/types.go, Table (1.36).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from extender.fake_apiserver.endpoints import printer_cells
from extender.fake_apiserver.endpoints.printer_cells import get_field
from extender.fake_apiserver.registry.event_conversion import to_core_event
from extender.fake_apiserver.registry.resources import ApiResource, Object


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: the header.
        cell: the path of a field, or a function that returns the value of an object at a time in seconds since 1970.
        default: the value of an absent field.
        type: the type of the values: `string`, `integer`, `boolean` or `date`.
        wide: whether the column is shown only with `-o wide`.
    """

    name: str
    cell: str | Callable[[Object, float], Any]
    default: Any = ""
    type: str = "string"
    wide: bool = False

    def format_cell(self, content: Object, now: float) -> Any:
        """Return the value of the column for an object."""
        return get_field(content, self.cell, self.default) if isinstance(self.cell, str) else self.cell(content, now)


_make_wide_column: Final = partial(Column, wide=True)
_make_integer_column: Final = partial(Column, default=0, type="integer")
_make_boolean_column: Final = partial(Column, default=False, type="boolean")


_NAME: Final = Column("Name", "metadata.name")
_AGE: Final = Column("Age", printer_cells.format_age)
_CONTAINER_COLUMNS: Final = (
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
_REPLICA_COLUMNS: Final = (
    _NAME,
    _make_integer_column("Desired", "spec.replicas"),
    _make_integer_column("Current", "status.replicas"),
    _make_integer_column("Ready", "status.readyReplicas"),
    _AGE,
    *_CONTAINER_COLUMNS,
    _make_wide_column("Selector", printer_cells.format_workload_selector),
)

_COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Pod": (
        _NAME,
        Column("Ready", printer_cells.format_ready_containers),
        Column("Status", printer_cells.format_pod_status),
        Column("Restarts", printer_cells.format_pod_restarts),
        _AGE,
        _make_wide_column("IP", "status.podIP", "<none>"),
        _make_wide_column("Node", "spec.nodeName", "<none>"),
        _make_wide_column("Nominated Node", "status.nominatedNodeName", "<none>"),
        _make_wide_column("Readiness Gates", printer_cells.format_pod_readiness_gates),
    ),
    "Node": (
        _NAME,
        Column("Status", printer_cells.format_node_status),
        Column("Roles", printer_cells.format_node_roles),
        _AGE,
        Column("Version", "status.nodeInfo.kubeletVersion"),
        _make_wide_column("Internal-IP", lambda node, _: printer_cells.find_node_address(node, "InternalIP")),
        _make_wide_column("External-IP", lambda node, _: printer_cells.find_node_address(node, "ExternalIP")),
        _make_wide_column("OS-Image", "status.nodeInfo.osImage", "<unknown>"),
        _make_wide_column("Kernel-Version", "status.nodeInfo.kernelVersion", "<unknown>"),
        _make_wide_column("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>"),
    ),
    "Namespace": (_NAME, Column("Status", "status.phase"), _AGE),
    "Event": (
        Column("Last Seen", printer_cells.format_event_last_seen),
        Column("Type", "type"),
        Column("Reason", "reason"),
        Column("Object", printer_cells.format_event_object),
        _make_wide_column("Subobject", "involvedObject.fieldPath"),
        _make_wide_column("Source", printer_cells.format_event_source),
        Column("Message", lambda content, _: str(get_field(content, "message")).strip()),
        _make_wide_column("First Seen", printer_cells.format_event_first_seen),
        _make_wide_column("Count", printer_cells.get_event_count),
        _make_wide_column("Name", "metadata.name"),
    ),
    "Service": (
        _NAME,
        Column("Type", "spec.type"),
        Column("Cluster-IP", "spec.clusterIP", "<none>"),
        Column("External-IP", lambda content, _: printer_cells.join_values(get_field(content, "spec.externalIPs", []))),
        Column("Port(s)", printer_cells.format_service_ports),
        _AGE,
        _make_wide_column(
            "Selector", lambda content, _: printer_cells.format_labels(get_field(content, "spec.selector", {}))
        ),
    ),
    "ReplicaSet": _REPLICA_COLUMNS,
    "ReplicationController": _REPLICA_COLUMNS,
    "StatefulSet": (
        _NAME,
        Column(
            "Ready",
            lambda content, _: (
                f"{get_field(content, 'status.readyReplicas', 0)}/{get_field(content, 'spec.replicas', 0)}"
            ),
        ),
        _AGE,
        *_CONTAINER_COLUMNS,
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
        _make_boolean_column("Global-Default", "globalDefault"),
        _AGE,
        Column("PreemptionPolicy", "preemptionPolicy"),
    ),
    "PersistentVolume": (
        _NAME,
        Column("Capacity", "spec.capacity.storage"),
        Column("Access Modes", lambda content, _: printer_cells.format_access_modes(content, "spec.accessModes")),
        Column("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
        Column("Status", "status.phase"),
        Column("Claim", printer_cells.format_volume_claim),
        Column("StorageClass", "spec.storageClassName"),
        Column("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
        Column("Reason", "status.reason"),
        _AGE,
        _make_wide_column("VolumeMode", "spec.volumeMode"),
    ),
    "PersistentVolumeClaim": (
        _NAME,
        Column("Status", "status.phase"),
        Column("Volume", "spec.volumeName"),
        Column("Capacity", "status.capacity.storage"),
        Column("Access Modes", lambda content, _: printer_cells.format_access_modes(content, "status.accessModes")),
        Column("StorageClass", "spec.storageClassName"),
        Column("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
        _AGE,
        _make_wide_column("VolumeMode", "spec.volumeMode"),
    ),
    "StorageClass": (
        Column("Name", printer_cells.format_storage_class_name),
        Column("Provisioner", "provisioner"),
        Column("ReclaimPolicy", "reclaimPolicy"),
        Column("VolumeBindingMode", "volumeBindingMode"),
        Column("AllowVolumeExpansion", "allowVolumeExpansion", False),
        _AGE,
    ),
    "CSINode": (
        _NAME,
        _make_integer_column("Drivers", lambda content, _: len(get_field(content, "spec.drivers", []))),
        _AGE,
    ),
    "CSIDriver": (
        _NAME,
        _make_boolean_column("AttachRequired", "spec.attachRequired", default=True),
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
        Column("Node", "spec.nodeName"),
        Column("Driver", "spec.driver"),
        Column("Pool", "spec.pool.name"),
        _AGE,
    ),
    "VolumeAttachment": (
        _NAME,
        Column("Attacher", "spec.attacher"),
        Column("PV", "spec.source.persistentVolumeName"),
        Column("Node", "spec.nodeName"),
        _make_boolean_column("Attached", "status.attached"),
        _AGE,
    ),
    "Lease": (_NAME, Column("Holder", "spec.holderIdentity"), _AGE),
}
_COLUMNS_OF_NAME_FORMAT: Final = ("Name", "Attacher")
_DEFAULT_COLUMNS: Final = (_NAME, Column("Created At", "metadata.creationTimestamp", type="date"))


def print_table(
    resource: ApiResource,
    objects: Iterable[Object],
    now: float,
    meta: Object,
    include_object: str = "Metadata",
    *,
    with_columns: bool = True,
) -> Object:
    """Return a `meta.k8s.io/v1` Table with one row per object.

    *now* is in seconds since 1970. *include_object* is the part of each object in its row: `None`, `Metadata` or
    `Object`. A watch sends the column definitions once, *with_columns*.
    """
    columns = _COLUMNS.get(resource.kind, _DEFAULT_COLUMNS)
    document: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    document["columnDefinitions"] = [_make_column_definition(column) for column in columns] if with_columns else None
    document["rows"] = [_make_table_row(resource, columns, content, now, include_object) for content in objects]
    return document


def _make_column_definition(column: Column) -> Object:
    definition = {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name in _COLUMNS_OF_NAME_FORMAT else "",
    }
    return {**definition, "description": column.name, "priority": int(column.wide)}


def _make_table_row(
    resource: ApiResource, columns: tuple[Column, ...], content: Object, now: float, include_object: str
) -> Object:
    core_content = to_core_event(content) if resource.group_version == "events.k8s.io/v1" else content
    row: Object = {"cells": [column.format_cell(core_content, now) for column in columns]}
    if include_object == "Object":
        row["object"] = content
    elif include_object != "None":
        row["object"] = make_partial_metadata(content)
    return row


def make_partial_metadata(content: Object) -> Object:
    """Return the PartialObjectMetadata of an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": content["metadata"]}
