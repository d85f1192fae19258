"""Compiled resource slices: their node selection, their devices, and the devices' values in CEL."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from extender.api.kinds.affinity import NodeSelector
from extender.api.kinds.devices import Device, DeviceAttribute, ResourceSlice
from extender.api.kinds.node import Node
from extender.api.matching import CompiledNodeSelector, compile_strict_node_selector
from extender.dra.cel.environment import (
    CompiledExpression,
    CompileError,
    DeviceValues,
    EvaluationError,
    ExpressionUse,
    compile_expression,
    to_message,
)
from extender.dra.cel.values import CelValue, parse_quantity, parse_semver, to_nanos
from extender.dra.consumable_capacity import Capacity, build_capacities
from extender.dra.errors import AllocationError

DeviceId = tuple[str, str, str]
"""Driver, pool and device name."""

PoolId = tuple[str, str]
"""Driver and pool name."""

CounterAmounts = dict[str, int]
"""Counters by name, in nano units."""

_MAX_CACHED_RESULTS: Final = 64
"""Limit of the cached results of a device: as many as a request and its class have selectors.

Source: k8s.io/api/resource/v1/types.go, DeviceSelectorsMaxSize (1.36).
"""

_MAX_SHORT_LENGTH: Final = 1000
_MAX_SHORT_EXPRESSIONS: Final = 1024
_MAX_LONG_EXPRESSIONS: Final = 64
"""Limits of the cached expressions of at most 1,000 characters, and of longer ones.

A compiled expression takes 70 to 100 bytes for each character.
"""


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """The nodes on which devices can be used: no node, one node, all nodes, or the nodes of a selector.

    Attributes:
        node_name: the name of the only node; empty if there is none.
        all_nodes: whether all nodes are selected.
        compiled_selector: the node selector; None without a selector or with an invalid one.
        error: the error of an invalid selector.
    """

    node_name: str = ""
    all_nodes: bool = False
    compiled_selector: CompiledNodeSelector | None = None
    error: str = ""

    def matches(self, node: Node) -> bool:
        """Return whether *node* is selected.

        Raises:
            AllocationError: the selector is invalid.
        """
        if self.node_name:
            return node.metadata.name == self.node_name
        if self.all_nodes:
            return True
        if self.error:
            raise AllocationError(f"failed to parse node selector: {self.error}")
        selector = self.compiled_selector
        return selector is not None and selector.matches(node.metadata.labels, node.metadata.name)


def parse_node_selection(node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> NodeSelection:
    """Make the node selection from the fields of a slice or a device."""
    compiled_selector: CompiledNodeSelector | None = None
    error = ""
    if selector is not None:
        try:
            compiled_selector = compile_strict_node_selector(selector)
        except ValueError as selector_error:
            error = str(selector_error)
    return NodeSelection(node_name or "", bool(all_nodes), compiled_selector, error)


class CounterConsumption(NamedTuple):
    """The counters that a device consumes of one counter set, and the device's compatibility groups in this set."""

    counter_set: str
    counters: CounterAmounts
    compatibility_groups: frozenset[str]


