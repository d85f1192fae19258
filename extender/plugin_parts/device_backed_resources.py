"""Extended resources that are backed by DRA devices, for plugins that score resources.

The devices of the resource's class are counted on each node: all devices, and allocated devices. Allocations that are
not written yet count too. As upstream, all slices count, including slices of incomplete pools and old generations.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
resourceAllocationScorer.calculateDRAResourceTotals (1.36).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from extender.api.kinds.devices import DeviceClass, ResourceClaim, ResourceSlice
from extender.api.kinds.meta import KubernetesObject
from extender.api.requests import is_dra_extended_resource
from extender.basics.clock import SystemClock
from extender.cache.device_classes import get_class_by_resource
from extender.cache.node_matching import match_node_selector
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.dra.allocator import ALLOCATOR_KEY, Allocator
from extender.dra.cel.environment import CompileError, EvaluationError
from extender.dra.features import Features
from extender.dra.resource_slices import CompiledSlice, DeviceId, NodeSelection, SliceDevice
from extender.framework.plugin_args import PluginArgs
from extender.plugin_parts.scored_resources import ResourceSpec, ScoredResource

RowsOrMask = BoolArray | IntArray
"""Row numbers, or a mask over all rows."""


class DeviceCounts(NamedTuple):
    """The number of devices of a class by row: int64, shape (number of nodes,). `allocated` includes shared devices."""

    total: IntArray
    allocated: IntArray


class _MatchingDevices(NamedTuple):
    """The devices of a class, whether allocated or not.

    Attributes:
        total: their number by row.
        failed_rows: whether a selector of the class fails on each node.
        selected_devices: the devices with the selection of their nodes.
    """

    total: IntArray
    failed_rows: BoolArray
    selected_devices: Sequence[tuple[NodeSelection, tuple[DeviceId, ...]]]


class DeviceCounter:
    """Counts the devices in the snapshots of one cache. Each plugin has its own counter. It is not thread-safe.

    *shared_state* is that of the plugins. Its allocator is that of DynamicResources, which knows the allocations in
    flight.
    """

    def __init__(self, features: Features, shared_state: dict[str, Any]) -> None:
        self._features = features
        self._shared_state = shared_state
        self._cache_key: object = None
        self._cache: dict[str, DeviceCounts] = {}
        self._matching_key: object = None
        self._matching: dict[str, _MatchingDevices] = {}

    @cached_property
    def _allocator(self) -> Allocator:
        """The allocator of DynamicResources, which exists before the first count; an own one if it is disabled."""
        allocator: Allocator | None = self._shared_state.get(ALLOCATOR_KEY)
        return Allocator(self._features, SystemClock()) if allocator is None else allocator

    def count_devices(self, device_class: DeviceClass, snapshot: Snapshot) -> DeviceCounts:
        """Count the devices of *device_class*. The counts are 0 on nodes where a selector of the class fails."""
        allocator = self._allocator
        allocator.sync(snapshot)
        position = snapshot.position
        matching_key = (*allocator.slice_and_class_version, position.history_id, position.node_log_position)
        if matching_key != self._matching_key:
            self._matching_key, self._matching = matching_key, {}
        cache_key = (*matching_key, allocator.allocated_devices.version)
        if cache_key != self._cache_key:
            self._cache_key, self._cache = cache_key, {}
        name = device_class.metadata.name
        counts = self._cache.get(name)
        if counts is None:
            matching = self._matching.get(name)
            if matching is None:
                matching = self._matching[name] = self._find_matching_devices(device_class, snapshot)
            counts = self._cache[name] = DeviceCounts(matching.total, self._count_allocated(matching, snapshot.view()))
        return counts

    def _find_matching_devices(self, device_class: DeviceClass, snapshot: Snapshot) -> _MatchingDevices:
        view = snapshot.view()
        total = np.zeros(len(snapshot), dtype=np.int64)
        failed_rows = np.zeros(len(snapshot), dtype=np.bool_)
        selected_devices: list[tuple[NodeSelection, tuple[DeviceId, ...]]] = []
        for compiled_slice in self._allocator.slice_index.slices.values():
            for selection, devices in _group_by_selection(compiled_slice):
                rows = _find_node_rows(selection, view)
                if rows is None:
                    failed_rows[:] = True
                    continue
                matching_ids = self._list_matching(devices, device_class)
                if matching_ids is None:
                    failed_rows[rows] = True
                else:
                    total[rows] += len(matching_ids)
                    selected_devices.append((selection, matching_ids))
        total[failed_rows] = 0
        return _MatchingDevices(total, failed_rows, selected_devices)

    def _list_matching(self, devices: Iterable[SliceDevice], device_class: DeviceClass) -> tuple[DeviceId, ...] | None:
        """Return those of *devices* that match the class; None if a selector fails."""
        expressions = [selector.cel.expression for selector in device_class.spec.selectors if selector.cel is not None]
        reads_lists = self._features.reads_list_attributes
        try:
            return tuple(
                device.id
                for device in devices
                if all(
                    device.matches_expression(expression, reads_lists=reads_lists, allow_multiple=False)
                    for expression in expressions
                )
            )
        except (CompileError, EvaluationError):
            return None

    def _count_allocated(self, matching: _MatchingDevices, view: NodeView) -> IntArray:
        allocated = np.zeros_like(matching.total)
        is_in_use = self._allocator.allocated_devices.is_in_use
        for selection, devices in matching.selected_devices:
            count = sum(map(is_in_use, devices))
            rows = _find_node_rows(selection, view) if count else None
            if rows is not None:
                allocated[rows] += count
        allocated[matching.failed_rows] = 0
        return allocated


def _group_by_selection(compiled_slice: CompiledSlice) -> Sequence[tuple[NodeSelection, tuple[SliceDevice, ...]]]:
    """Return the devices of the slice with the selection of their nodes."""
    if not compiled_slice.per_device_node_selection:
        return ((compiled_slice.node_selection or NodeSelection(all_nodes=True), compiled_slice.devices),)
    return tuple((device.node_selection, (device,)) for device in compiled_slice.devices)


def _find_node_rows(node_selection: NodeSelection, view: NodeView) -> RowsOrMask | None:
    """Return the nodes that *node_selection* selects; None if its selector is invalid."""
    if node_selection.all_nodes:
        return np.ones(len(view), dtype=np.bool_)
    if node_selection.node_name:
        row = view.snapshot.row(node_selection.node_name)
        return np.array([] if row is None else [row], dtype=np.int64)
    if node_selection.compiled_selector is None:
        return None if node_selection.error else np.zeros(len(view), dtype=np.bool_)
    return match_node_selector(view, node_selection.compiled_selector)


@dataclass(frozen=True, slots=True)
class DeviceBackedResource(ScoredResource):
    """A scored resource that is backed by DRA devices on the nodes that have no allocatable amount of it.

    Attributes:
        device_counts: the numbers of devices of the resource's device class, by row.
    """

    device_counts: DeviceCounts = field(kw_only=True)

    def allocatable(self, nodes: NodeView) -> IntArray:
        """Return each node's allocatable amount; where it is 0, the number of devices. Do not modify the result."""
        amounts = ScoredResource.allocatable(self, nodes)
        return np.where(amounts == 0, nodes.take(self.device_counts.total), amounts)

    def requested(self, nodes: NodeView) -> IntArray:
        """Return each node's requested amount. Do not modify the result.

        On nodes where devices back the resource, the amount is the number of allocated devices.
        """
        uses_devices = (ScoredResource.allocatable(self, nodes) == 0) & (nodes.take(self.device_counts.total) > 0)
        return np.where(uses_devices, nodes.take(self.device_counts.allocated), ScoredResource.requested(self, nodes))

    def requested_and_allocatable(self, nodes: NodeView, row: int) -> tuple[int, int]:  # noqa: ARG002  the base class needs *row*
        """Return the requested and allocatable amounts of *row*, the only row of *nodes*."""
        return self.requested(nodes).item(), self.allocatable(nodes).item()


