"""Where objects of a kind live: API version, plural, and whether in a namespace."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The path of a kind.

    Attributes:
        version: such as `v1` or `apps/v1`.
        plural: such as `pods`.
        namespaced: objects live in namespaces.
    """

    version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The escaped path of all objects, of those in a namespace, of one object, or of a part of it.

        Raises:
            ValueError: *name* is asked for in a kind with namespaces, without one.
        """
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.plural}/{name}: a namespace is missing")
        parts = ["/apis" if "/" in self.version else "/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", _escaped(namespace)]
        parts.append(self.plural)
        parts += [_escaped(part) for part in (name, subresource) if part]
        return "/".join(parts)


def _escaped(part: str) -> str:
    # A name that is all dots would climb the path.
    return quote(part, safe="") if part.strip(".") else part.replace(".", "%2E")


_TABLE: Final[tuple[tuple[str, Mapping[str, str], Mapping[str, str]], ...]] = (
    # version, kinds with namespaces, kinds without
    (
        "v1",
        {
            "Pod": "pods",
            "Service": "services",
            "ReplicationController": "replicationcontrollers",
            "PersistentVolumeClaim": "persistentvolumeclaims",
            "ConfigMap": "configmaps",
        },
        {"Node": "nodes", "Namespace": "namespaces", "PersistentVolume": "persistentvolumes"},
    ),
    ("apps/v1", {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}, {}),
    ("policy/v1", {"PodDisruptionBudget": "poddisruptionbudgets"}, {}),
    ("scheduling.k8s.io/v1", {}, {"PriorityClass": "priorityclasses"}),
    ("scheduling.k8s.io/v1alpha2", {"PodGroup": "podgroups"}, {}),
    (
        "storage.k8s.io/v1",
        {"CSIStorageCapacity": "csistoragecapacities"},
        {
            "StorageClass": "storageclasses",
            "CSINode": "csinodes",
            "CSIDriver": "csidrivers",
            "VolumeAttachment": "volumeattachments",
        },
    ),
    (
        "resource.k8s.io/v1",
        {"ResourceClaim": "resourceclaims", "ResourceClaimTemplate": "resourceclaimtemplates"},
        {"ResourceSlice": "resourceslices", "DeviceClass": "deviceclasses"},
    ),
    ("resource.k8s.io/v1beta2", {}, {"DeviceTaintRule": "devicetaintrules"}),
    ("coordination.k8s.io/v1", {"Lease": "leases"}, {}),
    ("events.k8s.io/v1", {"Event": "events"}, {}),
    ("authentication.k8s.io/v1", {}, {"TokenReview": "tokenreviews"}),
    ("authorization.k8s.io/v1", {}, {"SubjectAccessReview": "subjectaccessreviews"}),
)

ENDPOINTS: Final[Mapping[str, Endpoint]] = MappingProxyType(
    {
        kind: Endpoint(version, plural, namespaced)
        for version, inside, outside in _TABLE
        for namespaced, kinds in ((True, inside), (False, outside))
        for kind, plural in kinds.items()
    }
)
"""Kinds we read or write, and where they live."""
