"""Pod groups and groups of them.

Pod groups of scheduling.k8s.io are v1beta1, or v1alpha2 of release 1.36, whose disruption mode is a string. Composite
pod groups are v1alpha3. The coscheduling plugin has a kind of its own.
"""

from extender.api.kinds.meta import Condition, Int32, KubernetesObject, KubernetesStruct

_DISRUPTION_MODE_POD_GROUP = "PodGroup"


class BasicSchedulingPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """A policy that schedules the pods of a group individually."""


class GangSchedulingPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """A policy that schedules at least `min_count` pods of a group together, or none."""

    min_count: Int32 = 0


class PodGroupSchedulingPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """The scheduling policy of a group; exactly one field is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(KubernetesStruct, frozen=True, kw_only=True):
    """A constraint that places all pods of a group in one topology domain of a node label."""

    key: str = ""


class PodGroupSchedulingConstraints(KubernetesStruct, frozen=True, kw_only=True):
    """The placement constraints of a group."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(KubernetesStruct, frozen=True, kw_only=True):
    """A resource claim that the pods of a group share."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SingleDisruptionMode(KubernetesStruct, frozen=True, kw_only=True):
    """The pods of a group are evicted one by one."""


class AllDisruptionMode(KubernetesStruct, frozen=True, kw_only=True):
    """The pods of a group are evicted together."""


class DisruptionMode(KubernetesStruct, frozen=True, kw_only=True):
    """How the pods of a group are evicted; exactly one field is set."""

    single: SingleDisruptionMode | None = None
    all: AllDisruptionMode | None = None


class PodGroupSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a group."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str | None = None

    @property
    def is_disrupted_as_a_whole(self) -> bool:
        """Whether the pods of the group are evicted together: mode `all`, or `PodGroup` in v1alpha2."""
        mode = self.disruption_mode
        return mode.all is not None if isinstance(mode, DisruptionMode) else mode == _DISRUPTION_MODE_POD_GROUP


class PodGroupResourceClaimStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The claim created for an entry of `spec.resource_claims`."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The status of a group."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(KubernetesObject, frozen=True, kw_only=True):
    """A group of pods."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


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


class CoschedulingPodGroupSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a group; the other fields of upstream's type do not change which pods are placed."""

    min_member: Int32 = 0


class CoschedulingPodGroup(KubernetesObject, frozen=True, kw_only=True):
    """A PodGroup of scheduling.x-k8s.io/v1alpha1: at least `spec.minMember` pods are scheduled together, or none.

    Source: apis/scheduling/v1alpha1/types.go, PodGroup (kubernetes-sigs/scheduler-plugins 0.35).
    """

    spec: CoschedulingPodGroupSpec = CoschedulingPodGroupSpec()
