"""Resource slices, compiled: where their devices can be used, what they have, what expressions see of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from extender.allocation.capacity import Capacity, capacities
from extender.allocation.faults import AllocationError
from extender.cel.environment import CompileError, DeviceValues, Dialect, EvaluationError, compiled, message
from extender.cel.values import nanos, quantity, semver
from extender.objects.affinity import NodeSelector
from extender.objects.devices import Device, DeviceAttribute, ResourceSlice
from extender.objects.matching import NodeTerms, strict_node_selector
from extender.objects.node import Node

DeviceId = tuple[str, str, str]
"""Driver, pool and name."""

PoolId = tuple[str, str]
"""Driver and pool."""

Amounts = dict[str, int]
"""Counters by name, in nano units."""


@dataclass(frozen=True, slots=True)
class Place:
    """The nodes that something can be used on: one by name, all, or those of a selector; else none."""

    name: str = ""
    everywhere: bool = False
    selector: NodeSelector | None = None
    terms: NodeTerms | None = None
    fault: str = ""

    def holds(self, node: Node) -> bool:
        """Whether *node* is one of them.

        Raises:
            AllocationError: the selector is wrong.
        """
        if self.name:
            return node.metadata.name == self.name
        if self.everywhere or self.selector is None:
            return self.everywhere
        if self.terms is None:
            raise AllocationError(f"failed to parse node selector: {self.fault}")
        return self.terms.matches(node.metadata.labels, node.metadata.name)


def place_of(name: str | None, everywhere: bool | None, selector: NodeSelector | None) -> Place:
    """The nodes that the fields of a slice or a device stand for."""
    terms: NodeTerms | None = None
    fault = ""
    if selector is not None:
        try:
            terms = strict_node_selector(selector)
        except ValueError as wrong:
            fault = str(wrong)
    return Place(name or "", bool(everywhere), selector, terms, fault)


class Consumption(NamedTuple):
    """What a device takes of a counter set."""

    counter_set: str
    counters: Amounts


class OfferedDevice:
    """A device of a slice.

    Attributes:
        id: who it is.
        device: as the slice says.
        slice: that offers it.
        shared: it may be allocated several times.
    """

    def __init__(self, device: Device, offer: "Offer") -> None:
        self.id: DeviceId = (offer.driver, offer.pool, device.name)
        self.device = device
        self.slice = offer
        self.shared = bool(device.allow_multiple_allocations)
        self._answers: dict[tuple[str, Dialect, bool], bool] = {}

    @cached_property
    def place(self) -> Place:
        """Where it can be used if its slice leaves that to the devices."""
        return place_of(self.device.node_name, self.device.all_nodes, self.device.node_selector)

    @cached_property
    def capacity(self) -> dict[str, Capacity]:
        """Its capacities by name."""
        return capacities(self.device)

    @cached_property
    def consumption(self) -> tuple[Consumption, ...]:
        """What it takes of shared counters."""
        return tuple(
            Consumption(each.counter_set, {name: nanos(counter.value) for name, counter in each.counters.items()})
            for each in self.device.consumes_counters
        )

    def attribute(self, name: str) -> DeviceAttribute | None:
        """The attribute of the fully qualified *name*; the driver's own may be listed without their domain."""
        attributes = self.device.attributes
        if name in attributes:
            return attributes[name]
        domain, slash, short = name.partition("/")
        return attributes.get(short) if slash and domain == self.id[0] else None

    def satisfies(self, expression: str, dialect: Dialect, *, as_shared: bool | None = None) -> bool:
        """Whether *expression* is true of the device; worked out once.

        Args:
            expression: CEL.
            dialect: what it may use.
            as_shared: what it sees as allowMultipleAllocations; None: the truth.

        Raises:
            CompileError: the expression is wrong.
            EvaluationError: it fails on this device.
        """
        shared = self.shared if as_shared is None else as_shared
        key = (expression, dialect, shared)
        known = self._answers.get(key)
        if known is None:
            program = expression_of(expression, dialect)
            attributes, capacity = self._seen(dialect)
            values = DeviceValues(self.id[0], shared, attributes, capacity)
            known = self._answers[key] = program.matches(values)
        return known

    def _seen(self, dialect: Dialect) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        driver = self.id[0]
        attributes: dict[str, dict[str, Any]] = {}
        for name, attribute in self.device.attributes.items():
            domain, short = _qualified(name, driver)
            try:
                attributes.setdefault(domain, {})[short] = _value(attribute, dialect)
            except ValueError as fault:
                raise EvaluationError(f"attribute {name}: {fault}") from fault
        capacity: dict[str, dict[str, Any]] = {}
        for name, each in self.device.capacity.items():
            domain, short = _qualified(name, driver)
            capacity.setdefault(domain, {})[short] = message(quantity(str(each.value)))
        return attributes, capacity


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, short = name.partition("/")
    return (domain, short) if slash else (driver, name)


