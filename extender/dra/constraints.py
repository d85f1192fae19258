"""Constraints over the devices of a claim: matchAttribute and distinctAttribute.

As upstream, devices are added to and removed from a constraint one by one.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate (1.36).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from extender.api.kinds.devices import DeviceAttribute, DeviceConstraint, ResourceClaim
from extender.dra.cel.environment import CelFeatures, CompileError, EvaluationError
from extender.dra.device_requests import NormalizedRequest
from extender.dra.errors import AllocationError
from extender.dra.resource_slices import SliceDevice

AttributeLookup = Callable[[str], DeviceAttribute | None]
"""Returns the attribute of a device by its qualified name; None if the device does not have it."""

_AttributeValue = tuple[str, object]


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


class Constraint(ABC):
    """A constraint over one attribute of the devices added so far. An empty list of requests means all requests."""

    __slots__ = ("_attribute", "_requests")

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        self._attribute = attribute
        self._requests = frozenset(constraint.requests)

    def _covers(self, request: str, subrequest: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(subrequest) and f"{request}/{subrequest}" in self._requests

    def add(self, request: str, subrequest: str, find_attribute: AttributeLookup) -> bool:
        """Add a device if the constraint allows it for the request or subrequest; return whether it was added.

        Args:
            request: the name of the request.
            subrequest: the name of the subrequest; empty for an exact request.
            find_attribute: the function that returns an attribute of the device by name.
        """
        if not self._covers(request, subrequest):
            return True
        attribute = find_attribute(self._attribute)
        return attribute is not None and self._add_value(request, _get_attribute_value(attribute))

    def remove(self, request: str, subrequest: str) -> None:
        """Remove a device that was added. As upstream, devices are removed in reverse order."""
        if self._covers(request, subrequest):
            self._remove_value(request)

    @abstractmethod
    def _add_value(self, request: str, value: _AttributeValue | None) -> bool:
        """Add a device with *value*, None if it is not comparable; return whether the constraint allows it."""

    @abstractmethod
    def _remove_value(self, request: str) -> None:
        """Remove the device of *request* that was added last."""


class MatchAttributeConstraint(Constraint):
    """The constraint matchAttribute: all devices have the same value of the attribute. The first device sets it."""

    __slots__ = ("_attribute_value", "_count")

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        super().__init__(attribute, constraint)
        self._count = 0
        self._attribute_value: _AttributeValue | None = None

    def _add_value(self, request: str, value: _AttributeValue | None) -> bool:  # noqa: ARG002  equal for all requests
        if self._count == 0:
            self._attribute_value = value
        elif value is None or value != self._attribute_value:
            return False
        self._count += 1
        return True

    def _remove_value(self, request: str) -> None:  # noqa: ARG002  only the count changes
        self._count -= 1


class DistinctAttributePerRequestConstraint(Constraint):
    """The constraint distinctAttribute in release 1.36: devices have different values of the attribute.

    As upstream, only the last device's value is stored per request.
    """

    __slots__ = ("_count", "_values")

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        super().__init__(attribute, constraint)
        self._count = 0
        self._values: dict[str, _AttributeValue | None] = {}

    def _add_value(self, request: str, value: _AttributeValue | None) -> bool:
        if self._count and self._values and (value is None or value in self._values.values()):
            return False
        self._values[request] = value
        self._count += 1
        return True

    def _remove_value(self, request: str) -> None:
        self._values.pop(request, None)
        self._count -= 1


class DistinctAttributeConstraint(Constraint):
    """The constraint distinctAttribute since 1.37: all devices have different values of the attribute.

    Source: dynamic-resource-allocation/structured/internal/incubating/constraint.go, distinctAttributeConstraint
    (1.37).
    """

    __slots__ = ("_values",)

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        super().__init__(attribute, constraint)
        self._values: list[_AttributeValue | None] = []

    def _add_value(self, request: str, value: _AttributeValue | None) -> bool:  # noqa: ARG002  equal for all requests
        if self._values and (value is None or value in self._values):
            return False
        self._values.append(value)
        return True

    def _remove_value(self, request: str) -> None:  # noqa: ARG002  the last value is removed
        self._values.pop()


def build_constraints(
    claim: ResourceClaim, *, supports_distinct_attribute: bool, compares_all_distinct_devices: bool = False
) -> list[Constraint]:
    """Return the constraints of *claim*. No device is added to them yet.

    Args:
        claim: the claim.
        supports_distinct_attribute: whether distinctAttribute is supported.
        compares_all_distinct_devices: whether distinctAttribute compares all devices of a request.

    Raises:
        AllocationError: the type of a constraint is unknown.
    """
    constraints: list[Constraint] = []
    for number, constraint in enumerate(claim.spec.devices.constraints):
        if constraint.match_attribute is not None:
            constraints.append(MatchAttributeConstraint(constraint.match_attribute, constraint))
        elif constraint.distinct_attribute is not None and supports_distinct_attribute:
            distinct_constraint = (
                DistinctAttributeConstraint if compares_all_distinct_devices else DistinctAttributePerRequestConstraint
            )
            constraints.append(distinct_constraint(constraint.distinct_attribute, constraint))
        else:
            raise AllocationError(
                f"claim {claim.key}, constraint #{number}: empty constraint (unsupported constraint type?)"
            )
    return constraints


def make_attribute_lookup(
    request: NormalizedRequest, device: SliceDevice, cel_features: CelFeatures
) -> AttributeLookup:
    """Return the function that returns an attribute of *device* for *request*, which may derive it.

    The function raises an AllocationError if the expression of a derived attribute is invalid or its evaluation fails.

    Source: dynamic-resource-allocation/structured/internal/experimental/allocator_experimental.go,
    allocator.lookupAttribute (1.37).
    """

    def find_attribute(name: str) -> DeviceAttribute | None:
        expression = request.derived_attributes.get(name)
        if expression is None:
            return device.find_attribute(name)
        try:
            return device.derive_attribute(expression, cel_features)
        except CompileError as error:
            raise AllocationError(f"compile derived attribute {name} failed: {error}") from error
        except EvaluationError as error:
            location = f"derived attribute {name} on device {'/'.join(device.id)}"
            raise AllocationError(f"evaluate {location} failed: {error}") from error

    return find_attribute
