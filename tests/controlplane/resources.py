"""Kinds of objects and where the API server keeps them: group, version, plural, namespaced or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind.

    Attributes:
        version: the apiVersion, such as `apps/v1`.
        plural: the name in addresses.
        namespaced: whether objects live in namespaces.
        status: whether a status must be written apart, as creation drops it.
    """

    version: str
    plural: str
    namespaced: bool = False
    status: bool = False

    @property
    def root(self) -> str:
        """The path all objects of the kind are listed at."""
        return f"{self._group}/{self.plural}"

    @property
    def _group(self) -> str:
        return f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"

    def collection(self, namespace: str = "") -> str:
        """The path of the objects in *namespace*; of all objects if the kind knows none."""
        if not self.namespaced:
            return self.root
        return f"{self._group}/namespaces/{namespace or 'default'}/{self.plural}"

    def path(self, thing: Mapping[str, Any]) -> str:
        """The path of one object."""
        meta = thing["metadata"]
        return f"{self.collection(meta.get('namespace', ''))}/{meta['name']}"


RESOURCES: Final[Mapping[str, Resource]] = {
    "Namespace": Resource("v1", "namespaces"),
    "Node": Resource("v1", "nodes"),
    "PriorityClass": Resource("scheduling.k8s.io/v1", "priorityclasses"),
    "Pod": Resource("v1", "pods", namespaced=True),
    "Service": Resource("v1", "services", namespaced=True),
    "ReplicationController": Resource("v1", "replicationcontrollers", namespaced=True),
    "ReplicaSet": Resource("apps/v1", "replicasets", namespaced=True),
    "StatefulSet": Resource("apps/v1", "statefulsets", namespaced=True),
    "PodDisruptionBudget": Resource("policy/v1", "poddisruptionbudgets", namespaced=True, status=True),
    "StorageClass": Resource("storage.k8s.io/v1", "storageclasses"),
    "CSINode": Resource("storage.k8s.io/v1", "csinodes"),
    "CSIDriver": Resource("storage.k8s.io/v1", "csidrivers"),
    "CSIStorageCapacity": Resource("storage.k8s.io/v1", "csistoragecapacities", namespaced=True),
    "VolumeAttachment": Resource("storage.k8s.io/v1", "volumeattachments"),
    "PersistentVolume": Resource("v1", "persistentvolumes", status=True),
    "PersistentVolumeClaim": Resource("v1", "persistentvolumeclaims", namespaced=True, status=True),
    "DeviceClass": Resource("resource.k8s.io/v1", "deviceclasses"),
    "ResourceSlice": Resource("resource.k8s.io/v1", "resourceslices"),
    "ResourceClaim": Resource("resource.k8s.io/v1", "resourceclaims", namespaced=True, status=True),
    "ResourceClaimTemplate": Resource("resource.k8s.io/v1", "resourceclaimtemplates", namespaced=True),
}
"""By kind, in an order in which they can be created."""

ALPHA: Final = {"PodGroup": Resource("scheduling.k8s.io/v1alpha2", "podgroups", namespaced=True)}
"""Kinds that an API server has only if it is asked to."""

ALL: Final = {**RESOURCES, **ALPHA}