class DeviceBackedResourceBuilder:
    """Builds a `DeviceBackedResource` for each scored resource that has a device class.

    Attributes:
        read_kinds: the kinds that the counts of devices depend on; empty if devices cannot back a scored resource.
    """

    def __init__(self, args: PluginArgs[Any], specs: Sequence[ResourceSpec]) -> None:
        self._extended_resource_positions = [
            position for position, spec in enumerate(specs) if is_dra_extended_resource(spec.name)
        ]
        has_devices = "DRAExtendedResource" in args.gates
        self._counter = DeviceCounter(Features(args.gates), args.shared_state) if has_devices else None
        self.read_kinds: tuple[type[KubernetesObject], ...] = (
            (ResourceSlice, ResourceClaim) if self._counter and self._extended_resource_positions else ()
        )

    def make_cache_key(self, requests: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return *requests* as the cache key of a score; None if devices may back a requested resource."""
        has_dra_requests = self._counter is not None and any(
            requests[position] for position in self._extended_resource_positions
        )
        return None if has_dra_requests else requests

    def replace_device_backed(
        self, resources: Sequence[ScoredResource], snapshot: Snapshot
    ) -> tuple[ScoredResource, ...]:
        """Return *resources*, with a `DeviceBackedResource` in place of each resource that has a device class."""
        if self._counter is None or not self._extended_resource_positions:
            return tuple(resources)
        class_by_resource = get_class_by_resource(snapshot)
        resource_names = snapshot.symbols.resources
        return tuple(
            self._replace_if_device_backed(
                resource, class_by_resource.get(resource_names[resource.resource_id]), snapshot
            )
            for resource in resources
        )

    def _replace_if_device_backed(
        self, resource: ScoredResource, device_class: DeviceClass | None, snapshot: Snapshot
    ) -> ScoredResource:
        if device_class is None or self._counter is None:
            return resource
        counts = self._counter.count_devices(device_class, snapshot)
        return DeviceBackedResource(
            resource.resource_id, resource.weight, resource.request, resource.nonzero_index, device_counts=counts
        )
