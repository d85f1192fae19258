"""Dynamic resource allocation, resource.k8s.io: devices, claims, classes and taint rules."""

from datetime import datetime
from typing import Any

from msgspec import field

from extender.api.kinds.affinity import NodeSelector, Toleration
from extender.api.kinds.meta import (
    Condition,
    Int64,
    KubernetesObject,
    KubernetesStruct,
    ObjectMeta,
    RawQuantity,
    ResourceList,
    check_levels,
)


class DeviceAttribute(KubernetesStruct, frozen=True, kw_only=True):
    """The value of a device attribute: exactly one field is set; the last four hold lists."""

    int_value: Int64 | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[Int64, ...] = field(default=(), name="ints")
    bool_values: tuple[bool, ...] = field(default=(), name="bools")
    string_values: tuple[str, ...] = field(default=(), name="strings")
    version_values: tuple[str, ...] = field(default=(), name="versions")


class CapacityRequestPolicyRange(KubernetesStruct, frozen=True, kw_only=True):
    """The valid amounts of consumed capacity: `min` to `max` in steps of `step`."""

    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityRequestPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """The default and the valid amounts of a capacity that a request consumes."""

    default: RawQuantity | None = None
    valid_values: tuple[RawQuantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(KubernetesStruct, frozen=True, kw_only=True):
    """The amount of a device capacity, and the policy for the requests that share the capacity."""

    value: RawQuantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(KubernetesStruct, frozen=True, kw_only=True):
    """The value of a shared counter."""

    value: RawQuantity = "0"


class CounterSet(KubernetesStruct, frozen=True, kw_only=True):
    """Counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(KubernetesStruct, frozen=True, kw_only=True):
    """The counters of a counter set that an allocated device consumes.

    Devices with compatibility groups may only be allocated together if they have a group in common.
    """

    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(KubernetesStruct, frozen=True, kw_only=True):
    """A taint of a device, which repels claims without a matching toleration."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeAllocatableResourceMapping(KubernetesStruct, frozen=True, kw_only=True):
    """The amount of a node resource that a device consumes, computed from a device capacity, a multiplier, or both."""

    capacity_key: str | None = None
    allocation_multiplier: RawQuantity | None = None


class NodeAllocatableMapping(KubernetesStruct, frozen=True, kw_only=True):
    """The amount of a node resource that a device is, computed from a consumed capacity or per device (since 1.37)."""

    capacity_key: str | None = None
    capacity_multiplier: RawQuantity | None = None
    device_multiplier: RawQuantity | None = None


class NodeAllocatableOverhead(KubernetesStruct, frozen=True, kw_only=True):
    """The amounts of a node resource that each pod and each container with the device need (since 1.37)."""

    per_pod: RawQuantity | None = None
    per_container: RawQuantity | None = None


class NodeAllocatableResource(KubernetesStruct, frozen=True, kw_only=True):
    """The amounts of a node resource that a device is and needs (since 1.37)."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(KubernetesStruct, frozen=True, kw_only=True):
    """A device. Attribute and capacity names without a domain belong to the domain of the driver."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = field(default_factory=dict)
    node_allocatable_resources: dict[str, NodeAllocatableResource] = field(default_factory=dict)


class ResourcePool(KubernetesStruct, frozen=True, kw_only=True):
    """The pool of a slice. Only the newest generation is used, and only if all its slices exist."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(KubernetesStruct, frozen=True, kw_only=True):
    """Devices of one driver and the nodes that can use them; exactly one of the four node fields is set."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(KubernetesObject, frozen=True, kw_only=True):
    """A slice of a device pool."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class CELDeviceSelector(KubernetesStruct, frozen=True, kw_only=True):
    """A CEL expression on `device`."""

    expression: str = ""


class DeviceSelector(KubernetesStruct, frozen=True, kw_only=True):
    """A selector of devices."""

    cel: CELDeviceSelector | None = None


class CapacityRequirements(KubernetesStruct, frozen=True, kw_only=True):
    """The device capacities that a request needs."""

    requests: ResourceList = field(default_factory=dict)


class DeviceDerivedAttribute(KubernetesStruct, frozen=True, kw_only=True):
    """An attribute that a CEL expression computes for each device."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(KubernetesStruct, frozen=True, kw_only=True):
    """A request for a number of devices of one class, or for all devices of the class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(KubernetesStruct, frozen=True, kw_only=True):
    """One alternative of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(KubernetesStruct, frozen=True, kw_only=True):
    """A request of a claim: an exact request, or alternatives. The first alternative that fits is allocated."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(KubernetesStruct, frozen=True, kw_only=True):
    """A constraint on an attribute, which must be equal or distinct across the devices of the listed requests.

    If no request is listed, the constraint applies to all requests of the claim.
    """

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(KubernetesStruct, frozen=True, kw_only=True):
    """Driver parameters, which the scheduler copies without reading them."""

    driver: str = ""
    parameters: Any = None

    def __post_init__(self) -> None:
        """Check the depth of the parameters; see `check_levels`."""
        check_levels(self.parameters)


class DeviceClaimConfiguration(KubernetesStruct, frozen=True, kw_only=True):
    """Configuration of the devices of the listed requests, or of all requests if none is listed."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(KubernetesStruct, frozen=True, kw_only=True):
    """The device requests, constraints and configuration of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a claim."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(KubernetesStruct, frozen=True, kw_only=True):
    """A device that is allocated for a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: ResourceList = field(default_factory=dict)
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(KubernetesStruct, frozen=True, kw_only=True):
    """Configuration of an allocation, from the class (FromClass) or the claim (FromClaim)."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(KubernetesStruct, frozen=True, kw_only=True):
    """The devices of an allocation."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(KubernetesStruct, frozen=True, kw_only=True):
    """The allocation of a claim and the nodes that can use it; no node selector means all nodes."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class ResourceClaimConsumerReference(KubernetesStruct, frozen=True, kw_only=True):
    """A consumer of a claim, usually a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The status of an allocated device, reported by its driver."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The status of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubernetesObject, frozen=True, kw_only=True):
    """A claim on devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """The key of the claim: `namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ResourceClaimTemplateSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The metadata and spec of the claims created from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubernetesObject, frozen=True, kw_only=True):
    """A template from which one resource claim is created for each pod."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassConfiguration(KubernetesStruct, frozen=True, kw_only=True):
    """Configuration for all devices of a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The devices of a class and the extended resource that it provides."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubernetesObject, frozen=True, kw_only=True):
    """A class of devices."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(KubernetesStruct, frozen=True, kw_only=True):
    """A selector of devices; absent fields match all devices."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(KubernetesStruct, frozen=True, kw_only=True):
    """A taint and the devices that it is added to."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(KubernetesObject, frozen=True, kw_only=True):
    """A rule that adds a taint to devices without changing their slices."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
