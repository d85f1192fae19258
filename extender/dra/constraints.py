"""Constraints over the devices of a claim: matchAttribute and distinctAttribute.

As upstream, devices are added to and removed from a constraint one by one.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate (1.36).
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from extender.api.kinds.devices import DeviceAttribute, DeviceConstraint, ResourceClaim
from extender.dra.cel.environment import CompileError, EvaluationError
from extender.dra.device_requests import NormalizedRequest
from extender.dra.errors import AllocationError
from extender.dra.features import Features
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


@lru_cache(maxsize=1024)
def _get_attribute_values(attribute: DeviceAttribute) -> frozenset[_AttributeValue]:
    """Return the types and values of an attribute, which may be a list; empty if it has no comparable value."""
    for value_type, values in (
        ("int", attribute.int_values),
        ("bool", attribute.bool_values),
        ("string", attribute.string_values),
        ("version", attribute.version_values),
    ):
        if values:
            return frozenset((value_type, value) for value in values)
    value = _get_attribute_value(attribute)
    return frozenset(() if value is None else (value,))


class Constraint(ABC):
    """A constraint over one attribute of the devices added so far. An empty list of requests means all requests."""

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        self._attribute = attribute
        self._requests = frozenset(constraint.requests)
        self._values: list[Any] = []  # what the subclass compares, for each device that was added

    def _covers(self, request: str, subrequest: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(subrequest) and f"{request}/{subrequest}" in self._requests

    def add(self, request: str, subrequest: str, find_attribute: AttributeLookup) -> bool:
        """Add a device if the constraint allows it for the request or subrequest; return whether it was added.

        *subrequest* is empty for an exact request. *find_attribute* returns an attribute of the device by name.
        """
        if not self._covers(request, subrequest):
            return True
        attribute = find_attribute(self._attribute)
        return attribute is not None and self._add_attribute(request, attribute)

    def remove(self, request: str, subrequest: str) -> None:
        """Remove a device that was added. As upstream, devices are removed in reverse order."""
        if self._covers(request, subrequest):
            self._remove_value(request)

    def count_allowed(self, request: str, subrequest: str, devices: Sequence[SliceDevice]) -> int:
        """Return an upper bound of the number of *devices* that can be added together for the request or subrequest."""
        if not self._covers(request, subrequest):
            return len(devices)
        attributes = [device.find_attribute(self._attribute) for device in devices]
        return self._count_addable([attribute for attribute in attributes if attribute is not None])

    def _count_addable(self, attributes: Sequence[DeviceAttribute]) -> int:
        """Return an upper bound of the number of devices with *attributes* that can be added together."""
        return len(attributes)

    @abstractmethod
    def _add_attribute(self, request: str, attribute: DeviceAttribute) -> bool:
        """Add a device with *attribute*; return whether the constraint allows it."""

    def _remove_value(self, request: str) -> None:  # noqa: ARG002  the device that was added last is removed
        """Remove the device of *request* that was added last."""
        self._values.pop()


class MatchAttributeConstraint(Constraint):
    """The constraint matchAttribute: all devices have the same value of the attribute. The first device sets it."""

    def _add_attribute(self, request: str, attribute: DeviceAttribute) -> bool:  # noqa: ARG002  equal for all requests
        value = _get_attribute_value(attribute)
        if self._values and (value is None or value != self._values[0]):
            return False
        self._values.append(value)
        return True

    def _count_addable(self, attributes: Sequence[DeviceAttribute]) -> int:
        counts = Counter(map(_get_attribute_value, attributes))
        return counts[self._values[0]] if self._values else max(counts.values(), default=0)


class DistinctAttributePerRequestConstraint(Constraint):
    """The constraint distinctAttribute in release 1.36: devices have different values of the attribute.

    As upstream, only the last device's value is stored per request.
    """

    def __init__(self, attribute: str, constraint: DeviceConstraint) -> None:
        super().__init__(attribute, constraint)
        self._value_by_request: dict[str, _AttributeValue | None] = {}

    def _add_attribute(self, request: str, attribute: DeviceAttribute) -> bool:
        value = _get_attribute_value(attribute)
        values = self._value_by_request
        if values and (value is None or value in values.values()):
            return False
        values[request] = value
        return True

    def _remove_value(self, request: str) -> None:
        self._value_by_request.pop(request, None)


class DistinctAttributeConstraint(Constraint):
    """The constraint distinctAttribute since 1.37: all devices have different values of the attribute.

    Source: dynamic-resource-allocation/structured/internal/incubating/constraint.go, distinctAttributeConstraint
    (1.37).
    """

    def _add_attribute(self, request: str, attribute: DeviceAttribute) -> bool:  # noqa: ARG002  equal for all requests
        value = _get_attribute_value(attribute)
        if self._values and (value is None or value in self._values):
            return False
        self._values.append(value)
        return True

    def _count_addable(self, attributes: Sequence[DeviceAttribute]) -> int:
        return len(set(map(_get_attribute_value, attributes)).difference(self._values))


class MatchListConstraint(Constraint):
    """The constraint matchAttribute on attributes that may be lists: all devices have a value in common.

    Source: dynamic-resource-allocation/structured/internal/experimental/allocator_experimental.go,
    matchAttributeConstraint (1.37).
    """

    def _add_attribute(self, request: str, attribute: DeviceAttribute) -> bool:  # noqa: ARG002  equal for all requests
        values = _get_attribute_values(attribute)
        common_values = values & self._values[-1] if self._values else values
        if common_values:
            self._values.append(common_values)
        return bool(common_values)


class DistinctListConstraint(Constraint):
    """The constraint distinctAttribute on attributes that may be lists: no two devices have a value in common.

    Source: dynamic-resource-allocation/structured/internal/experimental/constraint.go, distinctAttributeConstraint
    (1.37).
    """

    def _add_attribute(self, request: str, attribute: DeviceAttribute) -> bool:  # noqa: ARG002  equal for all requests
        values = _get_attribute_values(attribute)
        is_distinct = bool(values) and all(map(values.isdisjoint, self._values))
        if is_distinct:
            self._values.append(values)
        return is_distinct


def build_constraints(claim: ResourceClaim, features: Features) -> list[Constraint]:
    """Return the constraints of *claim*. No device is added to them yet.

    Raises:
        AllocationError: the type of a constraint is unknown.
    """
    match_constraint: type[Constraint] = MatchAttributeConstraint
    distinct_constraint: type[Constraint] = DistinctAttributePerRequestConstraint
    if features.compares_lists:
        match_constraint, distinct_constraint = MatchListConstraint, DistinctListConstraint
    elif features.release.compares_all_distinct_devices:
        distinct_constraint = DistinctAttributeConstraint
    constraints: list[Constraint] = []
    for number, constraint in enumerate(claim.spec.devices.constraints):
        if constraint.match_attribute is not None:
            constraints.append(match_constraint(constraint.match_attribute, constraint))
        elif constraint.distinct_attribute is not None and features.needs_non_stable_allocator:
            constraints.append(distinct_constraint(constraint.distinct_attribute, constraint))
        else:
            raise AllocationError(
                f"claim {claim.key}, constraint #{number}: empty constraint (unsupported constraint type?)"
            )
    return constraints


def count_allowed(devices: Sequence[SliceDevice], request: NormalizedRequest, constraints: Iterable[Constraint]) -> int:
    """Return an upper bound of the number of *devices* that can be allocated for *request* together."""
    names = request.base_name, request.subrequest_name
    return min([len(devices), *(constraint.count_allowed(*names, devices) for constraint in constraints)])


def make_attribute_lookup(request: NormalizedRequest, device: SliceDevice) -> AttributeLookup:
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
            return device.derive_attribute(expression)
        except CompileError as error:
            raise AllocationError(f"compile derived attribute {name} failed: {error}") from error
        except EvaluationError as error:
            location = f"derived attribute {name} on device {'/'.join(device.id)}"
            raise AllocationError(f"evaluate {location} failed: {error}") from error

    return find_attribute
