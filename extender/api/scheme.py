"""The scheme: the type of each apiVersion and kind."""

from collections.abc import Mapping
from types import MappingProxyType

from extender.api.kinds.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from extender.api.kinds.disruption import PodDisruptionBudget, PriorityClass
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup, CoschedulingPodGroup, PodGroup
from extender.api.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from extender.api.kinds.workload import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet

_CORE = (Pod, Node, Namespace, Service, ReplicationController, PersistentVolume, PersistentVolumeClaim)
_STORAGE = (StorageClass, CSINode, CSIDriver, CSIStorageCapacity, VolumeAttachment)
_RESOURCE = (ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass)

# An older version is listed only if all fields that are read have the same path and meaning as in the current version.
# policy/v1beta1 is not listed: it has the fields of policy/v1, but its empty selector matches no pod.
_KINDS_BY_VERSION: tuple[tuple[str, tuple[type[KubernetesObject], ...]], ...] = (
    ("v1", _CORE),
    ("apps/v1", (ReplicaSet, StatefulSet)),
    ("apps/v1beta2", (ReplicaSet, StatefulSet)),
    ("policy/v1", (PodDisruptionBudget,)),
    ("scheduling.k8s.io/v1", (PriorityClass,)),
    ("scheduling.k8s.io/v1beta1", (PriorityClass, PodGroup)),
    ("scheduling.k8s.io/v1alpha2", (PodGroup,)),
    ("scheduling.k8s.io/v1alpha3", (PodGroup, CompositePodGroup)),
    ("scheduling.x-k8s.io/v1alpha1", (CoschedulingPodGroup,)),
    ("storage.k8s.io/v1", _STORAGE),
    ("storage.k8s.io/v1beta1", _STORAGE),
    ("resource.k8s.io/v1", (*_RESOURCE, DeviceTaintRule)),
    ("resource.k8s.io/v1beta2", (*_RESOURCE, DeviceTaintRule)),
    ("resource.k8s.io/v1alpha3", (DeviceTaintRule,)),
)

_KIND_NAMES: Mapping[type[KubernetesObject], str] = {CoschedulingPodGroup: "PodGroup"}
"""The kinds of types whose name differs, because another API group has a kind of the same name."""


def get_kind_name(kind: type[KubernetesObject]) -> str:
    """Return the field `kind` of objects of the type *kind*, such as `Pod`."""
    return _KIND_NAMES.get(kind, kind.__name__)


def guess_plural(kind: str) -> str:
    """Return the plural resource name of a kind by the rule of the Kubernetes API.

    Source: apimachinery/pkg/api/meta/restmapper.go, UnsafeGuessKindToResource (1.36).
    """
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"


KINDS: Mapping[tuple[str, str], type[KubernetesObject]] = MappingProxyType(
    {(version, get_kind_name(kind)): kind for version, kinds in _KINDS_BY_VERSION for kind in kinds}
)
"""The type of each (apiVersion, kind)."""
