"""Device pools of one node, in allocation order.

Only the newest generation of a pool is used, and only if all its slices exist. Pools are ordered by driver and name.
Without DRADeviceCompatibilityGroups, slices with compatibility groups do not count: their pool is incomplete.
Pools with binding conditions come last.
Slices are ordered by name, so a driver controls which devices are tried first.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate (1.36).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.api.kinds.node import Node
from extender.dra.errors import AllocationError
from extender.dra.features import Features
from extender.dra.resource_slices import CompiledSlice, CounterAmounts, PoolId, SliceDevice


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The part of a resource pool that one node needs.

    Attributes:
        id: driver and pool name.
        incomplete: whether slices are missing.
        invalid_reason: the reason why its slices are invalid; empty if they are valid.
        devices: the devices of slices that target the node, in allocation order.
        devices_not_targeting_node: the devices of the other slices, which also consume the pool's counters.
        counter_sets: the shared counters by name of the set.
        is_shared: whether this object serves several nodes, and a search for devices has the same result for them.
    """

    id: PoolId
    incomplete: bool = False
    invalid_reason: str = ""
    devices: tuple[SliceDevice, ...] = ()
    devices_not_targeting_node: tuple[SliceDevice, ...] = ()
    counter_sets: Mapping[str, CounterAmounts] = field(default_factory=dict)
    is_shared: bool = False

    @property
    def name(self) -> str:
        """The pool's name in error messages."""
        return "/".join(self.id)

    @property
    def is_usable(self) -> bool:
        """Whether devices may be allocated from the pool."""
        return not self.incomplete and not self.invalid_reason

    @property
    def has_binding_conditions(self) -> bool:
        """Whether a device has binding conditions. Such a pool is tried last."""
        return any(device.device.binding_conditions for device in self.devices)


class PoolDevice(NamedTuple):
    """A device and its pool."""

    device: SliceDevice
    pool: Pool


class SliceIndex:
    """The slices of a snapshot, indexed by node and by pool.

    Attributes:
        slices: the compiled slices by name, in the order in which they were added.
    """

    def __init__(self, slices: Mapping[str, CompiledSlice], features: Features) -> None:
        self.slices, self._features = slices, features
        self._slices_by_node: dict[str, list[CompiledSlice]] = {}
        self._slices_not_indexed_by_node: list[CompiledSlice] = []
        self._slices_by_pool: dict[PoolId, list[CompiledSlice]] = {}
        for compiled_slice in slices.values():
            self._slices_by_pool.setdefault(compiled_slice.pool_id, []).append(compiled_slice)
            if not self._is_usable(compiled_slice):
                continue
            node_name = compiled_slice.resource_slice.spec.node_name
            if node_name and (features.restricts_counter_slices or not compiled_slice.counter_sets):
                self._slices_by_node.setdefault(node_name, []).append(compiled_slice)
            else:
                self._slices_not_indexed_by_node.append(compiled_slice)
        self._pool_cache: dict[tuple[PoolId, tuple[str, ...], bool], Pool] = {}
        self._pools_by_node: dict[str, tuple[Node, tuple[Pool, ...]]] = {}

    @property
    def node_count(self) -> int:
        """The number of nodes whose pools are cached, also of removed nodes."""
        return len(self._pools_by_node)

    def _is_usable(self, compiled_slice: CompiledSlice) -> bool:
        """Return whether the slice counts. An unusable slice of a newer generation still replaces older ones."""
        return self._features.compatibility_groups or not compiled_slice.uses_compatibility_groups

    def get_pools_for_node(self, node: Node) -> tuple[Pool, ...]:
        """Return the pools with devices for *node*, in allocation order.

        Raises:
            AllocationError: a node selector of a slice is invalid.
        """
        cached_pools = self._pools_by_node.get(node.metadata.name)
        if cached_pools is not None and cached_pools[0] is node:
            return cached_pools[1]
        try:
            pools = self._gather_pools(node)
        except AllocationError as error:
            raise AllocationError(f"gather pool information: {error}") from error
        self._pools_by_node[node.metadata.name] = (node, pools)
        return pools

    def _gather_pools(self, node: Node) -> tuple[Pool, ...]:
        slices_by_pool: dict[PoolId, list[CompiledSlice]] = {}
        for compiled_slice in (*self._slices_by_node.get(node.metadata.name, ()), *self._slices_not_indexed_by_node):
            if not self._features.partitionable_devices and compiled_slice.uses_partitionable_devices:
                continue
            has_counters_for_all_nodes = compiled_slice.counter_sets and not self._features.restricts_counter_slices
            if has_counters_for_all_nodes or compiled_slice.targets_node(node):
                _add_newest_generation(slices_by_pool.setdefault(compiled_slice.pool_id, []), compiled_slice)
        pools = (self._find_or_build_pool(pool_id, slices) for pool_id, slices in slices_by_pool.items())
        return tuple(sorted(filter(None, pools), key=lambda pool: (pool.has_binding_conditions, pool.id)))

    def _find_or_build_pool(self, pool_id: PoolId, slices: Sequence[CompiledSlice]) -> Pool | None:
        """Return the pool of *slices*; None if its newest generation does not target the node."""
        generation, slice_count = slices[0].generation, slices[0].pool_slice_count
        generation_slices: Sequence[CompiledSlice] = slices
        if len(slices) != slice_count:
            pool_slices = self._slices_by_pool[pool_id]
            if any(compiled_slice.generation > generation for compiled_slice in pool_slices):
                return None
            generation_slices = [
                compiled_slice
                for compiled_slice in pool_slices
                if compiled_slice.generation == generation and self._is_usable(compiled_slice)
            ]
            if len(generation_slices) != slice_count:
                return Pool(pool_id, incomplete=True)
        slices_by_name = sorted(slices, key=lambda compiled_slice: compiled_slice.name)
        cache_key = (
            pool_id,
            tuple(compiled_slice.name for compiled_slice in slices_by_name),
            len(generation_slices) != len(slices),
        )
        pool = self._pool_cache.get(cache_key)
        if pool is None:
            other_slices = [compiled_slice for compiled_slice in generation_slices if compiled_slice not in slices]
            pool = self._pool_cache[cache_key] = _build_pool(
                pool_id, slices_by_name, other_slices, partitionable_devices=self._features.partitionable_devices
            )
        return pool


