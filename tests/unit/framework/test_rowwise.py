"""Functions and small classes as plugins: what they see, what becomes of their answers, and when answers are kept."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from extender import wiring
from extender.cluster.snapshot import Snapshot
from extender.config.faults import ConfigError
from extender.config.gates import FeatureGates
from extender.decide.engine import Engine
from extender.framework.changes import Action, Registration, Resource
from extender.framework.node_info import NodeInfo
from extender.framework.row_adapters import Answer
from extender.framework.rowwise import filter_plugin, final, plugin_class, row_plugin, score_plugin
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason
from extender.objects.pod import Pod
from extender.testing import a_cluster, a_node, a_pod, check_kept_answers, try_plugin, try_profile

GPU = "example.com/gpu"
MODEL = "example.com/gpu-model"
CLUSTER = (
    a_node("big", cpu="8", labels={MODEL: "a100"}, **{GPU: "4"}),
    a_node("small", cpu="2500m", memory="1Gi", pods="3"),
    a_pod("there", node="big", cpu="1", memory="1Gi", **{GPU: "3"}),
    a_pod("also", node="big", namespace="shop", cpu="500m", labels={"app": "web"}),
    a_pod("web", cpu="1", annotations={MODEL: "a100"}),
    a_pod("other", cpu="1"),
)


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    """Options of the plugins below."""

    most_pods: int = 1


@filter_plugin("GpuModel")
def gpu_model(pod: Pod, node: NodeInfo) -> str | None:
    """Refuses nodes without the model a pod names."""
    return None if pod.metadata.annotations.get(MODEL) in {None, node.labels.get(MODEL)} else "node(s) lack the model"


@filter_plugin("Crowded", options=Limits, keep=True)
def crowded(pod: Pod, node: NodeInfo, options: Limits) -> Answer:
    return final("node(s) are crowded") if len(node.pods) > options.most_pods else None


@score_plugin("Cheapest", normalize=True, reverse=True, keep=True)
def cheapest(pod: Pod, node: NodeInfo) -> int:
    return node.allocatable("cpu") // 500


@row_plugin("Both", options=Limits, keep=True)
class Both:
    """Filters and scores."""

    def __init__(self, setup: Setup[Limits]) -> None:
        self.most = setup.options.most_pods

    def filter(self, pod: Pod, node: NodeInfo) -> Answer:
        few = node.free("cpu") < 3000
        return tuple(
            text for text, wrong in (("too few cpus", few), ("too many pods", len(node.pods) > self.most)) if wrong
        )

    def score(self, pod: Pod, node: NodeInfo) -> int:
        return 10 * len(node.pods)

    def events(self) -> Sequence[Registration]:
        return (Registration(Resource.NODE, Action.ADD),)


def built(thing: object) -> Any:
    """The plugin made from what is decorated, with the default options."""
    made: Any = plugin_class(thing)
    return made(Setup(Limits(), FeatureGates()))


def refused(engine: Engine, plugin: Any, snapshot: Snapshot, pod: Pod) -> list[bool]:
    """Whether each node is refused, from kept answers where there are some."""
    answers: list[bool] = engine.columns.filter(
        plugin, snapshot.query(pod), snapshot, None, engine.run
    ).refused.tolist()
    return answers


def test_a_node_is_seen_with_what_is_on_it() -> None:
    node = a_cluster(*CLUSTER).node("big")
    assert (node.name, node.labels[MODEL], node.annotations, node.taints) == ("big", "a100", {}, ())
    assert node.node.status.allocatable["cpu"] == "8"
    assert sorted(pod.pod.metadata.name for pod in node.pods) == ["also", "there"]
    assert repr(node) == "NodeInfo('big')"


@pytest.mark.parametrize(
    ("node", "resource", "amounts"),
    [
        ("big", "cpu", (8000, 1500, 6500)),
        ("big", "memory", (16 << 30, 1 << 30, 15 << 30)),
        ("big", GPU, (4, 3, 1)),
        ("big", "pods", (110, 2, 108)),
        ("small", "cpu", (2500, 0, 2500)),
        ("small", GPU, (0, 0, 0)),
        ("small", "example.com/never-heard-of", (0, 0, 0)),
    ],
    ids=str,
)
def test_amounts_are_whole_numbers_in_base_units(node: str, resource: str, amounts: tuple[int, int, int]) -> None:
    seen = a_cluster(*CLUSTER).node(node)
    assert (seen.allocatable(resource), seen.requested(resource), seen.free(resource)) == amounts


def test_a_decorated_function_stays_the_function_it_was() -> None:
    cluster = a_cluster(*CLUSTER)
    assert gpu_model(cluster.pod("web"), cluster.node("small")) == "node(s) lack the model"
    assert gpu_model(cluster.pod("web"), cluster.node("big")) is None
    assert gpu_model.__doc__ == "Refuses nodes without the model a pod names."


def test_a_text_refuses_a_node() -> None:
    answer = try_plugin(gpu_model, a_cluster(*CLUSTER), "web")
    assert (answer.feasible, answer.refused) == (("big",), {"small": ("node(s) lack the model",)})
    assert answer.final == frozenset()


def test_a_final_reason_tells_preemption_to_leave_the_node_alone() -> None:
    answer = try_plugin(crowded, a_cluster(*CLUSTER), "web")
    assert (answer.feasible, answer.final) == (("small",), {"big"})
    assert final("x") == Reason("x", Code.UNRESOLVABLE)


def test_options_come_from_the_profile() -> None:
    assert try_plugin(crowded, a_cluster(*CLUSTER), "web", {"mostPods": 2}).feasible == ("big", "small")


def test_an_option_of_a_wrong_type_is_named_with_its_path() -> None:
    with pytest.raises(ConfigError, match=r"args\.mostPods: expected an integer, got the string \"two\""):
        try_plugin(crowded, a_cluster(*CLUSTER), "web", {"mostPods": "two"})


def test_scores_are_normalized_in_proportion_and_turned_round() -> None:
    answer = try_plugin(cheapest, a_cluster(*CLUSTER), "web")
    assert answer.raw == {"Cheapest": {"big": 16, "small": 5}}
    assert answer.scores == {"big": 0, "small": 69}


def test_a_class_filters_with_several_reasons_and_scores() -> None:
    answer = try_plugin(Both, a_cluster(*CLUSTER), "web", {"mostPods": 2})
    assert answer.refused == {"small": ("too few cpus",)}
    assert answer.scores == {"big": 20}
    answer = try_plugin(Both, a_cluster(*CLUSTER), "web", {"mostPods": -1})
    assert answer.refused["big"] == ("too many pods",)
    assert set(answer.refused["small"]) == {"too few cpus", "too many pods"}


def test_a_class_says_itself_what_wakes_its_pods() -> None:
    assert built(Both).events() == (Registration(Resource.NODE, Action.ADD),)
    assert not hasattr(built(gpu_model), "events")


def test_plugins_stand_in_an_ordinary_profile_with_their_weight_and_arguments() -> None:
    profile = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: GpuModel}]}
    filter: {enabled: [{name: Crowded}]}
    score: {enabled: [{name: Cheapest, weight: 7}], disabled: [{name: "*"}]}
  pluginConfig: [{name: Crowded, args: {mostPods: 2}}]
"""
    answer = try_profile(profile, a_cluster(*CLUSTER), "other", gpu_model, crowded, cheapest)
    assert answer.totals == {"big": 0, "small": 69 * 7}
    answer = try_profile(profile, a_cluster(*CLUSTER), "web", gpu_model, crowded, cheapest)
    assert answer.refused_by == {"small": "GpuModel"}


