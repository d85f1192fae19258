"""The scores of the policies, and the choice of GPUs on one node."""

import numpy as np
import pytest

from extender.plugins.gpu_share.args import SCORE_POLICIES
from extender.plugins.gpu_share.fill import FillTables
from extender.plugins.gpu_share.fragmentation import FragmentationTables
from extender.plugins.gpu_share.gpu_request import GpuRequest
from extender.plugins.gpu_share.policies import (
    SCORE_FUNCTIONS,
    WORKLOAD_POLICIES,
    choose_best_device,
    choose_whole_gpus,
    hash_nodes,
    make_workload_tables,
    score_best_fit,
    score_dot_prod,
    score_gpu_clustering,
    score_gpu_packing,
)
from extender.plugins.gpu_share.target_workload import TargetPod
from tests.unit.plugins.gpu_share.test_fragmentation import nodes


def test_every_policy_has_a_score() -> None:
    assert {"Random", *SCORE_FUNCTIONS, *WORKLOAD_POLICIES} == set(SCORE_POLICIES)


@pytest.mark.parametrize(("policy", "tables"), [("FGD", FragmentationTables), ("Fill", FillTables)])
def test_each_policy_with_a_workload_has_its_tables(policy: str, tables: type) -> None:
    gpus = np.array([0, 4], dtype=np.int64)
    made = make_workload_tables(policy, (TargetPod(1000, 500, 1),), {"": 0, "T4": 1}, gpus)
    assert isinstance(made, tables)


def test_whole_gpus_are_free_ones_or_none() -> None:
    devices = nodes(([1000, 300, 1000, 1000], 1, 9000))
    assert choose_whole_gpus(devices, GpuRequest(1000, 2)) == (0, 2)
    assert choose_whole_gpus(devices, GpuRequest(1000, 4)) == ()


def test_the_first_of_the_best_gpus_that_fit_is_chosen() -> None:
    scores = np.array([9, 5, 7, 7], dtype=np.int64)
    assert choose_best_device(scores, np.array([False, True, True, True])) == (2,)
    assert choose_best_device(scores, np.zeros(4, dtype=np.bool_)) == ()


SHARED, ONE, TWO, NONE = GpuRequest(500, 1), GpuRequest(1000, 1), GpuRequest(1000, 2), GpuRequest()


def test_best_fit_prefers_the_node_with_the_least_left() -> None:
    # left: 28/128 CPU and 3.5/8 GPU, a half each, is 0.328; 0 and 0.5/8 is 0.03125.
    devices = nodes(([1000, 1000, 1000, 1000], 1, 32_000), ([1000, 0, 0, 0], 1, 4_000))
    assert score_best_fit(devices, SHARED, 4_000).tolist() == [67, 96]


def test_dot_prod_prefers_the_smallest_product() -> None:
    # 64/128 * 32/128 + 4/8 * 2/8 is 0.25, halved 0.125; 32/128 * 32/128 + 2/8 * 2/8 is 0.125, halved 0.0625.
    devices = nodes(([1000, 1000, 1000, 1000], 1, 64_000), ([1000, 1000, 0, 0], 1, 32_000))
    assert score_dot_prod(devices, TWO, 32_000).tolist() == [87, 93]


def test_gpu_clustering_prefers_the_same_kind_then_unused_nodes() -> None:
    row = ([1000, 1000, 0, 0], 1, 64_000)
    devices = nodes(row, row, row, row)
    devices.request_kinds[:] = [0b1, 0b11, 0, 0b10]
    # 2 of 8 GPUs free: 25 * 6000 / 8000 is 18.
    assert score_gpu_clustering(devices, SHARED, 1000).tolist() == [93, 68, 43, 18]
    assert score_gpu_clustering(devices, NONE, 1000).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("free", "request_", "score"),
    [
        ([1000, 1000, 1000, 1000], SHARED, 29),
        ([1000, 1000, 600, 0], SHARED, 94),
        ([1000, 1000, 400, 0], SHARED, 49),
        ([1000, 1000, 400, 0], TWO, 48),
        ([1000, 1000, 1000, 1000], NONE, 0),
    ],
    ids=["unused node", "shared GPU", "free GPU on a used node", "two free GPUs", "no GPU"],
)
def test_gpu_packing_prefers_shared_gpus_then_used_nodes(free: list[int], request_: GpuRequest, score: int) -> None:
    assert score_gpu_packing(nodes((free, 1, 64_000)), request_, 1000).tolist() == [score]


def test_scores_of_nodes_that_are_too_full_stay_in_range() -> None:
    devices = nodes(([0, 0, 0, 0], 1, 0), ([1000, 100, 0, 0], 1, 0))
    for score in (score_best_fit, score_dot_prod, score_gpu_clustering, score_gpu_packing):
        scores = score(devices, GpuRequest(1000, 8), 120_000)
        assert scores.min() >= 0
        assert scores.max() <= 100


def test_a_hash_depends_on_node_and_pod_and_is_evenly_spread() -> None:
    names = np.arange(100, dtype=np.int64)
    best = [int(hash_nodes(names, pod).argmax()) for pod in range(1000)]
    assert hash_nodes(names, 5).tolist() == hash_nodes(names, 5).tolist()
    assert hash_nodes(names, 5).min() >= 0
    assert len(set(best)) > 90
    assert max(np.bincount(best)) < 40
