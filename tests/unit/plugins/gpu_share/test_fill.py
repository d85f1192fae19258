"""The score Fill: copies that a node can hold, the demand for a model, and the milli that stay unused."""

import numpy as np
import pytest

from extender.plugins.gpu_share.fill import (
    FillTables,
    compute_expected_unused_milli,
    compute_model_demand,
    weight_by_size,
)
from extender.plugins.gpu_share.gpu_request import GpuRequest
from extender.plugins.gpu_share.target_workload import TargetPod
from tests.unit.plugins.gpu_share.test_fragmentation import MODELS, nodes

WHOLE_GPUS = np.array([0, 10, 90], dtype=np.int64)


def test_the_demand_for_a_model_is_in_proportion_to_its_gpus() -> None:
    pods = (TargetPod(1000, 1000, 1, ("T4",), 0.5), TargetPod(1000, 1000, 1, (), 0.5))
    # Half of the demand is for 10 of 100 GPUs, which is 5 times their number; the other half is for all.
    assert compute_model_demand(pods, MODELS, WHOLE_GPUS).tolist() == [0.5, 5.5, 0.5]


def test_a_model_that_nobody_has_is_demanded_nowhere() -> None:
    pods = (TargetPod(1000, 1000, 1, ("A100",), 0.5), TargetPod(1000, 1000, 1, (), 0.5))
    assert compute_model_demand(pods, MODELS, WHOLE_GPUS).tolist() == [0.5, 0.5, 0.5]


def test_the_expected_unused_milli_follow_random_pods_that_fit() -> None:
    unused = compute_expected_unused_milli((TargetPod(0, 300, 1, (), 0.5), TargetPod(0, 400, 1, (), 0.5)))
    assert unused[[0, 299, 300, 399]].tolist() == [0, 299, 0, 99]
    assert unused[400] == pytest.approx(0.5 * 100 + 0.5 * 0)
    assert unused[700] == pytest.approx(0.5 * unused[400] + 0.5 * unused[300])


def test_small_requests_count_more_than_their_frequency() -> None:
    pods = weight_by_size((TargetPod(0, 250, 1, (), 0.4), TargetPod(0, 1000, 4, (), 0.4), TargetPod(1000, weight=0.2)))
    assert [round(pod.weight, 4) for pod in pods] == [0.6861, 0.1838, 0.13]


@pytest.fixture
def tables() -> FillTables:
    return FillTables((TargetPod(8000, 1000, 1, (), 0.9), TargetPod(1000, 500, 1, (), 0.1)), MODELS, WHOLE_GPUS)


def test_a_pod_goes_to_the_node_that_keeps_cpu_for_its_gpus(tables: FillTables) -> None:
    """One more pod fits on both nodes, so that FGD sees no difference; seven copies fit on the first only."""
    free = [1000] * 8
    scores = tables.score(nodes((free, 2, 96_000), (free, 2, 64_000)), GpuRequest(), 32_000)
    assert scores[0] > scores[1]


def test_other_pods_avoid_a_scarce_model() -> None:
    pods = (TargetPod(1000, 1000, 1, ("T4",), 0.5), TargetPod(1000, 1000, 1, (), 0.5))
    scarce = FillTables(pods, MODELS, WHOLE_GPUS)
    scores = scarce.score(nodes(([1000, 1000], 1, 16_000), ([1000, 1000], 2, 16_000)), GpuRequest(1000, 1), 1000)
    assert scores[0] < scores[1]


def test_a_part_of_a_gpu_fits_a_used_gpu_better_than_a_free_one(tables: FillTables) -> None:
    scores = tables.score_devices(nodes(([1000, 500, 400], 2, 64_000)), GpuRequest(500, 1), 1000)[0]
    assert int(scores.argmax()) == 1
    assert int(scores.argmin()) == 2, "too full"
    node_scores = tables.score(nodes(([1000, 500, 400], 2, 64_000)), GpuRequest(500, 1), 1000)
    assert node_scores.tolist() == [scores.max()]