def _add_newest_generation(pool_slices: list[CompiledSlice], compiled_slice: CompiledSlice) -> None:
    """Add a slice to *pool_slices*, which keeps only the newest generation."""
    if pool_slices and compiled_slice.generation < pool_slices[0].generation:
        return
    if pool_slices and compiled_slice.generation > pool_slices[0].generation:
        pool_slices.clear()
    pool_slices.append(compiled_slice)


def _build_pool(
    pool_id: PoolId,
    slices: Sequence[CompiledSlice],
    other_slices: Sequence[CompiledSlice],
    *,
    partitionable_devices: bool,
) -> Pool:
    device_slices = [
        compiled_slice for compiled_slice in slices if not (partitionable_devices and compiled_slice.counter_sets)
    ]
    devices = tuple(device for compiled_slice in device_slices for device in compiled_slice.devices)
    duplicate = _find_duplicate(device.device.name for device in devices)
    if duplicate is not None:
        return Pool(pool_id, invalid_reason=f"duplicate device name {duplicate}")
    is_shared = not any(
        compiled_slice.resource_slice.spec.node_name
        or compiled_slice.per_device_node_selection
        or compiled_slice.skipped_operations
        for compiled_slice in slices
    )
    if not partitionable_devices:
        return Pool(pool_id, devices=devices, is_shared=is_shared)
    counter_sets: dict[str, CounterAmounts] = {}
    for compiled_slice in (*slices, *other_slices):
        for name, counters in compiled_slice.counter_sets:
            if name in counter_sets:
                return Pool(pool_id, invalid_reason=f"duplicate counter set name {name}")
            counter_sets[name] = counters
    for checked_slices in (slices, other_slices):
        error = _find_unknown_counter(counter_sets, checked_slices)
        if error:
            return Pool(pool_id, invalid_reason=error)
    devices_not_targeting_node = tuple(device for compiled_slice in other_slices for device in compiled_slice.devices)
    return Pool(
        pool_id,
        devices=devices,
        devices_not_targeting_node=devices_not_targeting_node,
        counter_sets=counter_sets,
        is_shared=is_shared,
    )


def _find_duplicate(names: Iterable[str]) -> str | None:
    seen_names: set[str] = set()
    for name in names:
        if name in seen_names:
            return name
        seen_names.add(name)
    return None


def _find_unknown_counter(counter_sets: Mapping[str, CounterAmounts], slices: Iterable[CompiledSlice]) -> str:
    for compiled_slice in slices:
        for device in compiled_slice.devices:
            for consumption in device.consumed_counters:
                counters = counter_sets.get(consumption.counter_set)
                if counters is None:
                    return f"counter set {consumption.counter_set} not found"
                for name in consumption.counters:
                    if name not in counters:
                        return f"counter {name} not found in counter set {consumption.counter_set}"
    return ""
