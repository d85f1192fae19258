"""Constraints over the devices of a claim: an attribute that is equal on all devices, or distinct on each.

As upstream, devices are added to and removed from a constraint one by one.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate (1.36).
"""

from typing import Protocol

from extender.api.kinds.devices import DeviceAttribute, DeviceConstraint, ResourceClaim
from extender.dra.errors import AllocationError
from extender.dra.resource_slices import SliceDevice

_AttributeValue = tuple[str, object]


class Constraint(Protocol):
    """A constraint over the devices added so far."""

    def add(self, request: str, subrequest: str, device: SliceDevice) -> bool:
        """Add *device* if the constraint allows it for the request or subrequest; return whether it was added."""

    def remove(self, request: str, subrequest: str, device: SliceDevice) -> None:
        """Remove a device that was added."""


def _get_attribute_value(attribute: DeviceAttribute) -> _AttributeValue | None:
    """Return the attribute's type and value; None if it has no comparable value."""
    for value_type, value in (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    ):
        if value is not None:
            return (value_type, value)
    return None


class _ConstraintScope:
    """The requests that a constraint applies to; an empty list applies to all."""

    __slots__ = ("_requests", "attribute")

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        self.attribute = attribute
        self._requests = frozenset(constraint.requests)

    def covers(self, request: str, subrequest: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(subrequest) and f"{request}/{subrequest}" in self._requests


class MatchAttributeConstraint:
    """matchAttribute: the first device sets the required value."""

    __slots__ = ("_attribute_value", "_count", "_scope")

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        self._scope = _ConstraintScope(attribute, constraint)
        self._count = 0
        self._attribute_value: _AttributeValue | None = None

    def add(self, request: str, subrequest: str, device: SliceDevice) -> bool:
        """Implement `Constraint.add`."""
        if not self._scope.covers(request, subrequest):
            return True
        attribute = device.find_attribute(self._scope.attribute)
        if attribute is None:
            return False
        value = _get_attribute_value(attribute)
        if self._count == 0:
            self._attribute_value = value
        elif value is None or value != self._attribute_value:
            return False
        self._count += 1
        return True

    def remove(self, request: str, subrequest: str, device: SliceDevice) -> None:  # noqa: ARG002  only the count changes
        """Implement `Constraint.remove`."""
        if self._scope.covers(request, subrequest):
            self._count -= 1


class DistinctAttributeConstraint:
    """distinctAttribute. As upstream, only the last device's value is stored per request."""

    __slots__ = ("_count", "_scope", "_values")

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        self._scope = _ConstraintScope(attribute, constraint)
        self._count = 0
        self._values: dict[str, _AttributeValue | None] = {}

    def add(self, request: str, subrequest: str, device: SliceDevice) -> bool:
        """Implement `Constraint.add`."""
        if not self._scope.covers(request, subrequest):
            return True
        attribute = device.find_attribute(self._scope.attribute)
        if attribute is None:
            return False
        value = _get_attribute_value(attribute)
        if self._count and self._values and (value is None or value in self._values.values()):
            return False
        self._values[request] = value
        self._count += 1
        return True

    def remove(self, request: str, subrequest: str, device: SliceDevice) -> None:  # noqa: ARG002  values are per request
        """Implement `Constraint.remove`."""
        if self._scope.covers(request, subrequest):
            self._values.pop(request, None)
            self._count -= 1


def build_constraints(claim: ResourceClaim, *, distinct_attribute: bool) -> list[Constraint]:
    """Return the constraints of *claim*, without devices.

    Args:
        claim: the claim.
        distinct_attribute: whether distinctAttribute is supported.

    Raises:
        AllocationError: the type of a constraint is unknown.
    """
    constraints: list[Constraint] = []
    for number, constraint in enumerate(claim.spec.devices.constraints):
        if constraint.match_attribute is not None:
            constraints.append(MatchAttributeConstraint(constraint.match_attribute, constraint))
        elif constraint.distinct_attribute is not None and distinct_attribute:
            constraints.append(DistinctAttributeConstraint(constraint.distinct_attribute, constraint))
        else:
            raise AllocationError(
                f"claim {claim.key}, constraint #{number}: empty constraint (unsupported constraint type?)"
            )
    return constraints
