"""Dynamic resources, resource.k8s.io/v1: what nodes offer in devices and what pods claim of them."""

from datetime import datetime
from typing import Any

from msgspec import field

from extender.objects.affinity import NodeSelector, Toleration
from extender.objects.meta import Condition, KubernetesObject, ObjectMeta
from extender.objects.record import Int64, RawQuantity, Record, ResourceList


class DeviceAttribute(Record, frozen=True, kw_only=True):
    """The value of a device's attribute: exactly one of the fields is set, the last four with lists."""

    int_value: Int64 | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[Int64, ...] = field(default=(), name="ints")
    bool_values: tuple[bool, ...] = field(default=(), name="bools")
    string_values: tuple[str, ...] = field(default=(), name="strings")
    version_values: tuple[str, ...] = field(default=(), name="versions")


class CapacityRequestPolicyRange(Record, frozen=True, kw_only=True):
    """Amounts that may be consumed: from `min` to `max` in multiples of `step` above `min`."""

    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityRequestPolicy(Record, frozen=True, kw_only=True):
    """How much of a capacity a request may and by default does consume."""

    default: RawQuantity | None = None
    valid_values: tuple[RawQuantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Record, frozen=True, kw_only=True):
    """An amount a device has, and how it may be shared."""

    value: RawQuantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(Record, frozen=True, kw_only=True):
    """An amount of a shared counter."""

    value: RawQuantity = "0"


class CounterSet(Record, frozen=True, kw_only=True):
    """Counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(Record, frozen=True, kw_only=True):
    """What a device takes from a counter set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceTaint(Record, frozen=True, kw_only=True):
    """What keeps claims off a device."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeAllocatableResourceMapping(Record, frozen=True, kw_only=True):
    """How much of a node resource a device takes: a capacity of it, a multiple, or both."""

    capacity_key: str | None = None
    allocation_multiplier: RawQuantity | None = None


class Device(Record, frozen=True, kw_only=True):
    """One device. Attribute and capacity names are qualified by a domain or belong to the driver's."""

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


class ResourcePool(Record, frozen=True, kw_only=True):
    """The pool a slice belongs to; only its newest generation counts, and only when all its slices are there."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Record, frozen=True, kw_only=True):
    """Devices of one driver, and the nodes they can be used on: one of the four forms is set."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubernetesObject, frozen=True, kw_only=True):
    """A part of a pool of devices."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class CELDeviceSelector(Record, frozen=True, kw_only=True):
    """A CEL expression over `device`."""

    expression: str = ""


class DeviceSelector(Record, frozen=True, kw_only=True):
    """A condition on devices."""

    cel: CELDeviceSelector | None = None


class CapacityRequirements(Record, frozen=True, kw_only=True):
    """How much of a device's capacities a request needs."""

    requests: ResourceList = field(default_factory=dict)


class ExactDeviceRequest(Record, frozen=True, kw_only=True):
    """Devices of one class, so many or all of them."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Record, frozen=True, kw_only=True):
    """One of several alternatives of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Record, frozen=True, kw_only=True):
    """A request of a claim: exact, or the first of several alternatives that can be had."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Record, frozen=True, kw_only=True):
    """An attribute that must be equal, or differ, among the devices of the requests (none listed: of all)."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(Record, frozen=True, kw_only=True):
    """Parameters for a driver, carried but not read."""

    driver: str = ""
    parameters: Any = None


class DeviceClaimConfiguration(Record, frozen=True, kw_only=True):
    """Configuration for the devices of some requests (none listed: of all)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Record, frozen=True, kw_only=True):
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Record, frozen=True, kw_only=True):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Record, frozen=True, kw_only=True):
    """A device allocated for a request."""

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


class DeviceAllocationConfiguration(Record, frozen=True, kw_only=True):
    """Configuration of an allocation, from the class (FromClass) or the claim (FromClaim)."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Record, frozen=True, kw_only=True):
    """The devices of an allocation."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Record, frozen=True, kw_only=True):
    """What a claim has been given, and the nodes it can be used on (absent: all)."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class ResourceClaimConsumerReference(Record, frozen=True, kw_only=True):
    """Who uses a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Record, frozen=True, kw_only=True):
    """What a driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Record, frozen=True, kw_only=True):
    """What has become of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubernetesObject, frozen=True, kw_only=True):
    """A claim on devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """The claim as `namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ResourceClaimTemplateSpec(Record, frozen=True, kw_only=True):
    """The claim to make."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubernetesObject, frozen=True, kw_only=True):
    """A template that claims are made from, one for each pod."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassConfiguration(Record, frozen=True, kw_only=True):
    """Configuration for all devices of a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Record, frozen=True, kw_only=True):
    """Which devices belong to a class, and the extended resource it serves."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubernetesObject, frozen=True, kw_only=True):
    """A class of devices."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(Record, frozen=True, kw_only=True):
    """Devices; what is absent does not narrow them down."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Record, frozen=True, kw_only=True):
    """A taint, and the devices that have it besides their own."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(KubernetesObject, frozen=True, kw_only=True):
    """Taints devices without a change of their slices."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
