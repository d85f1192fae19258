"""GpuPacking on small clusters."""

import pytest
from gpu_plugins.gpu_packing import GpuPacking

from extender.config.faults import ConfigError
from extender.testing import Cluster, a_cluster, a_node, a_pod, check_kept_answers, try_plugin

GPU = "example.com/gpu"


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster(
        a_node("empty", **{GPU: "8"}),
        a_node("half", **{GPU: "8"}),
        a_node("none"),
        a_pod("running", node="half", **{GPU: "4"}),
        a_pod("two", **{GPU: "2"}),
        a_pod("web", cpu="1"),
        a_pod("three", **{GPU: "3"}),
        a_pod("three-more", **{GPU: "3"}),
    )


def test_the_node_with_the_fewest_left_is_best(cluster: Cluster) -> None:
    answer = try_plugin(GpuPacking, cluster, "two", {"keepFree": 1})
    assert answer.raw == {"GpuPacking": {"empty": 6, "half": 2}}
    assert answer.scores == {"empty": 0, "half": 67}


def test_some_gpus_stay_free(cluster: Cluster) -> None:
    answer = try_plugin(GpuPacking, cluster, "two", {"keepFree": 3})
    assert answer.feasible == ("empty",)
    assert answer.refused["half"] == ("node(s) would keep too few GPUs free",)


def test_a_pod_without_gpus_is_no_concern_of_it(cluster: Cluster) -> None:
    answer = try_plugin(GpuPacking, cluster, "web", {"keepFree": 8})
    assert answer.feasible == ("empty", "half", "none")
    assert answer.raw == {}


def test_a_negative_number_of_gpus_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="keepFree: Invalid value: -1"):
        try_plugin(GpuPacking, cluster, "two", {"keepFree": -1})


def test_kept_answers_are_those_the_plugin_would_give(cluster: Cluster) -> None:
    check_kept_answers(GpuPacking, cluster, {"keepFree": 1})
