"""Shared counters of partitionable devices: the available counters of a pool, and those that a search consumes.

As upstream, release 1.36 indexes counters by the pool name without the driver. Later releases include the driver.
Devices of one counter set may be allocated together only if they have a compatibility group in common.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, allocator (1.36, 1.37);
dynamic-resource-allocation/structured/internal/experimental/compatibility_groups.go, compatibilityGroupIntersection;
dynamic-resource-allocation/structured/internal/experimental/allocator_experimental.go,
allocator.checkAndConsumeCompatibilityGroups, allocator.compatibilityGroupsBaselineForPool (1.37).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from extender.dra.allocated_devices import AllocatedDevices
from extender.dra.device_pools import Pool, PoolDevice
from extender.dra.features import Features
from extender.dra.resource_slices import CounterAmounts, CounterConsumption, PoolId, SliceDevice

_CounterSetKey = tuple[PoolId, str]
"""A pool and the name of its counter set."""


CounterSets = dict[str, CounterAmounts]
"""Counters in nano units, by counter set and counter name."""


def list_used_counters(pool: Pool, allocated_devices: AllocatedDevices) -> Iterator[CounterConsumption]:
    """Yield the counters that the devices of *pool* consume that are allocated, or of which a share is."""
    for device in (*pool.devices, *pool.devices_not_targeting_node):
        if device.consumed_counters and allocated_devices.is_in_use(device.id):
            yield from device.consumed_counters


class CommonGroups(NamedTuple):
    """The groups that all devices of a counter set have in common; at least one device uses the set.

    Attributes:
        without_groups: whether no device has groups.
        groups: the common groups of the devices.
    """

    without_groups: bool
    groups: frozenset[str]

    def admits(self, groups: frozenset[str]) -> bool:
        """Return whether a device with *groups* may be allocated beside the devices of the counter set."""
        if not groups or self.without_groups:
            return self.without_groups and not groups
        return not self.groups.isdisjoint(groups)

    def add(self, groups: frozenset[str]) -> "CommonGroups":
        """Return the common groups with a device that has *groups*."""
        if self.without_groups or not groups:
            return self
        return CommonGroups(without_groups=False, groups=self.groups & groups)


def _add_groups(common: CommonGroups | None, groups: frozenset[str]) -> CommonGroups:
    return CommonGroups(not groups, groups) if common is None else common.add(groups)


class CompatibilityGroups:
    """The common groups of each counter set in one search: of the allocated devices and of those that it selects."""

    def __init__(self, allocated_devices: AllocatedDevices) -> None:
        self._allocated_devices = allocated_devices
        self._allocated: dict[PoolId, dict[str, CommonGroups]] = {}
        self._selected: dict[_CounterSetKey, list[CommonGroups]] = {}

    def add(self, device: SliceDevice, pool: Pool) -> bool:
        """Add *device* to each of its counter sets if all of them admit it. Return whether they do."""
        added_keys: list[_CounterSetKey] = []
        for consumption in device.consumed_counters:
            key = (pool.id, consumption.counter_set)
            states = self._selected.setdefault(key, [])
            common = states[-1] if states else self._find_allocated(pool).get(consumption.counter_set)
            if common is not None and not common.admits(consumption.compatibility_groups):
                self._remove(added_keys)
                return False
            states.append(_add_groups(common, consumption.compatibility_groups))
            added_keys.append(key)
        return True

    def remove(self, device: SliceDevice, pool: Pool) -> None:
        """Remove *device*, which was added last."""
        self._remove([(pool.id, consumption.counter_set) for consumption in device.consumed_counters])

    def _remove(self, keys: list[_CounterSetKey]) -> None:
        for key in keys:
            self._selected[key].pop()

    def _find_allocated(self, pool: Pool) -> dict[str, CommonGroups]:
        """Return the common groups of the allocated devices of *pool*, by counter set."""
        common_groups = self._allocated.get(pool.id)
        if common_groups is not None:
            return common_groups
        common_groups = self._allocated[pool.id] = {}
        for name, _, groups in list_used_counters(pool, self._allocated_devices):
            common_groups[name] = _add_groups(common_groups.get(name), groups)
        return common_groups


def calculate_available_counters(pool: Pool, allocated_devices: AllocatedDevices) -> CounterSets:
    """Return the counters of *pool* minus those of allocated devices. The result may be negative."""
    counters_by_set = {name: dict(counters) for name, counters in pool.counter_sets.items()}
    for consumption in list_used_counters(pool, allocated_devices):
        counters = counters_by_set.get(consumption.counter_set, {})
        for name, amount in consumption.counters.items():
            if name in counters:
                counters[name] -= amount
    return counters_by_set


class CounterAllocator:
    """Consumes and releases counters for one search.

    With compatibility groups, devices may consume counters of one set only if they have a group in common. The
    available counters of a pool are calculated when its first device is tried.
    """

    def __init__(self, allocated_devices: AllocatedDevices, features: Features) -> None:
        self._allocated_devices = allocated_devices
        self._by_driver = features.release.separates_counters_by_driver
        self._available: dict[PoolId, CounterSets] = {}
        self._consumed: dict[PoolId, CounterSets] = {}
        self._groups = CompatibilityGroups(allocated_devices) if features.compatibility_groups else None

    def _get_key(self, pool: Pool) -> PoolId:
        driver, name = pool.id
        return (driver if self._by_driver else "", name)

    def consume(self, device: SliceDevice, pool: Pool) -> bool:
        """Consume the counters of *device* if its groups allow it and the pool has enough. Return whether it did."""
        if self._groups is not None and not self._groups.add(device, pool):
            return False
        if self._consume_counters(device, pool):
            return True
        if self._groups is not None:
            self._groups.remove(device, pool)
        return False

    def _consume_counters(self, device: SliceDevice, pool: Pool) -> bool:
        key = self._get_key(pool)
        available = self._available.get(key)
        if available is None:
            available = self._available[key] = calculate_available_counters(pool, self._allocated_devices)
        consumed_counters = self._consumed.setdefault(key, {})
        self._add_amounts(device, consumed_counters, 1)
        for set_name, counters in available.items():
            consumed_set = consumed_counters.get(set_name, {})
            if any(amount < consumed_set.get(counter, 0) for counter, amount in counters.items()):
                self._add_amounts(device, consumed_counters, -1)
                return False
        return True

    def count_consumable(self, devices: Sequence[PoolDevice]) -> int:
        """Return an upper bound of the number of *devices* whose counters can be consumed together."""
        count, consumptions = len(devices), dict[tuple[PoolId, str], list[CounterAmounts]]()
        for device, pool in devices:
            if device.consumed_counters and not device.allow_multiple_allocations:
                first = device.consumed_counters[0]
                consumptions.setdefault((self._get_key(pool), first.counter_set), []).append(first.counters)
        for (key, set_name), amounts in consumptions.items():
            consumed_set = self._consumed.get(key, {}).get(set_name, {})
            available_set = self._available.get(key, {}).get(set_name, {})
            count -= max(
                (
                    len(amounts) - _count_fitting(available - consumed_set.get(name, 0), name, amounts)
                    for name, available in available_set.items()
                ),
                default=0,
            )
        return count

    def release(self, device: SliceDevice, pool: Pool) -> None:
        """Release the counters of *device*, the last one that consumed counters."""
        if self._groups is not None:
            self._groups.remove(device, pool)
        self._add_amounts(device, self._consumed.setdefault(self._get_key(pool), {}), -1)

    @staticmethod
    def _add_amounts(device: SliceDevice, counter_sets: CounterSets, sign: int) -> None:
        for consumption in device.consumed_counters:
            counters = counter_sets.setdefault(consumption.counter_set, {})
            for name, amount in consumption.counters.items():
                counters[name] = counters.get(name, 0) + sign * amount


def _count_fitting(available: int, counter: str, amounts: Iterable[CounterAmounts]) -> int:
    """Return the largest number of *amounts* that *available* of a *counter* suffices for."""
    sums = accumulate(sorted(amount.get(counter, 0) for amount in amounts))
    return max((count for count, total in enumerate(sums, 1) if total <= available), default=0)
