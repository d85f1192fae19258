"""Shared counters of partitionable devices: the available counters of a pool, and those that a search consumes.

As upstream, release 1.36 indexes counters by the pool name without the driver. Later releases include the driver.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, allocator (1.36, 1.37).
"""

from extender.dra.allocated_devices import AllocatedDevices
from extender.dra.compatibility_groups import CompatibilityGroups
from extender.dra.device_pools import Pool
from extender.dra.features import Features
from extender.dra.resource_slices import CounterAmounts, PoolId, SliceDevice

CounterSets = dict[str, CounterAmounts]
"""Counters in nano units, by counter set and counter name."""


def calculate_available_counters(pool: Pool, allocated_devices: AllocatedDevices) -> CounterSets:
    """Return the counters of *pool* minus those of allocated devices. The result may be negative."""
    counters_by_set = {name: dict(counters) for name, counters in pool.counter_sets.items()}
    for device in (*pool.devices, *pool.devices_not_targeting_node):
        if not device.consumed_counters or not allocated_devices.is_in_use(device.id):
            continue
        for consumption in device.consumed_counters:
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

    __slots__ = ("_allocated_devices", "_available", "_by_driver", "_consumed", "_groups")

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
