"""The target workload: frequent kinds of pods, and what is learnt from the pods seen."""

import pytest
from msgspec.structs import replace

from extender.api.kinds.pod import Pod
from extender.plugins.gpu_share.gpu_request import GPU_MODEL
from extender.plugins.gpu_share.target_workload import (
    TargetPod,
    WorkloadHistogram,
    make_target_pod,
    merge_pods,
    select_popular_pods,
)
from extender.testing import make_cluster, make_pod
from tests.unit.plugins.gpu_share.gpu_builders import shared_pod, whole_pod

SMALL, LARGE, RARE = TargetPod(1000, 300, 1), TargetPod(4000, 1000, 2), TargetPod(2000)


def test_equal_kinds_are_merged_and_the_most_frequent_comes_first() -> None:
    pods = merge_pods([RARE, SMALL, SMALL, LARGE, SMALL])
    assert [(pod.gpu_milli, pod.weight) for pod in pods] == [(300, 0.6), (1000, 0.2), (0, 0.2)]


def test_kinds_are_selected_until_they_make_up_95_per_cent() -> None:
    pods = merge_pods([SMALL] * 90 + [LARGE] * 6 + [RARE] * 4)
    selected = [(pod.gpu_milli, round(pod.weight, 6)) for pod in select_popular_pods(pods)]
    assert selected == [(300, 0.9375), (1000, 0.0625)]


def test_a_pod_has_the_kind_of_its_requests() -> None:
    cluster = make_cluster(
        shared_pod("p1", 300, cpu="2", spec={"nodeSelector": {GPU_MODEL: "T4"}}), whole_pod("p2", 2), make_pod("p3")
    )
    snapshot = cluster.cache.snapshot()
    cpu = snapshot.symbols.resources.intern("cpu")
    kinds = [make_target_pod(snapshot.make_pod_info(cluster.pod(name)), cpu) for name in ("p1", "p2", "p3")]
    assert kinds == [TargetPod(2000, 300, 1, ("T4",)), TargetPod(1000, 1000, 2), TargetPod(100)]


def test_a_pod_is_counted_once_and_an_invalid_one_never() -> None:
    pods = [shared_pod("a", 300), shared_pod("b", 300), whole_pod("c", 2), shared_pod("invalid", 1500)]
    cluster = make_cluster(*pods)
    snapshot = cluster.cache.snapshot()
    histogram = WorkloadHistogram(snapshot.symbols.resources.intern("cpu"))
    infos = {name: snapshot.make_pod_info(cluster.pod(name)) for name in ("a", "b", "c", "invalid")}
    assert histogram.add([infos["invalid"]]).pods == ()
    first = histogram.add([infos["a"]])
    assert histogram.add([infos["a"]]) is first
    workload = histogram.add([infos["b"], infos["c"], infos["c"]])
    assert workload.version == first.version + 1
    assert [(pod.gpu_milli, round(pod.weight, 3)) for pod in workload.pods] == [(300, 0.667), (1000, 0.333)]


def test_old_pods_count_less_than_new_ones() -> None:
    count = 30_000
    cluster = make_cluster(shared_pod("old", 300), whole_pod("new", 2))
    snapshot = cluster.cache.snapshot()
    histogram = WorkloadHistogram(snapshot.symbols.resources.intern("cpu"))
    for number in range(2 * count):
        pod = snapshot.make_pod_info(cluster.pod("old" if number < count else "new"))
        object.__setattr__(pod, "pod", _rename(pod.pod, number))
        histogram.add([pod])
    weights = {pod.gpu_milli: pod.weight for pod in histogram.workload.pods}
    # The old half counts 2 ** -1.5 of the new half, for a half-life of 20,000 pods.
    assert weights[300] == pytest.approx(0.261, abs=0.01)


def _rename(pod: Pod, number: int) -> Pod:

    return replace(pod, metadata=replace(pod.metadata, uid=str(number)))


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        (TargetPod(cpu=-1), "x.cpu"),
        (TargetPod(gpu_milli=1001, gpu_count=1), "x.gpuMilli"),
        (TargetPod(gpu_milli=500), "x.gpuCount"),
        (TargetPod(weight=0.0), "x.weight"),
    ],
)
def test_an_amount_out_of_range_is_an_error(pod: TargetPod, path: str) -> None:
    assert [error.path for error in pod.validate("x")] == [path]
