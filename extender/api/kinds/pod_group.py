"""Pod groups of scheduling.k8s.io/v1alpha2."""

from extender.api.kinds.meta import Condition, KubernetesObject
from extender.api.kinds.struct_base import Int32, KubernetesStruct


class BasicSchedulingPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """Policy that schedules the pods of a group individually."""


class GangSchedulingPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """Policy that schedules at least `min_count` pods of a group together, or none."""

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


class PodGroupSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a group."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


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
