"""Traces: which nodes and pods count, the order of a seed, and clones up to the demand."""

import json
from collections import Counter
from typing import Any

import pytest

from extender.analysis.recorded_cluster import parse_recording
from extender.experiments.gpu_trace import TraceError, make_arrivals, make_trace
from extender.testing import make_node, make_pod
from tests.unit.experiments.small_trace import small_trace
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, shared_pod, whole_pod


def trace_of(*objects: Any) -> Any:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return make_trace(parse_recording(text.encode(), "x.json"))


def test_a_trace_has_the_gpu_nodes_and_the_pending_pods_by_name() -> None:
    trace = trace_of(
        gpu_node("b", gpus=4),
        gpu_node("a"),
        make_node("cpu-only"),
        whole_pod("w", 2),
        shared_pod("s", 300),
        shared_pod("running", 300, node="a"),
        make_pod("c", cpu="1"),
    )
    assert [node.metadata.name for node in trace.nodes] == ["a", "b"]
    assert [pod.metadata.name for pod in trace.pods] == ["c", "s", "w"]
    assert trace.gpu_milli == (0, 300, 2000)
    assert trace.capacity == 6000
    assert [(pod.gpu_milli, pod.gpu_count, round(pod.weight, 3)) for pod in trace.target_workload] == [
        (1000, 2, 0.333),
        (300, 1, 0.333),
        (0, 0, 0.333),
    ]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([make_node("a"), shared_pod("p", 300)], "no node has the allocatable resource alibabacloud.com/gpu-count"),
        ([gpu_node("a"), make_pod("p")], "no pending pod requests a GPU"),
        (
            [make_node("a", **dict[str, Any]({"alibabacloud.com/gpu-count": "2"})), shared_pod("p", 300)],
            "node a: alibabacloud.com/gpu-count is 2, but alibabacloud.com/gpu-milli is 0; want 2000, 1000 for each",
        ),
        ([gpu_node("a"), shared_pod("p", 1300)], "pod default/p: a pod can request 1 to 1000 milli of each GPU"),
        (
            [gpu_node("a", gpus=65), shared_pod("p", 300)],
            "node a: alibabacloud.com/gpu-count is 65; want at most 64",
        ),
        (
            [*(gpu_node(f"n{number}", gpus=64) for number in range(13)), shared_pod("p", 1)],
            "about 1081600 pods like those of the trace would use the 832 GPUs; want at most 1000000",
        ),
    ],
)
def test_a_recording_without_valid_gpus_is_no_trace(objects: list[Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        trace_of(*objects)


def test_a_seed_gives_one_order_and_clones_up_to_the_demand() -> None:
    trace = small_trace()
    assert trace.capacity == 16_000
    arrivals = make_arrivals(trace, 5)
    demand = sum(arrivals.gpu_milli)
    assert 1.3 * 16_000 - 2_000 < demand <= 1.3 * 16_000
    assert arrivals == make_arrivals(trace, 5)
    assert arrivals.pods != make_arrivals(trace, 6).pods
    assert len({pod.metadata.name for pod in arrivals.pods}) == len(arrivals.pods)
    assert sorted(node.metadata.name for node in arrivals.nodes) == [f"n{number}" for number in range(6)]


def test_pods_beyond_the_demand_are_dropped_and_the_others_arrive_once() -> None:
    trace = small_trace()
    arrivals = make_arrivals(trace, 5)
    names = Counter(pod.metadata.name.partition("-clone-")[0] for pod in arrivals.pods)
    assert sum(trace.gpu_milli) > 1.3 * trace.capacity
    assert set(names.values()) <= {1, 2}


def test_clones_are_added_if_the_pods_ask_for_less() -> None:
    trace = trace_of(gpu_node("a", gpus=8), shared_pod("s", 400), whole_pod("w", 1), make_pod("c"))
    arrivals = make_arrivals(trace, 1)
    first = [pod.metadata.name for pod in arrivals.pods[:3]]
    assert sorted(first) == ["c", "s", "w"]
    assert all("-clone-" in pod.metadata.name for pod in arrivals.pods[3:])
    assert 10_400 - 1000 < sum(arrivals.gpu_milli) <= 10_400
