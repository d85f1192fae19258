"""Devices of one counter set are allocated together only if they have a compatibility group in common."""

from typing import Any

import pytest

from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.dra.allocated_devices import AllocatedDevices
from extender.dra.device_pools import PoolDevice
from extender.dra.features import Features
from extender.dra.resource_slices import SliceDevice
from extender.dra.shared_counters import CommonGroups, CounterAllocator
from tests.build import make_cluster, make_node
from tests.unit.dra.builders import make_allocator, make_slice

GATES = {"DRADeviceCompatibilityGroups": True}
CARD = {"name": "card", "counters": {"slots": {"value": "2"}}}
NO_GROUPS: frozenset[str] = frozenset()
A, B, AB = frozenset("a"), frozenset("b"), frozenset("ab")


@pytest.mark.parametrize(
    ("first", "second", "is_admitted"),
    [
        (NO_GROUPS, NO_GROUPS, True),
        (NO_GROUPS, A, False),
        (A, NO_GROUPS, False),
        (A, A, True),
        (A, B, False),
        (AB, B, True),
    ],
)
def test_a_device_is_admitted_beside_devices_with_a_common_group(
    first: frozenset[str], second: frozenset[str], is_admitted: bool
) -> None:
    """Source: experimental/compatibility_groups.go, compatibilityGroupIntersection.admits (1.37)."""
    assert CommonGroups(not first, first).admits(second) is is_admitted


def test_the_common_groups_are_those_of_all_devices() -> None:
    common = CommonGroups(without_groups=False, groups=AB).add(A)
    assert (common.admits(A), common.admits(B)) == (True, False)
    assert common.add(NO_GROUPS) == common
    assert CommonGroups(without_groups=True, groups=NO_GROUPS).add(A).without_groups


def consume(groups: str, slots: str = "1") -> dict[str, Any]:
    use = {"counterSet": "card", "counters": {"slots": {"value": slots}}, "compatibilityGroups": list(groups)}
    return {"consumesCounters": [use]}


def make_slices(devices: dict[str, Any]) -> list[Any]:
    """Make the two slices of a pool: one with devices, and one with their counters."""
    return [
        make_slice({"name": "a", "count": 2, "devices": devices}),
        make_slice({"name": "b", "count": 2, "counters": [CARD]}),
    ]


def test_a_device_that_is_released_restores_the_groups_before_it() -> None:
    devices = {"a": consume("a"), "ab": consume("ab"), "b": consume("b"), "large": consume("ab", "3")}
    gates = FeatureGates(GATES, RELEASE_1_37)
    allocator = make_allocator(GATES, RELEASE_1_37)
    allocator.sync(make_cluster(*make_slices(devices)).snapshot())
    (pool,) = allocator.slice_index.get_pools_for_node(make_node("n1"))
    by_name: dict[str, SliceDevice] = {device.id[2]: device for device in pool.devices}
    counters = CounterAllocator(AllocatedDevices(consumable_capacity=True), Features(gates))
    assert counters.consume(by_name["ab"], pool)
    assert counters.consume(by_name["a"], pool)
    assert not counters.consume(by_name["b"], pool)
    counters.release(by_name["a"], pool)
    assert not counters.consume(by_name["large"], pool)  # the groups allow it, the counters do not
    assert counters.consume(by_name["b"], pool)


@pytest.mark.parametrize(("gates", "pool_count"), [(GATES, 1), ({}, 0)])
def test_slices_with_groups_do_not_count_without_the_gate(gates: dict[str, bool], pool_count: int) -> None:
    allocator = make_allocator(gates, RELEASE_1_37)
    allocator.sync(make_cluster(*make_slices({"a": consume("a")})).snapshot())
    pools = allocator.slice_index.get_pools_for_node(make_node("n1"))
    assert len([pool for pool in pools if pool.is_usable]) == pool_count


def test_the_counters_limit_how_many_devices_may_fit_together() -> None:
    """Two slots are available for devices that take one slot, two, two and none."""
    slots = {"one": "1", "two": "2", "also-two": "2", "none": "0"}
    devices = {name: consume("", amount) for name, amount in slots.items()} | {"shared": consume("", "2"), "free": {}}
    devices["shared"]["allowMultipleAllocations"] = True
    cluster = make_cluster(make_node("n"), *make_slices(devices))
    allocator = make_allocator(release=RELEASE_1_37)
    allocator.sync(cluster.snapshot())
    (pool,) = allocator.slice_index.get_pools_for_node(cluster.snapshot().nodes[0])
    by_name = {device.id[2]: PoolDevice(device, pool) for device in pool.devices}
    counters = CounterAllocator(AllocatedDevices(consumable_capacity=True), Features(FeatureGates({})))
    assert counters.count_consumable(list(by_name.values())) == 6  # no counters of the pool are known yet
    assert counters.consume(*by_name.pop("none"))
    assert [counters.count_consumable([by_name[name] for name in names]) for names in (
        ["one"], ["two", "also-two"], ["one", "two", "also-two"], ["one", "two", "shared", "free"],
    )] == [1, 1, 1, 3]  # fmt: skip
    assert counters.consume(*by_name["two"])
    assert counters.count_consumable([by_name[name] for name in ("one", "also-two", "shared", "free")]) == 2
