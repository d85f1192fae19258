"""Conditions over several devices of a claim: an attribute that is the same on all of them, or different on each.

As upstream, a condition is told of devices one by one, and of each that is given back. Source: B124.
"""

from typing import Protocol

from extender.allocation.faults import AllocationError
from extender.allocation.slices import OfferedDevice
from extender.objects.devices import DeviceAttribute, DeviceConstraint, ResourceClaim

_Value = tuple[str, object]


class Constraint(Protocol):
    """A condition, with what it remembers of the devices taken so far."""

    def add(self, request: str, alternative: str, device: OfferedDevice) -> bool:
        """Whether *device* may be taken for the request (or its alternative); if so it is remembered."""

    def remove(self, request: str, alternative: str, device: OfferedDevice) -> None:
        """Forget a device that was taken."""


def _value(attribute: DeviceAttribute) -> _Value | None:
    """The one value of an attribute; None if it has none that can be compared."""
    for kind, value in (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    ):
        if value is not None:
            return (kind, value)
    return None


class _Scope:
    """The requests that a condition applies to; none listed: all."""

    __slots__ = ("_requests", "attribute")

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        self.attribute = attribute
        self._requests = frozenset(constraint.requests)

    def covers(self, request: str, alternative: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests


class SameAttribute:
    """matchAttribute: the first device sets the value."""

    __slots__ = ("_count", "_scope", "_value")

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        self._scope = _Scope(attribute, constraint)
        self._count = 0
        self._value: _Value | None = None

    def add(self, request: str, alternative: str, device: OfferedDevice) -> bool:
        """See `Constraint`."""
        if not self._scope.covers(request, alternative):
            return True
        attribute = device.attribute(self._scope.attribute)
        if attribute is None:
            return False
        value = _value(attribute)
        if self._count == 0:
            self._value = value
        elif value is None or value != self._value:
            return False
        self._count += 1
        return True

    def remove(self, request: str, alternative: str, device: OfferedDevice) -> None:  # noqa: ARG002  counts only
        """See `Constraint`."""
        if self._scope.covers(request, alternative):
            self._count -= 1


class DistinctAttribute:
    """distinctAttribute. As upstream, of each request only the last device's value is remembered."""

    __slots__ = ("_count", "_scope", "_values")

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        self._scope = _Scope(attribute, constraint)
        self._count = 0
        self._values: dict[str, _Value | None] = {}

    def add(self, request: str, alternative: str, device: OfferedDevice) -> bool:
        """See `Constraint`."""
        if not self._scope.covers(request, alternative):
            return True
        attribute = device.attribute(self._scope.attribute)
        if attribute is None:
            return False
        value = _value(attribute)
        if self._count and self._values and (value is None or value in self._values.values()):
            return False
        self._values[request] = value
        self._count += 1
        return True

    def remove(self, request: str, alternative: str, device: OfferedDevice) -> None:  # noqa: ARG002  by request
        """See `Constraint`."""
        if self._scope.covers(request, alternative):
            self._values.pop(request, None)
            self._count -= 1


def constraints_of(claim: ResourceClaim, *, distinct: bool) -> list[Constraint]:
    """The conditions of *claim*, with nothing taken yet.

    Args:
        claim: whose.
        distinct: whether distinctAttribute is known.

    Raises:
        AllocationError: a condition is of no known kind.
    """
    made: list[Constraint] = []
    for number, each in enumerate(claim.spec.devices.constraints):
        if each.match_attribute is not None:
            made.append(SameAttribute(each.match_attribute, each))
        elif each.distinct_attribute is not None and distinct:
            made.append(DistinctAttribute(each.distinct_attribute, each))
        else:
            raise AllocationError(
                f"claim {claim.key}, constraint #{number}: empty constraint (unsupported constraint type?)"
            )
    return made
