"""Requests of claims in one form, exact ones and alternatives alike, checked before the search. Source: B111, B124."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from extender.allocation.faults import AllocationError
from extender.allocation.features import Features
from extender.objects.affinity import Toleration
from extender.objects.devices import (
    CapacityRequirements,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    ResourceClaim,
)

ALL: Final = "All"
"""The allocation mode that takes every device there is."""

_EXACT: Final = "ExactCount"
_KEEPING_OFF: Final = frozenset(("NoSchedule", "NoExecute"))


class Request(NamedTuple):
    """An exact request, or one alternative of a request.

    Attributes:
        name: of the request, or of the alternative.
        parent: of an alternative: the name of its request, else empty.
        device_class: whose devices.
        mode: `ALL`, or so many as `number` says.
        number: of devices.
        admin: the devices are only looked at, so they may be in use.
        selectors: conditions besides those of the class.
        tolerations: for taints of devices.
        capacity: what is asked of shared capacities.
    """

    name: str
    parent: str
    device_class: DeviceClass
    mode: str
    number: int
    admin: bool
    selectors: tuple[DeviceSelector, ...]
    tolerations: tuple[Toleration, ...]
    capacity: CapacityRequirements | None

    @property
    def qualified(self) -> str:
        """The name results refer to: `request`, or `request/alternative`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base(self) -> str:
        """The name of the request of the claim."""
        return self.parent or self.name

    @property
    def alternative(self) -> str:
        """The name of the alternative; empty for an exact request."""
        return self.name if self.parent else ""


def alternatives(
    claim: ResourceClaim, request: DeviceRequest, classes: Mapping[str, DeviceClass], features: Features
) -> tuple[Request, ...]:
    """The ways in which *request* can be met, the preferred one first.

    Raises:
        AllocationError: it asks for what is not known or switched off.
    """
    where = f"claim {claim.key}, request {request.name}"
    several = request.first_available
    if several and not features.prioritized_list:
        raise AllocationError(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
    if not features.consumable_capacity:
        _refuse_capacity(claim, request)
    if several:
        return tuple(_checked(claim, each, request.name, classes, features) for each in several)
    return (_checked(claim, request, "", classes, features),)


def _refuse_capacity(claim: ResourceClaim, request: DeviceRequest) -> None:
    off = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if request.exactly is not None and request.exactly.capacity is not None:
        raise AllocationError(f"claim {claim.key}, request {request.name}: {off}")
    for each in request.first_available:
        if each.capacity is not None:
            raise AllocationError(f"claim {claim.key}, subrequest {each.name}: {off}")


def _checked(
    claim: ResourceClaim,
    given: DeviceRequest | DeviceSubRequest,
    parent: str,
    classes: Mapping[str, DeviceClass],
    features: Features,
) -> Request:
    where = f"claim {claim.key}, request {given.name}"
    body = given if isinstance(given, DeviceSubRequest) else given.exactly
    if body is None:
        raise AllocationError(f"{where}: unknown request type")
    for number, selector in enumerate(body.selectors):
        if selector.cel is None:
            raise AllocationError(f"{where}, selector #{number}: CEL expression empty (unsupported selector type?)")
    admin = None if isinstance(body, DeviceSubRequest) else body.admin_access
    if admin is not None and not features.admin_access:
        raise AllocationError(f"{where}: admin access is requested, but the feature is disabled")
    name = body.device_class_name
    if not name:
        raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
    device_class = classes.get(name)
    if device_class is None:
        missing = f'deviceclass.resource.k8s.io "{name}" not found'
        raise AllocationError(f"{where}: could not retrieve device class {name}: {missing}")
    if body.allocation_mode not in {_EXACT, ALL}:
        raise AllocationError(f"{where}: unsupported count mode {body.allocation_mode}")
    return Request(
        given.name,
        parent,
        device_class,
        body.allocation_mode,
        body.count,
        bool(admin),
        body.selectors,
        body.tolerations,
        body.capacity,
    )


def tolerates(toleration: Toleration, taint: DeviceTaint) -> bool:
    """Whether a toleration accepts the taint of a device. An empty key or effect stands for any. Source: B122."""
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def kept_off(taints: tuple[DeviceTaint, ...], request: Request) -> bool:
    """Whether a taint keeps *request* off a device. Effects other than NoSchedule and NoExecute do not."""
    return any(
        taint.effect in _KEEPING_OFF and not any(tolerates(each, taint) for each in request.tolerations)
        for taint in taints
    )
