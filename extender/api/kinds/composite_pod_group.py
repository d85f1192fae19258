"""Composite pod groups of scheduling.k8s.io/v1alpha3: groups of pod groups and of other composite pod groups."""

from extender.api.kinds.meta import Condition, KubernetesObject
from extender.api.kinds.pod_group import BasicSchedulingPolicy, DisruptionMode, PodGroupSchedulingConstraints
from extender.api.kinds.struct_base import Int32, KubernetesStruct


class CompositeGangSchedulingPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """A policy that schedules at least `min_group_count` child groups together, or none."""

    min_group_count: Int32 = 0


class CompositePodGroupSchedulingPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """The scheduling policy of a composite group; exactly one field is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: CompositeGangSchedulingPolicy | None = None


class CompositePodGroupSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a composite group."""

    parent_composite_pod_group_name: str | None = None
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None

    @property
    def is_disrupted_as_a_whole(self) -> bool:
        """Whether the child groups are evicted together."""
        return self.disruption_mode is not None and self.disruption_mode.all is not None


class CompositePodGroupStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The status of a composite group. kube-scheduler 1.37 does not write it."""

    conditions: tuple[Condition, ...] = ()


class CompositePodGroup(KubernetesObject, frozen=True, kw_only=True):
    """A group of pod groups and composite pod groups."""

    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: CompositePodGroupStatus = CompositePodGroupStatus()
