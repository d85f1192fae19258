"""Compatibility groups of partitionable devices: devices of one counter set that may be allocated together.

Source: dynamic-resource-allocation/structured/internal/experimental/compatibility_groups.go,
compatibilityGroupIntersection; dynamic-resource-allocation/structured/internal/experimental/allocator_experimental.go,
allocator.checkAndConsumeCompatibilityGroups, allocator.compatibilityGroupsBaselineForPool (1.37).
"""

from typing import NamedTuple

from extender.dra.allocated_devices import AllocatedDevices
from extender.dra.device_pools import Pool
from extender.dra.resource_slices import PoolId, SliceDevice

_CounterSetKey = tuple[PoolId, str]
"""A pool and the name of its counter set."""


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

    __slots__ = ("_allocated", "_allocated_devices", "_selected")

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
        for device in (*pool.devices, *pool.devices_not_targeting_node):
            if not device.consumed_counters or not self._allocated_devices.is_in_use(device.id):
                continue
            for name, _, groups in device.consumed_counters:
                common_groups[name] = _add_groups(common_groups.get(name), groups)
        return common_groups