def _value(attribute: DeviceAttribute, dialect: Dialect) -> Any:
    if dialect.lists:
        for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
            if values:
                return list(values)
        if attribute.version_values:
            return [message(semver(each)) for each in attribute.version_values]
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is not None:
        try:
            return message(semver(attribute.version_value))
        except ValueError as fault:
            raise ValueError(f"parse semantic version: {fault}") from fault
    raise ValueError("unsupported attribute value")


_MOST_EXPRESSIONS = 4096
_programs: dict[tuple[str, Dialect], Any] = {}


def expression_of(expression: str, dialect: Dialect) -> Any:
    """*expression*, compiled once; the oldest are forgotten.

    Raises:
        CompileError: it is wrong.
    """
    key = (expression, dialect)
    known = _programs.get(key)
    if known is None:
        try:
            known = compiled(expression, dialect)
        except CompileError as fault:
            known = fault
        if len(_programs) >= _MOST_EXPRESSIONS:
            del _programs[next(iter(_programs))]
        _programs[key] = known
    if isinstance(known, CompileError):
        raise CompileError(str(known))
    return known


class Offer:
    """A resource slice.

    Attributes:
        object: as it came.
        name: of the slice.
        driver, pool: of its devices.
        place: where the devices can be used; None: each device says so, or nobody does.
        by_device: each device says where it can be used.
        devices: in their order.
        counter_sets: shared counters by the name of the set.
    """

    def __init__(self, piece: ResourceSlice) -> None:
        spec = piece.spec
        self.object = piece
        self.name = piece.metadata.name
        self.driver, self.pool = spec.driver, spec.pool.name
        self.generation, self.count = spec.pool.generation, spec.pool.resource_slice_count
        said = bool(spec.node_name) or bool(spec.all_nodes) or spec.node_selector is not None
        self.place = place_of(spec.node_name, spec.all_nodes, spec.node_selector) if said else None
        self.by_device = bool(spec.per_device_node_selection)
        self.devices = tuple(OfferedDevice(device, self) for device in spec.devices)
        self.counter_sets = tuple(
            (each.name, {name: nanos(counter.value) for name, counter in each.counters.items()})
            for each in spec.shared_counters
        )

    @property
    def id(self) -> PoolId:
        """The pool it belongs to."""
        return (self.driver, self.pool)

    @property
    def of_partitions(self) -> bool:
        """Whether it uses fields of partitionable devices."""
        return self.object.spec.per_device_node_selection is not None or bool(self.counter_sets)

    def concerns(self, node: Node) -> bool:
        """Whether it has to do with *node*. Counters always do.

        Raises:
            AllocationError: a node selector is wrong.
        """
        if self.counter_sets:
            return True
        try:
            if self.place is not None:
                return self.place.holds(node)
        except AllocationError as fault:
            raise AllocationError(f"failed to perform node selection for slice {self.name}: {fault}") from fault
        return self.by_device and any(self._places(node))

    def _places(self, node: Node) -> Iterator[bool]:
        for device in self.devices:
            try:
                yield device.place.holds(node)
            except AllocationError as fault:
                what = f"failed to perform node selection for device {device.device.name} in slice {self.name}"
                raise AllocationError(f"{what}: {fault}") from fault
