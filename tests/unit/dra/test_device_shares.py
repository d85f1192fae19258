"""Free shares of devices: consumable capacity, partitions by shared counters, whole devices, and an allocation."""

from typing import Any

import pytest

from extender.cache.cache import Cache
from extender.dra.allocator import Allocator, NodeAllocation
from extender.dra.device_shares import DeviceShares
from tests.build import make_cluster, make_node
from tests.unit.dra.builders import (
    DRIVER,
    make_allocated_claim,
    make_allocator,
    make_claim,
    make_device_class,
    make_slice,
)

GATES = {"DRAConsumableCapacity": True, "DRAPartitionableDevices": True}
SHARED_GPU = {"allowMultipleAllocations": True, "capacity": {"memory": "80Gi"}}
COUNTERS = [{"name": f"gpu-{index}", "counters": {"memory": {"value": "80Gi"}}} for index in range(2)]


def make_partition(gpu: str, memory: str, **body: Any) -> dict[str, Any]:
    """Return the fields of a partition of *gpu*."""
    return {"consumesCounters": [{"counterSet": gpu, "counters": {"memory": {"value": memory}}}], **body}


def make_mig_slices() -> list[Any]:
    """Return a pool with the partitions of two GPUs, and their counters."""
    partitions = {
        "a-full": make_partition("gpu-0", "80Gi"),
        "a-half": make_partition("gpu-0", "40Gi"),
        "a-eighth": make_partition("gpu-0", "10Gi"),
        "b-full": make_partition("gpu-1", "80Gi"),
        "b-half": make_partition("gpu-1", "40Gi"),
    }
    counters = {"name": "counters", "count": 2, "counters": COUNTERS, "node": "node"}
    return [make_slice({"name": "devices", "count": 2, "node": "node", "devices": partitions}), make_slice(counters)]


def measure(*objects: Any, claims: tuple[Any, ...] = (), resource: str = "memory") -> list[tuple[int, ...]]:
    """Return the free shares of the node `node` before and after the allocation of *claims*."""
    allocator, cache = make_allocator(GATES), make_cluster(make_node(), make_device_class("gpu"), *objects)
    allocator.sync(cache.snapshot())
    shares = DeviceShares(allocator, {DRIVER: resource})
    node = cache.snapshot().nodes[0]
    return [shares.measure(node), shares.measure(node, allocate(allocator, cache, claims))]


def allocate(allocator: Allocator, cache: Cache, claims: tuple[Any, ...]) -> NodeAllocation | None:
    """Return the allocation of *claims* on the first node."""
    return allocator.allocate(allocator.prepare(claims), cache.snapshot().nodes[0]) if claims else None


def share(device: str, memory: str) -> dict[str, Any]:
    """Return an allocated share of a device."""
    return {"device": device, "shareID": f"id-{device}-{memory}", "consumedCapacity": {"memory": memory}}


def test_a_shared_device_has_the_capacity_that_is_left() -> None:
    """30 of 80 GiB are used, so 50 / 80 = 0.625 is left; 16 GiB more leave 34 / 80 = 0.425."""
    devices = make_slice({"devices": {"g0": SHARED_GPU, "g1": SHARED_GPU}})
    taken = make_allocated_claim("taken", [share("g0", "20Gi"), share("g0", "10Gi")])
    claim = make_claim("c", {"r": {"capacity": {"requests": {"memory": "16Gi"}}}})
    assert measure(devices, taken, claims=(claim,)) == [(625, 1000), (425, 1000)]


def test_two_requests_of_one_allocation_share_a_device() -> None:
    claim = make_claim("c", {name: {"capacity": {"requests": {"memory": "20Gi"}}} for name in ("a", "b")})
    assert measure(make_slice({"devices": {"g0": SHARED_GPU}}), claims=(claim,)) == [(1000,), (500,)]


