"""Counts of the devices of a class on each node: all devices, and allocated devices.

The counts are used to score extended resources served by devices. As upstream, all slices count, including slices of
incomplete pools and old generations.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
resourceAllocationScorer.calculateDRAResourceTotals (1.36).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from extender.api.kinds.devices import DeviceClass
from extender.basics.clock import SystemClock
from extender.cache.node_matching import match_node_selector
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.dra.allocator import Allocator
from extender.dra.cel.environment import CompileError, EvaluationError
from extender.dra.features import Features
from extender.dra.resource_slices import CompiledSlice, NodeSelection, SliceDevice

RowsOrMask = BoolArray | IntArray
"""Row numbers, or a mask over all rows."""


class DeviceCounts(NamedTuple):
    """The number of devices of a class by row: int64, shape (number of nodes,). `allocated` includes shared devices."""

    total: IntArray
    allocated: IntArray


class DeviceCounter:
    """Counts the devices in the snapshots of one cache. Each plugin has its own counter. It is not thread-safe."""

    def __init__(self, features: Features) -> None:
        self._features = features
        self._allocator = Allocator(features, SystemClock())
        self._cache: dict[str, tuple[object, DeviceCounts]] = {}

    def count_devices(self, device_class: DeviceClass, snapshot: Snapshot) -> DeviceCounts:
        """Count the devices of *device_class*. The counts are 0 on nodes where a selector of the class fails."""
        allocator = self._allocator
        allocator.sync(snapshot)
        cache_key = (
            *allocator.slice_and_class_version,
            allocator.allocated_devices.version,
            snapshot.history_id,
            snapshot.node_log_position,
        )
        name = device_class.metadata.name
        cached_counts = self._cache.get(name)
        if cached_counts is None or cached_counts[0] != cache_key:
            cached_counts = self._cache[name] = (cache_key, self._count_per_node(device_class, snapshot))
        return cached_counts[1]

    def _count_per_node(self, device_class: DeviceClass, snapshot: Snapshot) -> DeviceCounts:
        node_count = len(snapshot)
        view = snapshot.view()
        counts = DeviceCounts(np.zeros(node_count, dtype=np.int64), np.zeros(node_count, dtype=np.int64))
        failed_rows = np.zeros(node_count, dtype=np.bool_)
        for compiled_slice in self._allocator.slice_index.slices.values():
            for rows, devices in _group_by_nodes(compiled_slice, view):
                if rows is None:
                    failed_rows[:] = True
                    continue
                matching_counts = self._count_matching(devices, device_class)
                if matching_counts is None:
                    failed_rows[rows] = True
                else:
                    counts.total[rows] += matching_counts[0]
                    counts.allocated[rows] += matching_counts[1]
        counts.total[failed_rows] = 0
        counts.allocated[failed_rows] = 0
        return counts

    def _count_matching(self, devices: Iterable[SliceDevice], device_class: DeviceClass) -> tuple[int, int] | None:
        """Return the number of *devices* that match the class, and the number in use; None if a selector fails."""
        total_count = in_use_count = 0
        expressions = [selector.cel.expression for selector in device_class.spec.selectors if selector.cel is not None]
        reads_lists = self._features.reads_list_attributes
        for device in devices:
            try:
                matches = all(
                    device.matches_expression(expression, reads_lists=reads_lists, allow_multiple=False)
                    for expression in expressions
                )
            except (CompileError, EvaluationError):
                return None
            if matches:
                total_count += 1
                in_use_count += self._allocator.allocated_devices.is_in_use(device.id)
        return total_count, in_use_count


def _group_by_nodes(
    compiled_slice: CompiledSlice, view: NodeView
) -> Iterable[tuple[RowsOrMask | None, tuple[SliceDevice, ...]]]:
    """Return node rows, each with the slice's devices on them. The rows are None if a node selector is invalid."""
    if not compiled_slice.per_device_node_selection:
        all_nodes = NodeSelection(all_nodes=True)
        return ((_find_node_rows(compiled_slice.node_selection or all_nodes, view), compiled_slice.devices),)
    return tuple((_find_node_rows(device.node_selection, view), (device,)) for device in compiled_slice.devices)


def _find_node_rows(node_selection: NodeSelection, view: NodeView) -> RowsOrMask | None:
    if node_selection.all_nodes:
        return np.ones(len(view), dtype=np.bool_)
    if node_selection.node_name:
        row = view.snapshot.row(node_selection.node_name)
        return np.array([] if row is None else [row], dtype=np.int64)
    if node_selection.compiled_selector is None:
        return None if node_selection.error else np.zeros(len(view), dtype=np.bool_)
    return match_node_selector(view, node_selection.compiled_selector)
