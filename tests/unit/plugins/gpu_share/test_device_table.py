"""The table of free GPUs: rows, pods with and without chosen GPUs, and updates from snapshots."""

import numpy as np
import pytest

from extender.api.kinds.devices import ResourceClaim, ResourceSlice
from extender.plugins.gpu_share.claimed_gpus import CLAIMED, MIXED, ClaimedGpus
from extender.plugins.gpu_share.device_table import DeviceTable, assign_devices
from extender.plugins.gpu_share.gpu_request import GpuRequest
from extender.testing import make_cluster, make_node
from tests.build import make_object
from tests.unit.dra.builders import make_allocator
from tests.unit.plugins.gpu_share.claim_builders import (
    DRIVER,
    device_slice,
    gpu_nodes,
    memory_claim,
    partitioned_gpu,
    share,
    shared_device,
)
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, read_devices, shared_pod, whole_pod


def test_the_chosen_gpus_of_the_pods_are_taken() -> None:
    table, devices = read_devices(
        gpu_node("a", gpus=4, cpu="16", model="G2"),
        make_node("b", cpu="8"),
        shared_pod("p1", 300, "a", "2", cpu="2"),
        shared_pod("p2", 500, "a", "2"),
        whole_pod("p3", 2, "a", "0-3", cpu="4"),
    )
    assert devices.free.tolist() == [[0, 1000, 200, 0, 0, 0, 0, 0], [0] * 8]
    assert devices.device_count.tolist() == [4, 0]
    assert devices.cpu.tolist() == [9000, 8000]
    assert devices.request_kinds.tolist() == [0b101, 0]
    assert [list(table.model_positions)[position] for position in devices.model] == ["G2", ""]


@pytest.mark.parametrize(
    ("free", "milli", "count", "indices", "expected"),
    [
        ([1000, 400, 300], 300, 1, (0,), [700, 400, 300]),
        ([1000, 400, 300], 300, 1, (), [1000, 400, 0]),
        ([1000, 400, 300], 350, 1, (9,), [1000, 50, 300]),
        ([1000, 400, 1000], 1000, 2, (), [0, 400, 0]),
        ([300, 400], 500, 1, (), [300, 0]),
        ([1000, 400], 500, 1, (1,), [1000, 0]),
    ],
    ids=["chosen", "least sufficient", "no such GPU", "whole", "fits nowhere", "too full"],
)
def test_a_pod_takes_its_gpus_or_the_least_sufficient(
    free: list[int], milli: int, count: int, indices: tuple[int, ...], expected: list[int]
) -> None:
    assign_devices(free, GpuRequest(milli, count), indices)
    assert free == expected


def test_pods_without_chosen_gpus_are_counted_after_the_others() -> None:
    _, devices = read_devices(gpu_node("a"), shared_pod("no-index", 600, "a"), shared_pod("with-index", 600, "a", "0"))
    assert devices.free[0, :2].tolist() == [400, 400]


def test_a_table_follows_the_snapshots() -> None:
    cluster = make_cluster(
        gpu_node("a"), gpu_node("b"), shared_pod("p1", 300, "a", "1"), shared_pod("p2", 200, "b", "0")
    )
    table = DeviceTable()
    first = cluster.cache.snapshot()
    assert table.get(first.view()).free[:, :2].tolist() == [[1000, 700], [800, 1000]]
    version = table.version
    table.get(first.view())
    assert table.version == version
    cluster.cache.remove_pod(cluster.pod("p1").metadata.uid or "default/p1")
    second = cluster.cache.snapshot()
    assert table.get(second.view(np.array([1]))).free[:, :2].tolist() == [[800, 1000]]
    assert table.get(second.view()).free[:, :2].tolist() == [[1000, 1000], [800, 1000]]
    assert table.version == version + 1
    assert table.get(first.view()).free[:, :2].tolist() == [[1000, 700], [800, 1000]], "an older snapshot"
    node = table.get_node("b")
    assert node is not None
    assert node.free[0, :2].tolist() == [800, 1000]
    assert table.get_node("c") is None


