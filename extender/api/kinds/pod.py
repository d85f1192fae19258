"""Pods: containers, spec and status."""

from datetime import datetime

from msgspec import field

from extender.api.kinds.affinity import Affinity, Toleration, TopologySpreadConstraint
from extender.api.kinds.meta import (
    Condition,
    Int32,
    Int64,
    KubernetesObject,
    KubernetesStruct,
    RawQuantity,
    ResourceList,
)
from extender.api.kinds.volumes import Volume


class ResourceClaimReference(KubernetesStruct, frozen=True, kw_only=True):
    """A reference of a container to a resource claim of its pod, or to one request of the claim."""

    name: str = ""
    request: str = ""


class ResourceRequirements(KubernetesStruct, frozen=True, kw_only=True):
    """The requests and limits of a container or pod, in a spec or in a status."""

    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)
    claims: tuple[ResourceClaimReference, ...] = ()


class ContainerPort(KubernetesStruct, frozen=True, kw_only=True):
    """A port of a container; `host_port` 0 means no host port."""

    host_port: Int32 = 0
    container_port: Int32 = 0
    protocol: str = ""
    host_ip: str = field(default="", name="hostIP")


class ContainerRestartRule(KubernetesStruct, frozen=True, kw_only=True):
    """The action of a restart rule and the exit codes that trigger it."""

    action: str = ""


class VolumeMount(KubernetesStruct, frozen=True, kw_only=True):
    """The mount of a volume in a container. Nodes must support its bind mount options."""

    bind_mount_options: tuple[str, ...] = ()


class Container(KubernetesStruct, frozen=True, kw_only=True):
    """An app container or init container; an init container with `restart_policy` Always is a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container is a sidecar, which runs alongside the app containers."""
        return self.restart_policy == "Always"


class PodSchedulingGate(KubernetesStruct, frozen=True, kw_only=True):
    """A scheduling gate; a pod with gates is not scheduled."""

    name: str = ""


class PodResourceClaim(KubernetesStruct, frozen=True, kw_only=True):
    """A resource claim of a pod: an existing claim, or one created from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(KubernetesStruct, frozen=True, kw_only=True):
    """The pod group that the pod belongs to."""

    pod_group_name: str | None = None


class PodSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    restart_policy: str = ""
    service_account_name: str = ""
    runtime_class_name: str | None = None
    termination_grace_period_seconds: Int64 | None = None


class ContainerStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The resources that the kubelet allocated to a container, and the resources in effect (`resources`)."""

    name: str = ""
    allocated_resources: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The claim created for an entry of `spec.resource_claims`; without a claim name, the pod needs no claim."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(KubernetesStruct, frozen=True, kw_only=True):
    """The device request that provides an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The claim that provides the extended resources of a pod."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class NodeAllocatableMappedResource(KubernetesStruct, frozen=True, kw_only=True):
    """The amount of a node resource that the devices of a claim are (since 1.37)."""

    name: str = ""
    quantity: RawQuantity | None = None


class NodeAllocatableOverheadResource(KubernetesStruct, frozen=True, kw_only=True):
    """The amounts of a node resource that a pod, and each container with a claim, need for its devices (since 1.37)."""

    name: str = ""
    per_pod: RawQuantity | None = None
    per_container: RawQuantity | None = None


class NodeAllocatableResourceClaimStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The node resources that a claim of the pod consumes."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    resources: ResourceList = field(default_factory=dict)
    mapping: tuple[NodeAllocatableMappedResource, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResource, ...] = ()


class PodStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The status of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = field(default_factory=dict)
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


class Pod(KubernetesObject, frozen=True, kw_only=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """The key of the pod: `namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def uid_or_key(self) -> str:
        """The uid of the pod; its key if it has none, such as a pod in a file."""
        return self.metadata.uid or self.key

    @property
    def existing_claim_names(self) -> list[str]:
        """The names of the pod's resource claims, without claims of templates that are not created yet."""
        names = [claim.resource_claim_name for claim in self.spec.resource_claims]
        names += [status.resource_claim_name for status in self.status.resource_claim_statuses]
        if self.status.extended_resource_claim_status is not None:
            names.append(self.status.extended_resource_claim_status.resource_claim_name)
        return [name for name in names if name]
