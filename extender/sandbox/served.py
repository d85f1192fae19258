"""The kinds this server has: their names in paths, in lists and on the command line, and how they may be written."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

Object = dict[str, Any]
"""A Kubernetes object as parsed JSON; what is stored is never changed."""


@dataclass(frozen=True, slots=True)
class Served:
    """One kind in one version.

    Attributes:
        version: such as `v1` or `apps/v1`.
        kind: such as `Pod`.
        plural: as in paths, such as `pods`.
        namespaced: whether objects live in namespaces.
        short: what people may write instead of the plural.
        status: whether the status is a part that is written apart.
        fields: what field selectors may ask for besides name and namespace.
        unconditional: an update may leave out the resourceVersion.
        made_by_update: an update of what is not there creates it.
        shown_deleted: the answer to a deletion is the object, not a Status.
    """

    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    status: bool = False
    fields: tuple[str, ...] = ()
    unconditional: bool = True
    made_by_update: bool = False
    shown_deleted: bool = False

    @property
    def group(self) -> str:
        """The API group, empty for the oldest."""
        return self.version.rpartition("/")[0]

    @property
    def place(self) -> str:
        """Where objects are kept: both forms of events are the same objects."""
        return "events" if self.kind == "Event" else self.resource

    @property
    def resource(self) -> str:
        """The plural with the group, as messages write it: `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind with the group, as messages write it: `Lease.coordination.k8s.io`."""
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
_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS: Final = ("reason", "reportingComponent", "source", "type")
_OLD_EVENT_FIELDS: Final = (*(f"involvedObject.{part}" for part in _REFERENCE), *_EVENT_FIELDS)
_NEW_EVENT_FIELDS: Final = (*(f"regarding.{part}" for part in _REFERENCE), "reason", "reportingController", "type")

_STORAGE: Final = "storage.k8s.io/v1"
_RESOURCE: Final = "resource.k8s.io/v1"
_LEASES: Final = "coordination.k8s.io/v1"

SERVED: Final = (
    Served("v1", "Pod", "pods", short=("po",), status=True, fields=_POD_FIELDS, shown_deleted=True),
    Served("v1", "Node", "nodes", False, ("no",), status=True, fields=("spec.unschedulable",)),
    Served("v1", "Namespace", "namespaces", False, ("ns",), True, ("status.phase",), shown_deleted=True),
    Served("v1", "Service", "services", short=("svc",), status=True, made_by_update=True, shown_deleted=True),
    Served("v1", "ReplicationController", "replicationcontrollers", short=("rc",), status=True),
    Served("v1", "ConfigMap", "configmaps", short=("cm",)),
    Served("v1", "PersistentVolume", "persistentvolumes", False, ("pv",), status=True, shown_deleted=True),
    Served("v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, ("pvc",), True, shown_deleted=True),
    Served("v1", "Event", "events", short=("ev",), fields=_OLD_EVENT_FIELDS, made_by_update=True),
    Served("events.k8s.io/v1", "Event", "events", short=("ev",), fields=_NEW_EVENT_FIELDS, made_by_update=True),
    Served("apps/v1", "ReplicaSet", "replicasets", short=("rs",), status=True),
    Served("apps/v1", "StatefulSet", "statefulsets", short=("sts",), status=True),
    Served("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", True, ("pdb",), True, unconditional=False),
    Served("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False, ("pc",)),
    Served("scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups", status=True),
    Served(_STORAGE, "StorageClass", "storageclasses", False, ("sc",), shown_deleted=True),
    Served(_STORAGE, "CSINode", "csinodes", False, unconditional=False, shown_deleted=True),
    Served(_STORAGE, "CSIDriver", "csidrivers", False, unconditional=False, shown_deleted=True),
    Served(_STORAGE, "CSIStorageCapacity", "csistoragecapacities", unconditional=False),
    Served(_STORAGE, "VolumeAttachment", "volumeattachments", False, (), True, unconditional=False, shown_deleted=True),
    Served(_RESOURCE, "ResourceClaim", "resourceclaims", status=True, shown_deleted=True),
    Served(_RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates", shown_deleted=True),
    Served(
        _RESOURCE, "ResourceSlice", "resourceslices", False, (), False, ("spec.driver", "spec.nodeName"),
        shown_deleted=True,
    ),
    Served(_RESOURCE, "DeviceClass", "deviceclasses", False, shown_deleted=True),
    Served(_LEASES, "Lease", "leases", unconditional=False, made_by_update=True),
)  # fmt: skip
"""All kinds, in the order in which a namespace that is deleted gives them up."""

BY_PATH: Final[Mapping[tuple[str, str], Served]] = MappingProxyType({(it.version, it.plural): it for it in SERVED})
"""(version, plural) and the kind."""

BY_KIND: Final[Mapping[tuple[str, str], Served]] = MappingProxyType({(it.version, it.kind): it for it in SERVED})
"""(version, kind) and the kind."""

PODS: Final = BY_KIND["v1", "Pod"]
NODES: Final = BY_KIND["v1", "Node"]
NAMESPACES: Final = BY_KIND["v1", "Namespace"]
BUDGETS: Final = BY_KIND["policy/v1", "PodDisruptionBudget"]
PRIORITY_CLASSES: Final = BY_KIND["scheduling.k8s.io/v1", "PriorityClass"]


def served(manifest: Object) -> Served:
    """The kind of an object by its apiVersion and kind.

    Raises:
        LookupError: there is no such kind here.
    """
    version, kind = str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))
    found = BY_KIND.get((version, kind))
    if found is None:
        raise LookupError(f"the sandbox has no kind {kind!r} in apiVersion {version!r}")
    return found


def kept_as(kind: Served) -> Served:
    """The form in which objects of a kind are kept: of events the core's."""
    return BY_KIND["v1", "Event"] if kind.kind == "Event" else kind
