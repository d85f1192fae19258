"""GpuModel, called directly and run as a plugin."""

import pytest
from gpu_plugins.gpu_model import GpuModel, GpuModelArgs

from extender.plugin import Code, ConfigError, FeatureGates, PluginArgs, Reason
from extender.testing import Cluster, check_cached_results, make_cluster, make_node, make_pod, run_plugin

MODEL = "example.com/gpu-model"


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster(
        make_node("a100", labels={MODEL: "a100"}),
        make_node("h200", labels={MODEL: "h200"}),
        make_node("plain"),
        make_pod("trainer", annotations={MODEL: "a100"}),
        make_pod("web"),
    )


def test_the_class_can_be_called_directly(cluster: Cluster) -> None:
    plugin = GpuModel(PluginArgs(GpuModelArgs(reserved=("h200",)), FeatureGates()))
    trainer = cluster.pod("trainer")
    assert plugin.filter(trainer, cluster.node("a100")) is None
    assert plugin.filter(trainer, cluster.node("h200")) == "node(s) have a reserved GPU model"
    assert plugin.filter(trainer, cluster.node("plain")) == Reason("node(s) lack the GPU model", Code.UNRESOLVABLE)


def test_a_pod_that_wants_a_model_goes_to_nodes_that_have_it(cluster: Cluster) -> None:
    decision = run_plugin(GpuModel, cluster, "trainer")
    assert decision.feasible_nodes == ("a100",)
    assert decision.rejected == {"h200": ("node(s) lack the GPU model",), "plain": ("node(s) lack the GPU model",)}
    assert decision.unresolvable == {"h200", "plain"}


def test_a_pod_that_wants_no_model_avoids_nodes_with_gpus(cluster: Cluster) -> None:
    assert run_plugin(GpuModel, cluster, "web").scores == {"a100": 0, "h200": 0, "plain": 100}


def test_the_label_is_an_argument(cluster: Cluster) -> None:
    decision = run_plugin(GpuModel, cluster, "trainer", {"label": "kubernetes.io/hostname"})
    assert decision.feasible_nodes == ("a100",)


def test_an_unknown_argument_is_rejected(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match=r'args\.lable: unknown field "lable"; did you mean "label"'):
        run_plugin(GpuModel, cluster, "trainer", {"lable": "x"})


def test_cached_results_equal_fresh_ones(cluster: Cluster) -> None:
    check_cached_results(GpuModel, cluster)