def test_a_table_sees_new_nodes_and_wider_ones() -> None:
    cluster = make_cluster(gpu_node("a"))
    table = DeviceTable()
    assert table.get(cluster.cache.snapshot().view()).free.shape == (1, 8)
    for node in make_cluster(gpu_node("a", gpus=3), gpu_node("b", gpus=16)).cache.snapshot().nodes:
        cluster.cache.add_or_update_node(node)
    devices = table.get(cluster.cache.snapshot().view())
    assert devices.free.shape == (2, 16)
    assert devices.device_count.tolist() == [3, 16]


def test_a_table_follows_the_claims() -> None:
    """Claims change the free GPUs of their node only. A slice with more GPUs than before makes the table wider."""
    cluster = make_cluster(*gpu_nodes("a", "b"), gpu_node("own"), shared_pod("p", 300, "own", "0"))
    gpus = ClaimedGpus({DRIVER: "memory"}, {"DynamicResources": make_allocator({"DRAConsumableCapacity": True})})
    table, cache = DeviceTable(gpus), cluster.cache

    def read_free() -> list[list[int]]:
        snapshot = cache.snapshot()
        gpus.sync(snapshot)
        return table.get(snapshot.view()).free[:, :2].tolist()

    assert read_free() == [[1000, 1000], [1000, 1000], [700, 1000]]
    version = table.version
    assert read_free()[0] == [1000, 1000]
    assert table.version == version
    cache.add_or_update_object(make_object(memory_claim("c", "60Gi", share("gpu-1", "60Gi"), node="b")))
    assert read_free() == [[1000, 1000], [1000, 250], [700, 1000]]
    cache.remove_object(ResourceClaim, "default/c")
    assert read_free() == [[1000, 1000], [1000, 1000], [700, 1000]]
    many = device_slice("a", [shared_device(f"gpu-{number}") for number in range(12)])
    cache.add_or_update_object(make_object(many))
    read_free()
    snapshot = cache.snapshot()
    assert table.get(snapshot.view()).free.sum(axis=1).tolist() == [12_000, 2000, 1700]
    cache.remove_object(ResourceSlice, "slice-a")
    assert read_free()[0] == [0, 0]


def test_the_claimed_gpus_of_removed_nodes_are_forgotten() -> None:
    """The slices stay for months, while other nodes are replaced."""
    for_all_nodes = device_slice("", [shared_device("gpu-0")], name="all", allNodes=True)
    del for_all_nodes["spec"]["nodeName"]
    cluster = make_cluster(*gpu_nodes("a"), for_all_nodes)
    gpus = ClaimedGpus({DRIVER: "memory"}, {"DynamicResources": make_allocator()})
    table, cache = DeviceTable(gpus), cluster.cache
    for number in range(1100):
        cache.add_or_update_node(make_object(make_node(f"n{number}")))
        snapshot = cache.snapshot()
        gpus.sync(snapshot)
        table.get(snapshot.view())
        cache.remove_node(f"n{number}")
    assert len(gpus._gpu_counts) < 100
    assert [len(nodes) < 100 for nodes in gpus._nodes_by_pool.values()] == [True, True]


def test_nodes_with_claimed_gpus_are_marked() -> None:
    """Of the partitions a half is taken. The node `mixed` has a pod that requests a GPU without a claim."""
    taken = memory_claim("c", "40Gi", {"device": "half-0"}, node="parts")
    slices = [
        *partitioned_gpu("parts"),
        device_slice("mixed", [{"name": "gpu-0"}]),
        device_slice("both", [{"name": "g"}]),
    ]
    nodes = [make_node("parts"), gpu_node("mixed"), gpu_node("both"), gpu_node("own")]
    cluster = make_cluster(*nodes, *slices, taken, shared_pod("p", 300, "mixed", "0"))
    gpus = ClaimedGpus({DRIVER: "memory"}, {"DynamicResources": make_allocator()})
    snapshot = cluster.cache.snapshot()
    assert gpus.sync(snapshot)
    devices = DeviceTable(gpus).get(snapshot.view())
    assert devices.claimed.tolist() == [CLAIMED, MIXED, CLAIMED, 0]
    assert devices.device_count.tolist() == [1, 1, 1, 2]
    assert devices.free[:, :2].tolist() == [[500, 0], [1000, 0], [1000, 0], [1000, 1000]]
    assert devices.request_kinds.tolist() == [1, 0, 0, 0]
