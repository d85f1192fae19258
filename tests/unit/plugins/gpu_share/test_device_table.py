"""The table of free GPUs: rows, pods with and without chosen GPUs, and updates from snapshots."""

import numpy as np
import pytest

from extender.plugins.gpu_share.device_table import DeviceTable, assign_devices
from extender.plugins.gpu_share.gpu_request import GpuRequest
from extender.testing import make_cluster, make_node
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