@pytest.mark.parametrize(
    "plugin", [gpu_model, crowded, cheapest, Both], ids=["GpuModel", "Crowded", "Cheapest", "Both"]
)
def test_kept_answers_are_those_the_plugin_would_give(plugin: object) -> None:
    waiting = [a_pod(f"more-{number}", cpu="1") for number in range(5)]
    check_kept_answers(plugin, a_cluster(*CLUSTER, *waiting))


def test_only_nodes_that_were_written_are_asked_about_again() -> None:
    asked: list[str] = []

    @filter_plugin("Counting", keep=True)
    def counting(pod: Pod, node: NodeInfo) -> str | None:
        asked.append(node.name)
        return None

    plugin = built(counting)
    cluster, engine = a_cluster(*CLUSTER, a_node("third"), a_node("fourth")), wiring.engine()
    for number in range(3):
        pod = msgspec.structs.replace(
            cluster.pod("web"), metadata=msgspec.structs.replace(cluster.pod("web").metadata, name=f"web-{number}")
        )
        snapshot = cluster.state.snapshot()
        assert refused(engine, plugin, snapshot, pod) == [False, False, False, False]
        del snapshot
        cluster.state.assume(pod, "small")
    assert asked == ["big", "small", "third", "fourth", "small", "small"]


def test_with_answers_kept_by_shape_a_pod_shows_only_what_its_shape_shares() -> None:
    seen: list[tuple[str, dict[str, str], dict[str, str]]] = []

    @filter_plugin("Looks", keep=True)
    def looks(pod: Pod, node: NodeInfo) -> str | None:
        seen.append((pod.metadata.name, pod.metadata.annotations, pod.metadata.labels))
        return None

    try_plugin(looks, a_cluster(a_node("n"), a_pod("web", labels={"app": "web"}, annotations={"a": "b"})), "web")
    assert seen == [("", {}, {"app": "web"})]


def test_a_key_of_one_s_own_keeps_answers_apart_that_differ_in_an_annotation() -> None:
    keyed = filter_plugin("Keyed", keep=lambda pod: pod.metadata.annotations.get(MODEL))(gpu_model)
    cluster = a_cluster(*CLUSTER)
    made = built(keyed)
    engine, snapshot = wiring.engine(), cluster.state.snapshot()
    assert refused(engine, made, snapshot, cluster.pod("web")) == [False, True]
    assert refused(engine, made, snapshot, cluster.pod("other")) == [False, False]


def test_a_plugin_sees_pods_that_are_only_nominated() -> None:
    # Two pods may stand on a node at most; one nominated pod of the same priority counts as the second.
    cluster = a_cluster(a_node("n"), a_pod("there", node="n"), a_pod("first"), a_pod("second"))
    cluster.state.nominate(cluster.pod("first"), "n")
    answer = try_plugin(crowded, cluster, "second")
    assert answer.refused == {"n": ("node(s) are crowded",)}
