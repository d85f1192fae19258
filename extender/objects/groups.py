"""Pod groups of scheduling.k8s.io/v1alpha2: pods that are scheduled together."""

from extender.objects.meta import Condition, KubernetesObject
from extender.objects.record import Int32, Record


class BasicSchedulingPolicy(Record, frozen=True, kw_only=True):
    """Pods of the group are scheduled one by one."""


class GangSchedulingPolicy(Record, frozen=True, kw_only=True):
    """At least `min_count` pods are scheduled together or none."""

    min_count: Int32 = 0


class PodGroupSchedulingPolicy(Record, frozen=True, kw_only=True):
    """How the pods of a group are scheduled; one of the two is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Record, frozen=True, kw_only=True):
    """All pods of the group on nodes with one value of this label."""

    key: str = ""


class PodGroupSchedulingConstraints(Record, frozen=True, kw_only=True):
    """Where the group may be placed."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(Record, frozen=True, kw_only=True):
    """A resource claim the pods of the group share."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupSpec(Record, frozen=True, kw_only=True):
    """What is wanted of a group."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupResourceClaimStatus(Record, frozen=True, kw_only=True):
    """The claim made for one entry of `spec.resource_claims`."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Record, frozen=True, kw_only=True):
    """What has become of a group."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(KubernetesObject, frozen=True, kw_only=True):
    """A group of pods."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
