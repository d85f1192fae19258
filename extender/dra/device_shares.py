"""The free share of each physical device of a node, in thousandths, before and after an allocation.

A device with the measured capacity that allows multiple allocations has the share that claims have not consumed.
Devices that consume one counter set are partitions of one physical device. Its share is what is left of the measured
counter of the set. A partition that several claims share counts as used. Any other device is entirely free or in use.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from extender.api.kinds.devices import DeviceRequestAllocationResult
from extender.api.kinds.node import Node
from extender.dra.allocated_devices import AllocatedDevices
from extender.dra.allocator import Allocator, NodeAllocation
from extender.dra.cel.values import to_nanos
from extender.dra.device_pools import Pool
from extender.dra.resource_slices import CounterAmounts, DeviceId, PoolId, SliceDevice
from extender.dra.shared_counters import calculate_available_counters, list_used_counters

THOUSANDTHS: Final = 1000
"""The share of a whole device."""

_DeviceKey = DeviceId | tuple[PoolId, str]
"""The key of a physical device: the id of the device, or the pool and the counter set of its partitions."""


class _Usage(NamedTuple):
    """The total amount of a physical device and the used amount, in nano units; a device without amounts has 1."""

    total: int
    used: int

    def compute_free(self, added: int = 0) -> int:
        """Return the free share in thousandths, after *added* more is used."""
        return max(0, self.total - self.used - added) * THOUSANDTHS // self.total


class DeviceShares:
    """Measures the devices of some drivers.

    *resources_by_driver* has the name of the measured capacity or counter, by driver.
    """

    def __init__(self, allocator: Allocator, resources_by_driver: Mapping[str, str]) -> None:
        self._allocator = allocator
        self._resources = resources_by_driver
        self._totals_version: tuple[object, ...] | None = None
        self._devices: dict[DeviceId, SliceDevice] = {}
        self._counter_totals: dict[tuple[PoolId, str], CounterAmounts] = {}

    def find_pools(self, node: Node) -> tuple[Pool, ...]:
        """Return the usable pools of the drivers with devices for *node*.

        Raises:
            AllocationError: a node selector of a slice is invalid.
        """
        pools = self._allocator.slice_index.get_pools_for_node(node)
        return tuple(pool for pool in pools if pool.is_usable and pool.id[0] in self._resources)

    def measure(self, node: Node, allocation: NodeAllocation | None = None) -> tuple[int, ...]:
        """Return the free share of each physical device of *node*, after *allocation*; the order never changes.

        Raises:
            AllocationError: a node selector of a slice is invalid.
        """
        usages = dict(self._list_usages(node))
        added = dict.fromkeys(usages, 0)
        for results in allocation or ():
            for device, request, consumed_capacity in results:
                if device.id[0] not in self._resources or request.admin_access:
                    continue
                consumed = None if consumed_capacity is None else consumed_capacity.get(self._resources[device.id[0]])
                for key, amount in self._list_amounts(device, None if consumed is None else consumed.nanos):
                    added[key] = added.get(key, 0) + amount
        return tuple(usage.compute_free(added[key]) for key, usage in usages.items())

    def measure_results(self, results: Sequence[DeviceRequestAllocationResult]) -> tuple[int, ...]:
        """Return the share of each physical device that an allocation in a claim's status takes, if it takes one."""
        self._sync()
        taken: dict[_DeviceKey, int] = {}
        for result in results:
            resource = self._resources.get(result.driver)
            device = self._devices.get((result.driver, result.pool, result.device))
            if resource is None or device is None or result.admin_access:
                continue
            consumed = result.consumed_capacity.get(resource)
            for key, amount in self._list_amounts(device, None if consumed is None else to_nanos(consumed)):
                taken[key] = taken.get(key, 0) + amount * THOUSANDTHS // self._find_total(device, key)
        return tuple(taken.values())

    def _list_usages(self, node: Node) -> Iterator[tuple[_DeviceKey, _Usage]]:
        self._sync()
        allocated = self._allocator.allocated_devices
        for pool in self.find_pools(node):
            resource = self._resources[pool.id[0]]
            available = calculate_available_counters(pool, allocated) if pool.counter_sets else {}
            used_counters = list_used_counters(pool, allocated) if pool.counter_sets else ()
            used_sets = {consumption.counter_set for consumption in used_counters}
            for device in pool.devices:
                if device.slice.per_device_node_selection and not device.node_selection.matches(node):
                    continue
                for consumption in device.consumed_counters:
                    name = consumption.counter_set
                    total = pool.counter_sets[name].get(resource, 0)
                    usage = _Usage(total, total - available[name][resource]) if total else _Usage(1, name in used_sets)
                    yield (pool.id, name), usage
                if not device.consumed_counters:
                    yield device.id, _measure_device(device, resource, allocated)

    def _list_amounts(self, device: SliceDevice, consumed: int | None) -> Iterator[tuple[_DeviceKey, int]]:
        """Yield the amount that an allocation of *device* uses of each physical device.

        *consumed* is the consumed capacity in nano units; None if the device is not shared.
        """
        resource = self._resources[device.id[0]]
        if not device.consumed_counters:
            is_measured = consumed is not None and _is_measured(device, resource)
            yield device.id, consumed if is_measured and consumed is not None else self._find_total(device, device.id)
            return
        if device.allow_multiple_allocations and self._allocator.allocated_devices.is_in_use(device.id):
            return  # its counters are used already
        for consumption in device.consumed_counters:
            key = device.slice.pool_id, consumption.counter_set
            amounts = self._counter_totals.get(key, {})
            yield key, consumption.counters.get(resource, 0) if amounts.get(resource) else 1

    def _find_total(self, device: SliceDevice, key: _DeviceKey) -> int:
        resource = self._resources[device.id[0]]
        if len(key) == 2:
            return self._counter_totals.get(key, {}).get(resource, 0) or 1
        return device.capacities[resource].value.nanos if _is_measured(device, resource) else 1

    def _sync(self) -> None:
        if self._totals_version == self._allocator.slice_and_class_version:
            return
        self._totals_version = self._allocator.slice_and_class_version
        slices = self._allocator.slice_index.slices.values()
        self._devices = {device.id: device for part in slices for device in part.devices}
        self._counter_totals = {(part.pool_id, name): amounts for part in slices for name, amounts in part.counter_sets}


def _is_measured(device: SliceDevice, resource: str) -> bool:
    """Return whether claims share *device* and its capacity *resource* measures it."""
    capacity = device.capacities.get(resource) if device.allow_multiple_allocations else None
    return capacity is not None and capacity.value.nanos > 0


def _measure_device(device: SliceDevice, resource: str, allocated: AllocatedDevices) -> _Usage:
    """Return the usage of a device without counters."""
    if not _is_measured(device, resource):
        return _Usage(1, int(allocated.is_in_use(device.id)))
    total = device.capacities[resource].value.nanos
    used = total if allocated.is_allocated(device.id) else allocated.get_consumed_capacity(device.id).get(resource, 0)
    return _Usage(total, used)
