"""Describe the resources of this server: names in paths, lists and kubectl, selectable fields, and update rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from extender.api.scheme import guess_plural

Object = dict[str, Any]
"""A Kubernetes object as parsed JSON. A stored object is never mutated."""


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A resource in one version of its API group.

    Attributes:
        group_version: the group and version, such as `v1` or `apps/v1`.
        kind: the kind, such as `Pod`.
        namespaced: whether objects are in a namespace.
        short_names: the short names in kubectl.
        has_status: whether the resource has a status subresource.
        selectable_fields: the fields that field selectors support, in addition to name and namespace.
        allow_unconditional_update: whether an update may omit the resourceVersion.
        allow_create_on_update: whether an update of a missing object creates it.
        return_deleted_object: whether a deletion returns the object instead of a Status.
        plural: the name in paths, such as `pods`; made from the kind.
    """

    group_version: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    has_status: bool = False
    selectable_fields: tuple[str, ...] = ()
    allow_unconditional_update: bool = True
    allow_create_on_update: bool = False
    return_deleted_object: bool = False
    plural: str = ""

    def __post_init__(self) -> None:
        if not self.plural:
            object.__setattr__(self, "plural", guess_plural(self.kind))

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.group_version.rpartition("/")[0]

    @property
    def storage_key(self) -> str:
        """The key of the resource in the store. Both API groups of events have the same key."""
        return "events" if self.kind == "Event" else self.qualified_resource

    @property
    def qualified_resource(self) -> str:
        """The plural with the group, for error messages: `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind with the group, for error messages: `Lease.coordination.k8s.io`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


_POD_FIELDS: Final = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_REFERENCE_FIELDS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS: Final = ("reason", "reportingComponent", "source", "type")
_CORE_EVENT_FIELDS: Final = (*(f"involvedObject.{part}" for part in _REFERENCE_FIELDS), *_EVENT_FIELDS)
_EVENTS_V1_FIELDS: Final = (
    *(f"regarding.{part}" for part in _REFERENCE_FIELDS),
    "reason",
    "reportingController",
    "type",
)

_STORAGE_GROUP_VERSION: Final = "storage.k8s.io/v1"
_RESOURCE_GROUP_VERSION: Final = "resource.k8s.io/v1"
_COORDINATION_GROUP_VERSION: Final = "coordination.k8s.io/v1"

API_RESOURCES: Final = (
    ApiResource("v1", "Pod", short_names=("po",), has_status=True, selectable_fields=_POD_FIELDS,
                return_deleted_object=True),
    ApiResource("v1", "Node", False, ("no",), has_status=True, selectable_fields=("spec.unschedulable",)),
    ApiResource("v1", "Namespace", False, ("ns",), True, ("status.phase",), return_deleted_object=True),
    ApiResource("v1", "Service", short_names=("svc",), has_status=True, allow_create_on_update=True,
                return_deleted_object=True),
    ApiResource("v1", "ReplicationController", short_names=("rc",), has_status=True),
    ApiResource("v1", "ConfigMap", short_names=("cm",)),
    ApiResource("v1", "PersistentVolume", False, ("pv",), has_status=True, return_deleted_object=True),
    ApiResource("v1", "PersistentVolumeClaim", True, ("pvc",), True, return_deleted_object=True),
    ApiResource("v1", "Event", short_names=("ev",), selectable_fields=_CORE_EVENT_FIELDS, allow_create_on_update=True),
    ApiResource("events.k8s.io/v1", "Event", short_names=("ev",), selectable_fields=_EVENTS_V1_FIELDS,
                allow_create_on_update=True),
    ApiResource("apps/v1", "ReplicaSet", short_names=("rs",), has_status=True),
    ApiResource("apps/v1", "StatefulSet", short_names=("sts",), has_status=True),
    ApiResource("policy/v1", "PodDisruptionBudget", True, ("pdb",), True, allow_unconditional_update=False),
    ApiResource("scheduling.k8s.io/v1", "PriorityClass", False, ("pc",)),
    ApiResource("scheduling.k8s.io/v1beta1", "PodGroup", has_status=True),
    ApiResource("scheduling.k8s.io/v1alpha2", "PodGroup", has_status=True),
    ApiResource("scheduling.k8s.io/v1alpha3", "CompositePodGroup", has_status=True),
    ApiResource(_STORAGE_GROUP_VERSION, "StorageClass", False, ("sc",), return_deleted_object=True),
    ApiResource(_STORAGE_GROUP_VERSION, "CSINode", False, allow_unconditional_update=False, return_deleted_object=True),
    ApiResource(_STORAGE_GROUP_VERSION, "CSIDriver", False, allow_unconditional_update=False,
                return_deleted_object=True),
    ApiResource(_STORAGE_GROUP_VERSION, "CSIStorageCapacity", allow_unconditional_update=False),
    ApiResource(_STORAGE_GROUP_VERSION, "VolumeAttachment", False, (), True, allow_unconditional_update=False,
                return_deleted_object=True),
    ApiResource(_RESOURCE_GROUP_VERSION, "ResourceClaim", has_status=True, return_deleted_object=True),
    ApiResource(_RESOURCE_GROUP_VERSION, "ResourceClaimTemplate", return_deleted_object=True),
    ApiResource(_RESOURCE_GROUP_VERSION, "ResourceSlice", False, (), False, ("spec.driver", "spec.nodeName"),
                return_deleted_object=True),
    ApiResource(_RESOURCE_GROUP_VERSION, "DeviceClass", False, return_deleted_object=True),
    ApiResource(_RESOURCE_GROUP_VERSION, "DeviceTaintRule", False, has_status=True),
    ApiResource(_COORDINATION_GROUP_VERSION, "Lease", allow_unconditional_update=False, allow_create_on_update=True),
)  # fmt: skip
"""All resources. The contents of a deleted namespace are deleted in this order."""

RESOURCES_BY_PATH: Final[Mapping[tuple[str, str], ApiResource]] = MappingProxyType(
    {(resource.group_version, resource.plural): resource for resource in API_RESOURCES}
)
"""Resources by (group version, plural)."""

RESOURCES_BY_KIND: Final[Mapping[tuple[str, str], ApiResource]] = MappingProxyType(
    {(resource.group_version, resource.kind): resource for resource in API_RESOURCES}
)
"""Resources by (group version, kind)."""

PODS: Final = RESOURCES_BY_KIND["v1", "Pod"]
NODES: Final = RESOURCES_BY_KIND["v1", "Node"]
NAMESPACES: Final = RESOURCES_BY_KIND["v1", "Namespace"]
POD_DISRUPTION_BUDGETS: Final = RESOURCES_BY_KIND["policy/v1", "PodDisruptionBudget"]
PRIORITY_CLASSES: Final = RESOURCES_BY_KIND["scheduling.k8s.io/v1", "PriorityClass"]


def find_resource(manifest: Object) -> ApiResource:
    """Return the resource of an object by its apiVersion and kind.

    Raises:
        LookupError: the server has no such resource.
    """
    group_version, kind = str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))
    resource = RESOURCES_BY_KIND.get((group_version, kind))
    if resource is None:
        raise LookupError(f"the fake API server has no kind {kind!r} in apiVersion {group_version!r}")
    return resource


def get_storage_resource(resource: ApiResource) -> ApiResource:
    """Return the resource in the version in which its objects are stored (core/v1 for events)."""
    return RESOURCES_BY_KIND["v1", "Event"] if resource.kind == "Event" else resource
