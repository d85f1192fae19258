"""FGD's score: tables equal the sum over the target workload, for every GPU of random nodes."""

import math

import numpy as np
import pytest

from extender.plugins.gpu_share.device_table import NodeDevices
from extender.plugins.gpu_share.fragmentation import FragmentationTables, remove_whole_gpus
from extender.plugins.gpu_share.gpu_request import GpuRequest
from extender.plugins.gpu_share.target_workload import TargetPod

MODELS = {"": 0, "T4": 1, "G2": 2}
WORKLOAD = (
    TargetPod(2000, 500, 1, (), 0.4),
    TargetPod(8000, 1000, 1, (), 0.2),
    TargetPod(16000, 1000, 2, (), 0.1),
    TargetPod(1000, 200, 1, ("T4",), 0.2),
    TargetPod(4000, 0, 0, (), 0.1),
)


def nodes(*rows: tuple[list[int], int, int]) -> NodeDevices:
    """Return nodes from the free milli of their GPUs, the position of the model, and the free milli-CPU."""
    free = np.array([gpus for gpus, _, _ in rows], dtype=np.int64)
    counts = np.full(len(rows), free.shape[1], dtype=np.int64)
    model, cpu = (np.array([row[index] for row in rows], dtype=np.int64) for index in (1, 2))
    return NodeDevices(free, counts, model, np.zeros_like(cpu), cpu)


def sum_over_workload(free: list[int], model: str, cpu: int) -> float:
    """Return the fragmentation as the paper defines it: the free milli that each kind of pod cannot use."""
    fragmentation = 0.0
    for pod in WORKLOAD:
        fitting = [milli for milli in free if milli >= pod.gpu_milli]
        accepted = not pod.gpu_models or model in pod.gpu_models
        usable = pod.gpu_count > 0 and accepted and cpu >= pod.cpu and len(fitting) >= pod.gpu_count
        fragmentation += pod.weight * (sum(free) - (sum(fitting) if usable else 0))
    return fragmentation


def test_the_fragmentation_of_a_node_without_cpu_is_all_that_is_free() -> None:
    tables = FragmentationTables(WORKLOAD, MODELS)
    assert tables.compute_fragmentation(nodes(([300, 1000], 2, 0))).tolist() == [1300]


def test_the_fragmentation_is_the_expected_unusable_part() -> None:
    tables = FragmentationTables(WORKLOAD, MODELS)
    # 0.4 can use 1000 of 1300, 0.2 as well; two whole GPUs, model T4 and pods without GPUs can use nothing.
    assert tables.compute_fragmentation(nodes(([300, 1000], 2, 64000))) == pytest.approx([1300 - 0.6 * 1000])
    assert tables.compute_fragmentation(nodes(([300, 1000], 1, 64000))) == pytest.approx(
        [1300 - 0.6 * 1000 - 0.2 * 1300]
    )


def test_the_tables_equal_the_sum_over_the_workload_on_random_nodes() -> None:
    rng = np.random.default_rng(7)
    tables = FragmentationTables(WORKLOAD, MODELS)
    for _ in range(200):
        free = (rng.integers(0, 11, 4) * 100).tolist()
        model, cpu = int(rng.integers(0, 3)), int(rng.integers(0, 20)) * 1000
        expected = sum_over_workload(free, list(MODELS)[model], cpu)
        assert tables.compute_fragmentation(nodes((free, model, cpu))) == pytest.approx([expected])


def test_the_score_of_a_gpu_is_that_of_the_node_after_the_pod_on_random_nodes() -> None:
    rng = np.random.default_rng(8)
    tables, request = FragmentationTables(WORKLOAD, MODELS), GpuRequest(300, 1)
    for _ in range(100):
        free = (rng.integers(0, 11, 4) * 100).tolist()
        model, cpu = int(rng.integers(0, 3)), int(rng.integers(3, 20)) * 1000
        before = sum_over_workload(free, list(MODELS)[model], cpu)
        expected = []
        for index, milli in enumerate(free):
            after = [*free[:index], milli - 300, *free[index + 1 :]]
            decrease = before - sum_over_workload(after, list(MODELS)[model], cpu - 3000) if milli >= 300 else 0
            expected.append(int(100 / (1 + math.exp(-decrease / 1000))) if milli >= 300 else -1)
        scores = tables.score_devices(nodes((free, model, cpu)), request, 3000)[0]
        assert np.abs(scores - expected).max() <= 1, "rounding only"
        assert tables.score(nodes((free, model, cpu)), request, 3000).tolist() == [max(0, *scores.tolist())]


def test_whole_gpus_are_the_first_free_ones() -> None:
    after = remove_whole_gpus(nodes(([1000, 300, 1000, 1000], 1, 9000)), GpuRequest(1000, 2), 4000)
    assert after.free.tolist() == [[0, 300, 0, 1000]]
    assert after.cpu.tolist() == [5000]


def test_a_pod_without_gpus_that_takes_the_cpu_of_free_gpus_scores_below_50() -> None:
    tables = FragmentationTables(WORKLOAD, MODELS)
    scores = tables.score(nodes(([1000, 1000], 2, 16000), ([0, 0], 2, 16000)), GpuRequest(), 15000)
    assert scores.tolist()[1] == 50
    assert scores.tolist()[0] < 50
