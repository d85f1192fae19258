"""Normalized device requests: exact requests and subrequests are validated and converted to one form.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter;
dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate (1.36).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from extender.api.kinds.affinity import Toleration
from extender.api.kinds.devices import (
    CapacityRequirements,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    ResourceClaim,
)
from extender.api.tolerations import find_untolerated_taint
from extender.dra.consumable_capacity import Amount
from extender.dra.device_pools import PoolDevice
from extender.dra.errors import AllocationError
from extender.dra.features import Features
from extender.dra.resource_slices import SliceDevice

ALLOCATION_MODE_ALL: Final = "All"
"""The allocation mode that takes all matching devices of the node."""

_ALLOCATION_MODE_EXACT_COUNT: Final = "ExactCount"


class NormalizedRequest(NamedTuple):
    """An exact request, or one subrequest.

    Attributes:
        name: the name of the request or subrequest.
        parent: the name of the request that contains the subrequest; empty for an exact request.
        device_class: the class of the devices.
        allocation_mode: "All" for all matching devices, or "ExactCount" for `num_devices` devices.
        num_devices: the number of devices.
        admin_access: whether the devices may be in use by other claims.
        selectors: the CEL selectors in addition to the class's selectors.
        tolerations: the tolerations of device taints.
        capacity: the requested capacities.
        derived_attributes: the expressions of attributes that constraints compare, by qualified name.
    """

    name: str
    parent: str
    device_class: DeviceClass
    allocation_mode: str
    num_devices: int
    admin_access: bool
    selectors: tuple[DeviceSelector, ...]
    tolerations: tuple[Toleration, ...]
    capacity: CapacityRequirements | None
    derived_attributes: Mapping[str, str]

    @property
    def qualified_name(self) -> str:
        """The name in allocation results: `request`, or `request/subrequest`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_name(self) -> str:
        """The name of the claim's request."""
        return self.parent or self.name

    @property
    def subrequest_name(self) -> str:
        """The name of the subrequest; empty for an exact request."""
        return self.name if self.parent else ""


@dataclass(slots=True)
class RequestData:
    """A request or subrequest prepared for the search.

    Attributes:
        num_devices: number of devices to allocate.
        all_devices: the devices to allocate in the mode `All`.
        fits_by_pool: in the mode `ExactCount`, whether a device may fit, by pool and device index; None: not checked.
    """

    request: NormalizedRequest
    num_devices: int
    all_devices: tuple[PoolDevice, ...] = ()
    fits_by_pool: dict[int, list[bool | None]] = field(default_factory=dict)


class DeviceResult(NamedTuple):
    """A device allocated for a request.

    Attributes:
        request: the request or subrequest.
        consumed_capacity: the consumed amounts by name; None unless the device allows multiple allocations.
    """

    device: SliceDevice
    request: NormalizedRequest
    consumed_capacity: dict[str, Amount] | None


def normalize_request(
    claim: ResourceClaim, request: DeviceRequest, classes: Mapping[str, DeviceClass], features: Features
) -> tuple[NormalizedRequest, ...]:
    """Return the subrequests of *request* in order of preference, or the exact request alone.

    Raises:
        AllocationError: the request uses an unknown class, or a feature that is unsupported or disabled.
    """
    location = f"claim {claim.key}, request {request.name}"
    subrequests = request.first_available
    if subrequests and not features.prioritized_list:
        raise AllocationError(f"{location}: has subrequests, but the DRAPrioritizedList feature is disabled")
    if features.needs_non_stable_allocator and not features.consumable_capacity:
        _reject_capacity_requests(claim, request)
    if subrequests:
        return tuple(
            _normalize_single_request(claim, subrequest, request.name, classes, features) for subrequest in subrequests
        )
    return (_normalize_single_request(claim, request, "", classes, features),)


def _reject_capacity_requests(claim: ResourceClaim, request: DeviceRequest) -> None:
    reason = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if request.exactly is not None and request.exactly.capacity is not None:
        raise AllocationError(f"claim {claim.key}, request {request.name}: {reason}")
    for subrequest in request.first_available:
        if subrequest.capacity is not None:
            raise AllocationError(f"claim {claim.key}, subrequest {subrequest.name}: {reason}")


def _normalize_single_request(
    claim: ResourceClaim,
    request: DeviceRequest | DeviceSubRequest,
    parent: str,
    classes: Mapping[str, DeviceClass],
    features: Features,
) -> NormalizedRequest:
    location = f"claim {claim.key}, request {request.name}"
    exact_request = request if isinstance(request, DeviceSubRequest) else request.exactly
    if exact_request is None:
        raise AllocationError(f"{location}: unknown request type")
    if exact_request.derived_attributes and not features.derived_attributes:
        raise AllocationError(f"{location}: cannot handle request with derived attributes, the feature is disabled")
    for number, selector in enumerate(exact_request.selectors):
        if selector.cel is None:
            raise AllocationError(f"{location}, selector #{number}: CEL expression empty (unsupported selector type?)")
    admin_access = None if isinstance(exact_request, DeviceSubRequest) else exact_request.admin_access
    if admin_access is not None and not features.admin_access:
        raise AllocationError(f"{location}: admin access is requested, but the feature is disabled")
    name = exact_request.device_class_name
    if not name:
        raise AllocationError(f"{location}: missing device class name (unsupported request type?)")
    device_class = classes.get(name)
    if device_class is None:
        not_found = f'deviceclass.resource.k8s.io "{name}" not found'
        raise AllocationError(f"{location}: could not retrieve device class {name}: {not_found}")
    if exact_request.allocation_mode not in {_ALLOCATION_MODE_EXACT_COUNT, ALLOCATION_MODE_ALL}:
        raise AllocationError(f"{location}: unsupported count mode {exact_request.allocation_mode}")
    return NormalizedRequest(
        request.name,
        parent,
        device_class,
        exact_request.allocation_mode,
        exact_request.count,
        bool(admin_access),
        exact_request.selectors,
        exact_request.tolerations,
        exact_request.capacity,
        {attribute.name: attribute.expression for attribute in exact_request.derived_attributes},
    )


def has_untolerated_taint(taints: tuple[DeviceTaint, ...], request: NormalizedRequest) -> bool:
    """Return whether *request* does not tolerate a NoSchedule or NoExecute taint of a device."""
    return find_untolerated_taint(taints, request.tolerations) is not None
