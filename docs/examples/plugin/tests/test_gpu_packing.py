"""GpuPacking on small clusters."""

import pytest
from gpu_plugins.gpu_packing import GpuPacking

from extender.plugin import ConfigError
from extender.testing import Cluster, check_cached_results, make_cluster, make_node, make_pod, run_plugin

GPU = "example.com/gpu"


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster(
        make_node("empty", resources={GPU: "8"}),
        make_node("half", resources={GPU: "8"}),
        make_node("none"),
        make_pod("running", node="half", requests={GPU: "4"}),
        make_pod("two", requests={GPU: "2"}),
        make_pod("web", cpu="1"),
        make_pod("three", requests={GPU: "3"}),
        make_pod("three-more", requests={GPU: "3"}),
    )


def test_the_node_with_the_fewest_free_gpus_scores_highest(cluster: Cluster) -> None:
    decision = run_plugin(GpuPacking, cluster, "two", {"keepFree": 1})
    assert decision.raw_scores == {"GpuPacking": {"empty": 6, "half": 2}}
    assert decision.scores == {"empty": 0, "half": 67}


def test_some_gpus_stay_free(cluster: Cluster) -> None:
    decision = run_plugin(GpuPacking, cluster, "two", {"keepFree": 3})
    assert decision.feasible_nodes == ("empty",)
    assert decision.rejected["half"] == ("node(s) would keep too few GPUs free",)


def test_a_pod_without_gpu_requests_skips_the_plugin(cluster: Cluster) -> None:
    decision = run_plugin(GpuPacking, cluster, "web", {"keepFree": 8})
    assert decision.feasible_nodes == ("empty", "half", "none")
    assert decision.raw_scores == {}


def test_a_negative_number_of_gpus_is_rejected(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="keepFree: Invalid value: -1"):
        run_plugin(GpuPacking, cluster, "two", {"keepFree": -1})


def test_cached_results_equal_fresh_ones(cluster: Cluster) -> None:
    check_cached_results(GpuPacking, cluster, {"keepFree": 1})
