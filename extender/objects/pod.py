"""Pods: what they ask for and what has become of them."""

from datetime import datetime

from msgspec import field

from extender.objects.affinity import Affinity, Toleration, TopologySpreadConstraint
from extender.objects.meta import Condition, KubernetesObject
from extender.objects.record import Int32, Int64, Record, ResourceList
from extender.objects.volumes import Volume


class ResourceClaimReference(Record, frozen=True, kw_only=True):
    """A container's use of one of its pod's resource claims, or of one request of it."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Record, frozen=True, kw_only=True):
    """What a container or pod asks for and may use at most; also what a status reports as in effect."""

    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)
    claims: tuple[ResourceClaimReference, ...] = ()


class ContainerPort(Record, frozen=True, kw_only=True):
    """A port of a container; `host_port` 0 means none on the host."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = 0
    protocol: str = ""
    host_ip: str = field(default="", name="hostIP")


class ContainerRestartRuleOnExitCodes(Record, frozen=True, kw_only=True):
    """The exit codes a restart rule is about."""

    operator: str = ""
    values: tuple[Int32, ...] = ()


class ContainerRestartRule(Record, frozen=True, kw_only=True):
    """What to do when a container exits in a certain way."""

    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class ContainerResizePolicy(Record, frozen=True, kw_only=True):
    """Whether resizing a resource restarts the container."""

    resource_name: str = ""
    restart_policy: str = ""


class Container(Record, frozen=True, kw_only=True):
    """An app container, or an init container; of the latter those with `restart_policy` Always are sidecars."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container keeps running beside the app containers."""
        return self.restart_policy == "Always"


class PodSchedulingGate(Record, frozen=True, kw_only=True):
    """A gate that keeps the pod out of the scheduling queue while it is listed."""

    name: str = ""


class PodResourceClaim(Record, frozen=True, kw_only=True):
    """A resource claim of the pod: an existing one by name, or one made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Record, frozen=True, kw_only=True):
    """The group of pods this one is scheduled with."""

    pod_group_name: str | None = None


class PodSpec(Record, frozen=True, kw_only=True):
    """What a pod asks for."""

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


class ContainerStatus(Record, frozen=True, kw_only=True):
    """What a container has been given: allocated by the kubelet, and in effect (`resources`)."""

    name: str = ""
    allocated_resources: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(Record, frozen=True, kw_only=True):
    """The claim made for one entry of `spec.resource_claims`; no name means none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Record, frozen=True, kw_only=True):
    """Which device request serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Record, frozen=True, kw_only=True):
    """The claim that serves the pod's extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class NodeAllocatableResourceClaimStatus(Record, frozen=True, kw_only=True):
    """Node resources that a claim of the pod takes."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    resources: ResourceList = field(default_factory=dict)


class PodStatus(Record, frozen=True, kw_only=True):
    """What has become of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    reason: str = ""
    message: str = ""
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
        """The pod as `namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
