"""The fragmented GPU milli by cause; their sum is the fragmentation of FGD."""

import numpy as np
import pytest

from extender.experiments.fragmentation_causes import Cause, measure_fragmentation
from extender.plugins.gpu_share.device_table import NodeDevices
from extender.plugins.gpu_share.fragmentation import FragmentationTables
from extender.plugins.gpu_share.target_workload import TargetPod
from tests.unit.plugins.gpu_share.test_fragmentation import MODELS, WORKLOAD, nodes

HALF = TargetPod(4000, 500, 1)
TWO = TargetPod(4000, 1000, 2)

CASES: dict[str, tuple[TargetPod, NodeDevices, dict[Cause, float]]] = {
    "a part of a GPU that suffices": (HALF, nodes(([500, 0], 1, 4000)), {}),
    "a GPU that is too full": (HALF, nodes(([400, 700], 1, 4000)), {Cause.GPU: 400}),
    "a GPU that suffices without CPU": (HALF, nodes(([400, 700], 1, 3999)), {Cause.CPU: 700, Cause.GPU_AND_CPU: 400}),
    "one whole GPU for a pod with two": (TWO, nodes(([1000, 300], 1, 4000)), {Cause.GPU: 1300}),
    "two whole GPUs": (TWO, nodes(([1000, 1000], 1, 4000)), {}),
    "another model": (TargetPod(0, 500, 1, ("T4",)), nodes(([500, 100], 2, 0)), {Cause.GPU_MODEL: 600}),
    "a pod without GPU": (TargetPod(4000), nodes(([500, 100], 2, 0)), {Cause.NO_GPU_REQUESTED: 600}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_free_part_is_usable_or_fragmented_for_one_cause(name: str) -> None:
    pod, devices, expected = CASES[name]
    measured = measure_fragmentation(devices, [pod], MODELS)
    assert {cause: milli for cause, milli in measured.items() if milli} == expected


def test_the_sum_over_the_causes_is_the_fragmentation_that_fgd_uses() -> None:
    rng = np.random.default_rng(3)
    rows = [
        ((rng.integers(0, 11, 4) * 100).tolist(), int(rng.integers(0, 3)), int(rng.integers(0, 20)) * 1000)
        for _ in range(200)
    ]
    devices = nodes(*rows)
    by_cause = measure_fragmentation(devices, WORKLOAD, MODELS)
    assert all(by_cause.values()), "each cause occurs"
    expected = FragmentationTables(WORKLOAD, MODELS).compute_fragmentation(devices).sum()
    assert sum(by_cause.values()) == pytest.approx(expected)
