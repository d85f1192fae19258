"""The choice of GPUs on one node."""

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
    make_workload_tables,
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
