"""The table of kinds: apiVersion and kind of an object, and the type it is decoded to."""

from collections.abc import Mapping
from types import MappingProxyType

from extender.objects.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from extender.objects.groups import PodGroup
from extender.objects.meta import KubernetesObject
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.policy import PodDisruptionBudget, PriorityClass
from extender.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from extender.objects.workload import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet

_CORE = (Pod, Node, Namespace, Service, ReplicationController, PersistentVolume, PersistentVolumeClaim)
_STORAGE = (StorageClass, CSINode, CSIDriver, CSIStorageCapacity, VolumeAttachment)
_RESOURCE = (ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass)

# Older versions stand here only where every field we read has the same place and the same meaning.
# policy/v1beta1 has the shape of policy/v1, but there an empty selector matches nothing.
_TABLE: tuple[tuple[str, tuple[type[KubernetesObject], ...]], ...] = (
    ("v1", _CORE),
    ("apps/v1", (ReplicaSet, StatefulSet)),
    ("apps/v1beta2", (ReplicaSet, StatefulSet)),
    ("policy/v1", (PodDisruptionBudget,)),
    ("scheduling.k8s.io/v1", (PriorityClass,)),
    ("scheduling.k8s.io/v1beta1", (PriorityClass,)),
    ("scheduling.k8s.io/v1alpha2", (PodGroup,)),
    ("storage.k8s.io/v1", _STORAGE),
    ("storage.k8s.io/v1beta1", _STORAGE),
    ("resource.k8s.io/v1", _RESOURCE),
    ("resource.k8s.io/v1beta2", (*_RESOURCE, DeviceTaintRule)),
    ("resource.k8s.io/v1alpha3", (DeviceTaintRule,)),
)

KINDS: Mapping[tuple[str, str], type[KubernetesObject]] = MappingProxyType(
    {(version, kind.__name__): kind for version, kinds in _TABLE for kind in kinds}
)
"""(apiVersion, kind) and the type of such objects."""