def test_partitions_of_one_counter_set_are_one_gpu() -> None:
    """The half of GPU 0 is used. The first partition that fits is its eighth, which leaves 30 / 80 = 0.375."""
    taken = make_allocated_claim("taken", ["a-half"])
    small = make_claim("c", {"r": {"selectors": ["device.driver == 'gpu.example.com'"]}})
    assert measure(*make_mig_slices(), taken) == [(500, 1000), (500, 1000)]
    # `a-full` does not fit, `a-half` is in use
    assert measure(*make_mig_slices(), taken, claims=(small,)) == [(500, 1000), (375, 1000)]


def test_a_claim_for_two_partitions_takes_both() -> None:
    taken = make_allocated_claim("taken", ["a-half"])
    claim = make_claim("c", {"r": {"count": 2}})
    assert measure(*make_mig_slices(), taken, claims=(claim,)) == [(500, 1000), (375, 0)]


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        pytest.param({}, (0, 1000), id="a device without capacity"),
        pytest.param({"allowMultipleAllocations": True, "capacity": {"cores": 8}}, (0, 1000), id="another capacity"),
        pytest.param({"capacity": {"memory": "80Gi"}}, (0, 1000), id="a capacity that is not shared"),
    ],
)
def test_other_devices_are_free_or_in_use(device: dict[str, Any], expected: tuple[int, ...]) -> None:
    devices = make_slice({"devices": {"g0": device, "g1": device}})
    assert measure(devices, make_allocated_claim("taken", ["g0"]))[0] == expected


def test_a_counter_set_without_the_counter_is_free_or_in_use() -> None:
    taken = make_allocated_claim("taken", ["a-eighth"])
    claim = make_claim("c", {"r": {}})
    assert measure(*make_mig_slices(), taken, claims=(claim,), resource="cores") == [(0, 1000), (0, 1000)]


def test_a_partition_that_claims_share_counts_once() -> None:
    """The first share consumes the counters of the partition: 40 of 80 GiB. The second one consumes none."""
    body = {"allowMultipleAllocations": True, "capacity": {"slots": 4}}
    slots = {"slots": {"value": 4, "requestPolicy": {"default": "1", "validValues": ["1", "2"]}}}
    partition = make_partition("gpu-0", "40Gi", **{**body, "capacity": slots})
    counters = {"name": "counters", "count": 2, "counters": COUNTERS[:1], "node": "node"}
    slices = [make_slice({"name": "d", "count": 2, "node": "node", "devices": {"p": partition}}), make_slice(counters)]
    claim = make_claim("c", {"r": {}})
    assert measure(*slices, claims=(claim,)) == [(1000,), (500,)]
    taken = make_allocated_claim("taken", [{"device": "p", "shareID": "s1", "consumedCapacity": {"slots": "1"}}])
    assert measure(*slices, taken, claims=(claim,)) == [(500,), (500,)]


def test_devices_of_other_drivers_and_nodes_do_not_count() -> None:
    other_driver = make_slice({"driver": "nic.example.com", "pool": "nics", "devices": {"n": {}}})
    other_node = make_slice({"pool": "far", "node": "elsewhere", "devices": {"g": {}}})
    own = make_slice({"by_device": True, "devices": {"g0": {"nodeName": "node"}, "g1": {"nodeName": "elsewhere"}}})
    assert measure(other_driver, other_node, own)[0] == (1000,)


def test_administrative_access_takes_nothing() -> None:
    claim = make_claim("c", {"r": {"adminAccess": True}})
    assert measure(make_slice({"devices": {"g0": {}}}), claims=(claim,)) == [(1000,), (1000,)]


def test_the_results_of_a_claim_are_measured() -> None:
    """The shares take 20 / 80 = 0.25 and 60 / 80 = 0.75 of two GPUs; an unknown device does not count."""
    devices = make_slice({"devices": {"g0": SHARED_GPU, "g1": SHARED_GPU, "g2": {}}})
    taken = make_allocated_claim("taken", [share("g0", "20Gi"), share("g1", "60Gi"), "g2", "gone"])
    allocator, cache = make_allocator(GATES), make_cluster(make_node(), devices, taken)
    allocator.sync(cache.snapshot())
    shares = DeviceShares(allocator, {DRIVER: "memory"})
    assert taken.status.allocation is not None
    assert shares.measure_results(taken.status.allocation.devices.results) == (250, 750, 1000)
