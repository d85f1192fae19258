"""Pod groups of the coscheduling plugin: scheduling.x-k8s.io/v1alpha1, kind PodGroup.

Source: apis/scheduling/v1alpha1/types.go, PodGroup (kubernetes-sigs/scheduler-plugins 0.35).
"""

from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.struct_base import Int32, KubernetesStruct


class CoschedulingPodGroupSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a group; the other fields of upstream's type do not change which pods are placed."""

    min_member: Int32 = 0


class CoschedulingPodGroup(KubernetesObject, frozen=True, kw_only=True):
    """A group of pods, of which at least `spec.minMember` are scheduled together, or none."""

    spec: CoschedulingPodGroupSpec = CoschedulingPodGroupSpec()
