"""Kinds of objects and their paths at the API server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.controlplane.programs import RELEASE


@dataclass(frozen=True, slots=True)
class Resource:
    """The resource of a kind.

    Attributes:
        version: the apiVersion, such as `apps/v1`.
        plural: the resource name.
        namespaced: whether the resource is namespaced.
        writes_status_separately: whether creation drops the status, so that it needs a request of its own.
    """

    version: str
    plural: str
    namespaced: bool = False
    writes_status_separately: bool = False

    @property
    def list_path(self) -> str:
        """The path of the list of all objects."""
        return f"{self._group_path}/{self.plural}"

    @property
    def _group_path(self) -> str:
        return f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"

    def collection_path(self, namespace: str = "") -> str:
        """Return the path of the objects in *namespace*, or of all objects if the resource is not namespaced."""
        if not self.namespaced:
            return self.list_path
        return f"{self._group_path}/namespaces/{namespace or 'default'}/{self.plural}"

    def object_path(self, obj: Mapping[str, Any]) -> str:
        """Return the path of an object."""
        meta = obj["metadata"]
        return f"{self.collection_path(meta.get('namespace', ''))}/{meta['name']}"


RESOURCES: Final[Mapping[str, Resource]] = {
    "Namespace": Resource("v1", "namespaces"),
    "Node": Resource("v1", "nodes"),
    "PriorityClass": Resource("scheduling.k8s.io/v1", "priorityclasses"),
    "Pod": Resource("v1", "pods", namespaced=True),
    "Service": Resource("v1", "services", namespaced=True),
    "ReplicationController": Resource("v1", "replicationcontrollers", namespaced=True),
    "ReplicaSet": Resource("apps/v1", "replicasets", namespaced=True),
    "StatefulSet": Resource("apps/v1", "statefulsets", namespaced=True),
    "PodDisruptionBudget": Resource(
        "policy/v1", "poddisruptionbudgets", namespaced=True, writes_status_separately=True
    ),
    "StorageClass": Resource("storage.k8s.io/v1", "storageclasses"),
    "CSINode": Resource("storage.k8s.io/v1", "csinodes"),
    "CSIDriver": Resource("storage.k8s.io/v1", "csidrivers"),
    "CSIStorageCapacity": Resource("storage.k8s.io/v1", "csistoragecapacities", namespaced=True),
    "VolumeAttachment": Resource("storage.k8s.io/v1", "volumeattachments"),
    "PersistentVolume": Resource("v1", "persistentvolumes", writes_status_separately=True),
    "PersistentVolumeClaim": Resource("v1", "persistentvolumeclaims", namespaced=True, writes_status_separately=True),
    "DeviceClass": Resource("resource.k8s.io/v1", "deviceclasses"),
    "ResourceSlice": Resource("resource.k8s.io/v1", "resourceslices"),
    "ResourceClaim": Resource("resource.k8s.io/v1", "resourceclaims", namespaced=True, writes_status_separately=True),
    "ResourceClaimTemplate": Resource("resource.k8s.io/v1", "resourceclaimtemplates", namespaced=True),
}
"""By kind, in an order in which objects can be created."""

POD_GROUP_VERSION: Final = {"1.36": "scheduling.k8s.io/v1alpha2", "1.37": "scheduling.k8s.io/v1beta1"}[RELEASE]
"""The API version of pod groups in the release of the control plane."""

COMPOSITE_POD_GROUP_VERSION: Final = "scheduling.k8s.io/v1alpha3"
"""The API version of composite pod groups, which 1.36 does not have."""

OPTIONAL_RESOURCES: Final = {
    "PodGroup": Resource(POD_GROUP_VERSION, "podgroups", namespaced=True),
    "CompositePodGroup": Resource(COMPOSITE_POD_GROUP_VERSION, "compositepodgroups", namespaced=True),
}
"""Kinds which an API server serves only with a flag."""

RBAC_RESOURCES: Final = {
    "ClusterRole": Resource("rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": Resource("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
}
"""Kinds of RBAC."""

ALL_RESOURCES: Final = {**RESOURCES, **OPTIONAL_RESOURCES, **RBAC_RESOURCES}