class SliceDevice:
    """A device of a slice.

    Attributes:
        id: driver, pool and device name.
        device: the device in the slice's spec.
        slice: the compiled slice with the device.
        allow_multiple_allocations: whether several claims may share the device.
    """

    def __init__(self, device: Device, compiled_slice: "CompiledSlice") -> None:
        self.id: DeviceId = (*compiled_slice.pool_id, device.name)
        self.device = device
        self.slice = compiled_slice
        self.allow_multiple_allocations = bool(device.allow_multiple_allocations)
        self._expression_results: dict[tuple[str, bool, bool], bool] = {}
        self._derived_attributes: dict[str, DeviceAttribute] = {}

    @cached_property
    def node_selection(self) -> NodeSelection:
        """The device's own node selection, used if its slice selects nodes per device."""
        return parse_node_selection(self.device.node_name, self.device.all_nodes, self.device.node_selector)

    @cached_property
    def capacities(self) -> dict[str, Capacity]:
        """The device's capacities by name."""
        return build_capacities(self.device)

    @cached_property
    def consumed_counters(self) -> tuple[CounterConsumption, ...]:
        """The shared counters that the device consumes."""
        return tuple(
            CounterConsumption(
                consumption.counter_set,
                {name: to_nanos(counter.value) for name, counter in consumption.counters.items()},
                frozenset(consumption.compatibility_groups),
            )
            for consumption in self.device.consumes_counters
        )

    def find_attribute(self, name: str) -> DeviceAttribute | None:
        """Return the attribute with the qualified *name*. The domain may be missing if it is the driver's name."""
        attributes = self.device.attributes
        if name in attributes:
            return attributes[name]
        domain, slash, short_name = name.partition("/")
        return attributes.get(short_name) if slash and domain == self.id[0] else None

    def matches_expression(self, expression: str, *, reads_lists: bool, allow_multiple: bool) -> bool:
        """Evaluate *expression* on the device and cache the result.

        Args:
            expression: the CEL expression.
            reads_lists: whether attributes may be lists. Otherwise an attribute that is a list is an error.
            allow_multiple: the value of allowMultipleAllocations in the expression.

        Raises:
            CompileError: the expression does not compile.
            EvaluationError: the evaluation fails on this device.
        """
        key = (expression, reads_lists, allow_multiple)
        result = self._expression_results.get(key)
        if result is None:
            program = _get_or_compile(expression, ExpressionUse.SELECTOR)
            attributes, capacity = self._build_cel_values(reads_lists=reads_lists)
            values = DeviceValues(self.id[0], allow_multiple, attributes, capacity)
            result = program.matches(values)
            if len(self._expression_results) >= _MAX_CACHED_RESULTS:  # claims may select a device by its own name each
                self._expression_results.clear()
            self._expression_results[key] = result
        return result

    def derive_attribute(self, expression: str) -> DeviceAttribute:
        """Evaluate the *expression* of a derived attribute on the device and cache the result.

        Raises:
            CompileError: the expression does not compile, or its value has no type of an attribute.
            EvaluationError: the evaluation fails on this device.

        Source: dynamic-resource-allocation/cel/compile.go, CompilationResult.EvaluateDerivedAttribute (1.37).
        """
        attribute = self._derived_attributes.get(expression)
        if attribute is None:
            program = _get_or_compile(expression, ExpressionUse.DERIVED_ATTRIBUTE)
            attributes, capacity = self._build_cel_values(reads_lists=True)
            values = DeviceValues(self.id[0], self.allow_multiple_allocations, attributes, capacity)
            attribute = _make_attribute(program.evaluate(values))
            if len(self._derived_attributes) >= _MAX_CACHED_RESULTS:
                self._derived_attributes.clear()
            self._derived_attributes[expression] = attribute
        return attribute

    def _build_cel_values(self, *, reads_lists: bool) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        driver = self.id[0]
        attributes: dict[str, dict[str, Any]] = {}
        for name, attribute in self.device.attributes.items():
            domain, short_name = _split_qualified_name(name, driver)
            try:
                attributes.setdefault(domain, {})[short_name] = _convert_attribute_value(
                    attribute, reads_lists=reads_lists
                )
            except ValueError as error:
                raise EvaluationError(f"attribute {name}: {error}") from error
        capacity: dict[str, dict[str, Any]] = {}
        for name, device_capacity in self.device.capacity.items():
            domain, short_name = _split_qualified_name(name, driver)
            capacity.setdefault(domain, {})[short_name] = to_message(parse_quantity(str(device_capacity.value)))
        return attributes, capacity


def _split_qualified_name(name: str, driver: str) -> tuple[str, str]:
    domain, slash, short_name = name.partition("/")
    return (domain, short_name) if slash else (driver, name)


def _convert_attribute_value(attribute: DeviceAttribute, *, reads_lists: bool) -> Any:
    if reads_lists:
        for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
            if values:
                return list(values)
        if attribute.version_values:
            return [to_message(parse_semver(version)) for version in attribute.version_values]
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is not None:
        try:
            return to_message(parse_semver(attribute.version_value))
        except ValueError as error:
            raise ValueError(f"parse semantic version: {error}") from error
    raise ValueError("unsupported attribute value")


def _make_attribute(value: Any) -> DeviceAttribute:
    """Return the value of an expression as an attribute.

    Raises:
        EvaluationError: the elements of a list have different types.

    Source: dynamic-resource-allocation/cel/compile.go, valToDeviceAttribute (1.37).
    """
    if not isinstance(value, list):
        return DeviceAttribute(**{f"{_get_field_prefix(value)}_value": _get_text_or_number(value)})
    if not value:
        return DeviceAttribute()
    prefix = _get_field_prefix(value[0])
    for index, item in enumerate(value):
        if _get_field_prefix(item) != prefix:
            message = f"expected list element at index {index} to be {prefix}, got {_get_field_prefix(item)}"
            raise EvaluationError(message)
    fields: dict[str, Any] = {f"{prefix}_values": tuple(map(_get_text_or_number, value))}
    return DeviceAttribute(**fields)


