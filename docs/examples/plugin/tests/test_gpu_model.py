"""GpuModel, called as the plain class it is, and as a plugin."""

import pytest
from gpu_plugins.gpu_model import GpuModel, GpuModelArgs

from extender.config.faults import ConfigError
from extender.config.gates import FeatureGates
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason
from extender.testing import Cluster, a_cluster, a_node, a_pod, check_kept_answers, try_plugin

MODEL = "example.com/gpu-model"


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster(
        a_node("a100", labels={MODEL: "a100"}),
        a_node("h200", labels={MODEL: "h200"}),
        a_node("plain"),
        a_pod("trainer", annotations={MODEL: "a100"}),
        a_pod("web"),
    )


def test_the_class_can_be_called_by_itself(cluster: Cluster) -> None:
    plugin = GpuModel(Setup(GpuModelArgs(reserved=("h200",)), FeatureGates()))
    trainer = cluster.pod("trainer")
    assert plugin.filter(trainer, cluster.node("a100")) is None
    assert plugin.filter(trainer, cluster.node("h200")) == "node(s) have a reserved GPU model"
    assert plugin.filter(trainer, cluster.node("plain")) == Reason("node(s) lack the GPU model", Code.UNRESOLVABLE)


def test_a_pod_that_wants_a_model_goes_where_it_is(cluster: Cluster) -> None:
    answer = try_plugin(GpuModel, cluster, "trainer")
    assert answer.feasible == ("a100",)
    assert answer.refused == {"h200": ("node(s) lack the GPU model",), "plain": ("node(s) lack the GPU model",)}
    assert answer.final == {"h200", "plain"}


def test_a_pod_that_wants_none_leaves_such_nodes_alone(cluster: Cluster) -> None:
    assert try_plugin(GpuModel, cluster, "web").scores == {"a100": 0, "h200": 0, "plain": 100}


def test_the_label_is_the_profile_s_choice(cluster: Cluster) -> None:
    answer = try_plugin(GpuModel, cluster, "trainer", {"label": "kubernetes.io/hostname"})
    assert answer.feasible == ("a100",)


def test_an_unknown_argument_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match=r'args\.lable: unknown field "lable"; did you mean "label"'):
        try_plugin(GpuModel, cluster, "trainer", {"lable": "x"})


def test_answers_are_the_same_however_often_they_are_asked_for(cluster: Cluster) -> None:
    check_kept_answers(GpuModel, cluster)
