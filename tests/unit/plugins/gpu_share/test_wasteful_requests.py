"""Which shared pods wait for a GPU in use: the waste of a request, useless parts, and the four conditions."""

import numpy as np
import pytest

from extender.plugins.gpu_share.gpu_request import GpuRequest
from extender.plugins.gpu_share.target_workload import TargetPod
from extender.plugins.gpu_share.wasteful_requests import (
    WaitingDemand,
    WastefulRequests,
    compute_useless_parts,
    compute_waste,
)
from tests.unit.plugins.gpu_share.test_fragmentation import MODELS, nodes

LARGE, WHOLE = GpuRequest(810, 1), GpuRequest(1000, 1)
WORKLOAD = (
    TargetPod(1000, 810, 1, (), 0.5),
    TargetPod(1000, 1000, 1, (), 0.3),
    TargetPod(1000, 500, 1, (), 0.2),
)
# One free GPU of 8: 12.5 per cent, less than 0.9 times the waste of 19 per cent. The useless parts are 7 times 190.
SCARCE = ([190] * 7 + [1000], 2, 64_000)


def test_the_waste_is_what_a_best_fit_decreasing_packing_leaves() -> None:
    waste = compute_waste((TargetPod(0, 810, 1, (), 0.5), TargetPod(0, 150, 1, (), 0.1), TargetPod(0, 400, 1, (), 0.2)))
    # A fifth of the GPUs with 810 milli gets 150 milli too: 0.8 * 190 + 0.2 * 40. Two pods of 400 milli leave 200.
    assert waste[810] == pytest.approx(0.160)
    assert waste[400] == pytest.approx(0.200)
    assert waste[150] == 0, "never the first pod on a GPU"
    assert waste[[0, 1000, 500]].tolist() == [0, 0, 0]


def test_requests_are_rounded_up_to_ten_milli() -> None:
    waste = compute_waste((TargetPod(0, 803, 1, (), 1.0),))
    assert waste[[800, 801, 803, 810, 811]] == pytest.approx([0, 0.19, 0.19, 0.19, 0])


def test_many_pods_that_fit_once_leave_the_rest_of_the_bins_to_the_next_size() -> None:
    waste = compute_waste((TargetPod(0, 700, 1, (), 0.1), TargetPod(0, 300, 1, (), 0.5)))
    assert waste[700] == 0
    assert waste[300] == pytest.approx(0.1)


def test_a_part_is_useless_if_five_per_cent_of_the_demand_at_most_fits() -> None:
    useless = compute_useless_parts((TargetPod(0, 800, 1, (), 0.9), TargetPod(0, 100, 1, (), 0.1), *WORKLOAD[1:2]))
    assert useless[[0, 100, 799, 800, 999, 1000]].tolist() == [0, 100, 799, 0, 0, 0]


def test_a_wasteful_pod_waits_if_free_gpus_are_scarce() -> None:
    requests = WastefulRequests(WORKLOAD, MODELS)
    assert requests.must_wait(nodes(SCARCE), LARGE, 0, 1)
    assert not requests.must_wait(nodes(SCARCE), WHOLE, 0, 1)
    assert not requests.must_wait(nodes(SCARCE), GpuRequest(500, 1), 0, 1), "two of them fill a GPU"
    plenty = ([190] * 6 + [1000] * 2, 2, 64_000)
    assert not requests.must_wait(nodes(plenty), LARGE, 0, 1), "25 per cent are free"


def test_no_pod_waits_if_as_much_demand_waits_as_is_useless() -> None:
    requests = WastefulRequests(WORKLOAD, MODELS)
    assert requests.must_wait(nodes(SCARCE), LARGE, 7 * 190 - 1, 1)
    assert not requests.must_wait(nodes(SCARCE), LARGE, 7 * 190, 1)


def test_no_pod_waits_if_cpu_is_the_scarce_resource() -> None:
    # The free 2,330 milli need 2.99 CPUs: 1,000 milli-CPU for each pod of 805 milli on average, as weighted.
    requests = WastefulRequests(WORKLOAD, MODELS)
    assert requests.must_wait(nodes((SCARCE[0], 2, 3_000)), LARGE, 0, 1)
    assert not requests.must_wait(nodes((SCARCE[0], 2, 2_500)), LARGE, 0, 1)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(TargetPod(1000, 1000, 8, (), 1.0), id="pods of eight GPUs that fit on no node"),
        pytest.param(TargetPod(1000, 1000, 1, ("T4",), 15.0), id="pods of a model that no node has left"),
    ],
)
def test_demand_that_will_not_fit_counts_as_waiting(other: TargetPod) -> None:
    weight = other.weight + 1.0
    pods = tuple(
        TargetPod(p.cpu, p.gpu_milli, p.gpu_count, p.gpu_models, p.weight / weight) for p in (*WORKLOAD, other)
    )
    assert not WastefulRequests(pods, MODELS).must_wait(nodes(SCARCE), LARGE, 500, 1)


def test_the_unmet_demand_is_projected_again_after_64_placements() -> None:
    pods = (TargetPod(0, 810, 1, (), 0.2), TargetPod(0, 1000, 8, (), 0.8))
    requests = WastefulRequests(pods, MODELS)
    room = ([1000] * 8, 2, 64_000)
    rows = (room, *[([190] * 8, 2, 64_000)] * 9)
    waiting = 9 * 8 * 190 - 100
    assert requests.must_wait(nodes(*rows), LARGE, waiting, 1), "a node has room for eight GPUs"
    broken = (([1000] * 7 + [190], 2, 64_000), *rows[1:])
    assert requests.must_wait(nodes(*broken), LARGE, waiting, 64)
    assert not requests.must_wait(nodes(*broken), LARGE, waiting, 65)


def test_waiting_demand_counts_each_pod_once_until_it_is_removed() -> None:
    waiting = WaitingDemand()
    waiting.add("a", 500)
    waiting.add("b", 810)
    waiting.add("a", 500)
    assert waiting.milli == 1310
    waiting.remove("a")
    waiting.remove("unknown")
    assert waiting.milli == 810


def test_a_pod_that_is_not_seen_again_is_forgotten_after_20000_cycles() -> None:
    waiting = WaitingDemand()
    waiting.add("deleted", 810)
    for _ in range(19_999):
        waiting.add("retried", 100)
    assert waiting.milli == 910
    waiting.add("retried", 100)
    assert waiting.milli == 100


def test_a_workload_without_gpus_lets_no_pod_wait() -> None:
    requests = WastefulRequests((TargetPod(1000, weight=1.0),), MODELS)
    assert not requests.must_wait(nodes(SCARCE), LARGE, 0, 1)
    assert np.count_nonzero(compute_waste(())) == 0