def _get_field_prefix(value: Any) -> str:
    """Return the start of the name of the attribute's field for *value*, such as `int`."""
    return "version" if isinstance(value, CelValue) else {bool: "bool", int: "int", str: "string"}[type(value)]


def _get_text_or_number(value: Any) -> Any:
    return value.text if isinstance(value, CelValue) else value


def _compile(expression: str, use: ExpressionUse) -> CompiledExpression | str:
    """Return the compiled *expression*, or the message of its error."""
    try:
        return compile_expression(expression, use)
    except CompileError as error:
        return str(error)


_compile_short = lru_cache(_MAX_SHORT_EXPRESSIONS)(_compile)
_compile_long = lru_cache(_MAX_LONG_EXPRESSIONS)(_compile)


def _get_or_compile(expression: str, use: ExpressionUse) -> CompiledExpression:
    """Return the compiled *expression*, from the cache if possible.

    Raises:
        CompileError: the expression does not compile, or its value has no type for its *use*.
    """
    compile_cached = _compile_short if len(expression) <= _MAX_SHORT_LENGTH else _compile_long
    compiled_expression = compile_cached(expression, use)
    if isinstance(compiled_expression, str):
        raise CompileError(compiled_expression)
    return compiled_expression


class CompiledSlice:
    """A resource slice prepared for allocation.

    Attributes:
        resource_slice: the API object.
        name: the name of the slice.
        pool_id: the pool that the slice belongs to.
        generation, pool_slice_count: the pool's generation and its number of slices.
        node_selection: the nodes of all its devices; None if the slice selects no nodes.
        per_device_node_selection: whether each device selects its nodes.
        devices: the devices in the order of the spec.
        counter_sets: the names of the counter sets, each with its shared counters.
    """

    def __init__(self, resource_slice: ResourceSlice) -> None:
        spec = resource_slice.spec
        self.resource_slice = resource_slice
        self.name = resource_slice.metadata.name
        self.pool_id: PoolId = (spec.driver, spec.pool.name)
        self.generation, self.pool_slice_count = spec.pool.generation, spec.pool.resource_slice_count
        selects_nodes = bool(spec.node_name) or bool(spec.all_nodes) or spec.node_selector is not None
        self.node_selection = (
            parse_node_selection(spec.node_name, spec.all_nodes, spec.node_selector) if selects_nodes else None
        )
        self.per_device_node_selection = bool(spec.per_device_node_selection)
        self.devices = tuple(SliceDevice(device, self) for device in spec.devices)
        self.counter_sets = tuple(
            (counter_set.name, {name: to_nanos(counter.value) for name, counter in counter_set.counters.items()})
            for counter_set in spec.shared_counters
        )

    @property
    def skipped_operations(self) -> tuple[str, ...]:
        """The operations of the kubelet that its devices skip."""
        return self.resource_slice.spec.skip_node_operations

    @property
    def uses_partitionable_devices(self) -> bool:
        """Whether the slice uses fields of partitionable devices."""
        return self.resource_slice.spec.per_device_node_selection is not None or bool(self.counter_sets)

    @property
    def uses_compatibility_groups(self) -> bool:
        """Whether a device of the slice has compatibility groups.

        Source: dynamic-resource-allocation/structured/internal/incubating/compatibility_groups.go,
        sliceUsesCompatibilityGroups (1.37).
        """
        devices = self.resource_slice.spec.devices
        return any(consumption.compatibility_groups for device in devices for consumption in device.consumes_counters)

    def targets_node(self, node: Node) -> bool:
        """Return whether the slice targets *node*.

        Raises:
            AllocationError: a node selector is invalid.
        """
        try:
            if self.node_selection is not None:
                return self.node_selection.matches(node)
        except AllocationError as error:
            raise AllocationError(f"failed to perform node selection for slice {self.name}: {error}") from error
        return self.per_device_node_selection and any(self._match_devices(node))

    def _match_devices(self, node: Node) -> Iterator[bool]:
        for device in self.devices:
            try:
                yield device.node_selection.matches(node)
            except AllocationError as error:
                message = f"failed to perform node selection for device {device.device.name} in slice {self.name}"
                raise AllocationError(f"{message}: {error}") from error
