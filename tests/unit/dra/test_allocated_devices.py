"""Allocated devices: when an in-flight allocation ends."""

from collections.abc import Callable

import msgspec
import pytest

from extender.api.kinds.devices import ResourceClaim
from extender.cache.cache import Cache
from extender.dra.allocated_devices import AllocatedDevices
from tests.unit.dra.builders import make_allocated_claim, make_cluster_with_devices

DEVICE = ("gpu.example.com", "pool", "a")
ALLOCATED = make_allocated_claim("c", ["a"])
UID = ALLOCATED.metadata.uid


def make_version(resource_version: str, *, allocated: bool = False) -> ResourceClaim:
    """Return the claim with a resource version."""
    replace = msgspec.structs.replace
    status = ALLOCATED.status if allocated else replace(ALLOCATED.status, allocation=None)
    return replace(ALLOCATED, metadata=replace(ALLOCATED.metadata, resource_version=resource_version), status=status)


def make_in_flight(cache: Cache) -> AllocatedDevices:
    """Return the devices with the claim's device in flight."""
    devices = AllocatedDevices(consumable_capacity=False)
    devices.sync(cache.snapshot())
    assert ALLOCATED.status.allocation is not None
    devices.add_in_flight(UID, ALLOCATED.status.allocation)
    return devices


def add(*versions: ResourceClaim) -> Callable[[Cache], object]:
    return lambda cache: [cache.add_or_update_object(version) for version in versions]


def add_and_remove(cache: Cache) -> None:
    cache.add_or_update_object(make_version("9", allocated=True))
    cache.remove_object(ResourceClaim, "default/c")


CHANGES = {
    "nothing yet": (add(), True),
    "an update that is older than the write": (add(make_version("6")), True),
    "the write": (add(make_version("7", allocated=True)), False),
    "the write, and then the deallocation": (add(make_version("7", allocated=True), make_version("8")), False),
    "the write, and then the deletion": (add_and_remove, False),
}


@pytest.mark.parametrize(("change", "in_flight"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("marked_late", [False, True], ids=["response first", "watch first"])
def test_a_written_allocation_ends_when_the_snapshot_is_not_older(
    change: Callable[[Cache], None], in_flight: bool, marked_late: bool
) -> None:
    cache = make_cluster_with_devices({"slices": []})
    cache.add_or_update_object(make_version("5"))
    devices = make_in_flight(cache)
    if not marked_late:
        devices.mark_written(UID, "default/c", "7", is_new_claim=False)
    change(cache)
    devices.sync(cache.snapshot())
    devices.mark_written(UID, "default/c", "7", is_new_claim=False)
    devices.sync(cache.snapshot())
    assert devices.is_in_flight(UID) is in_flight


def test_a_claim_that_is_not_written_stays_in_flight_when_it_changes() -> None:
    cache = make_cluster_with_devices({"slices": []})
    cache.add_or_update_object(make_version("5"))
    devices = make_in_flight(cache)
    cache.add_or_update_object(make_version("6"))
    devices.sync(cache.snapshot())
    assert devices.is_allocated(DEVICE)


def test_a_new_claim_stays_in_flight_until_a_snapshot_has_it() -> None:
    cache = make_cluster_with_devices({"slices": []})
    devices = make_in_flight(cache)
    devices.mark_written(UID, "default/c", "7", is_new_claim=True)
    devices.sync(cache.snapshot())
    assert devices.is_allocated(DEVICE)
    add_and_remove(cache)
    devices.sync(cache.snapshot())
    assert not devices.is_allocated(DEVICE)
    assert not devices.is_in_flight(UID)


@pytest.mark.parametrize(("list_version", "in_flight"), [("6", True), ("7", False)])
def test_a_new_claim_that_a_later_list_does_not_have_is_not_in_flight(list_version: str, in_flight: bool) -> None:
    cache = make_cluster_with_devices({"slices": []})
    devices = make_in_flight(cache)
    devices.mark_written(UID, "default/c", "7", is_new_claim=True)
    cache.set_list_version(ResourceClaim, list_version)
    devices.sync(cache.snapshot())
    assert devices.is_allocated(DEVICE) is in_flight


def test_a_written_allocation_stays_in_flight_after_the_binding_failed() -> None:
    cache = make_cluster_with_devices({"slices": []})
    cache.add_or_update_object(make_version("5"))
    devices = make_in_flight(cache)
    devices.mark_written(UID, "default/c", "7", is_new_claim=False)
    devices.remove_unwritten(UID)
    devices.sync(cache.snapshot())
    assert devices.is_allocated(DEVICE)
    cache.add_or_update_object(make_version("7", allocated=True))
    devices.sync(cache.snapshot())
    assert devices.is_allocated(DEVICE)
    assert not devices.is_in_flight(UID)


def test_an_allocation_that_was_not_written_is_removed_after_the_binding_failed() -> None:
    devices = make_in_flight(make_cluster_with_devices({"slices": []}))
    devices.remove_unwritten(UID)
    assert not devices.is_allocated(DEVICE)


def test_only_pods_of_the_same_pod_group_cycle_share_an_in_flight_allocation() -> None:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter."""
    devices, cycle = AllocatedDevices(consumable_capacity=False), object()
    allocation = ALLOCATED.status.allocation
    assert allocation is not None
    devices.add_in_flight(UID, allocation, cycle)
    assert devices.find_shared_allocation(UID, cycle) is allocation
    assert devices.find_shared_allocation(UID, object()) is None
    assert devices.find_shared_allocation(UID, None) is None
    assert devices.find_shared_allocation("other", cycle) is None


def test_an_allocation_reserved_outside_a_pod_group_cycle_is_not_shared() -> None:
    assert make_in_flight(make_cluster_with_devices({"slices": []})).find_shared_allocation(UID, None) is None


def test_a_shared_allocation_is_in_flight_until_the_last_pod_is_unreserved() -> None:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go,
    claimTracker.MaybeRemoveClaimPendingAllocation (1.37)."""
    devices, allocation = AllocatedDevices(consumable_capacity=False), ALLOCATED.status.allocation
    assert allocation is not None
    devices.add_in_flight(UID, allocation)
    devices.add_in_flight(UID, allocation)
    devices.remove_unwritten(UID)
    assert devices.is_allocated(DEVICE)
    devices.remove_unwritten(UID)
    assert not devices.is_allocated(DEVICE)
    assert not devices.is_in_flight(UID)
