"""Per-node plugins: what they read, how their results are used, and when results are cached."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.snapshot import Snapshot
from extender.config.errors import ConfigError
from extender.config.feature_gates import FeatureGates
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.tables.filter_table import compute_column
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.node_info import NodeInfo
from extender.framework.per_node.adapters import FilterReasons
from extender.framework.per_node.decorators import (
    filter_plugin,
    per_node_plugin,
    score_plugin,
    unresolvable_reason,
    unwrap_plugin,
)
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason
from extender.testing import (
    PluginFailedError,
    check_cached_results,
    make_cluster,
    make_node,
    make_pod,
    run_plugin,
    run_profile,
)

GPU = "example.com/gpu"
MODEL = "example.com/gpu-model"
CLUSTER = (
    make_node("big", cpu="8", labels={MODEL: "a100"}, **dict[str, Any]({GPU: "4"})),
    make_node("small", cpu="2500m", memory="1Gi", pods="3"),
    make_pod("running", node="big", cpu="1", memory="1Gi", **dict[str, Any]({GPU: "3"})),
    make_pod("also", node="big", namespace="shop", cpu="500m", labels={"app": "web"}),
    make_pod("web", cpu="1", annotations={MODEL: "a100"}),
    make_pod("other", cpu="1"),
)


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    """Options of the plugins below."""

    max_pods: int = 1


@filter_plugin("GpuModel")
def gpu_model(pod: Pod, node: NodeInfo) -> str | None:
    """Rejects nodes without the model in the pod's annotation."""
    return None if pod.metadata.annotations.get(MODEL) in {None, node.labels.get(MODEL)} else "node(s) lack the model"


@filter_plugin("Crowded", options=Limits, cacheable=True)
def crowded(pod: Pod, node: NodeInfo, options: Limits) -> FilterReasons:
    return unresolvable_reason("node(s) are crowded") if len(node.pods) > options.max_pods else None


@score_plugin("Cheapest", normalize=True, reverse=True, cacheable=True)
def cheapest(pod: Pod, node: NodeInfo) -> int:
    return node.allocatable("cpu") // 500


@per_node_plugin("Both", options=Limits, cacheable=True)
class Both:
    """Filters and scores."""

    def __init__(self, args: PluginArgs[Limits]) -> None:
        self.max_pods = args.options.max_pods

    def filter(self, pod: Pod, node: NodeInfo) -> FilterReasons:
        few = node.free("cpu") < 3000
        return tuple(
            text for text, wrong in (("too few cpus", few), ("too many pods", len(node.pods) > self.max_pods)) if wrong
        )

    def score(self, pod: Pod, node: NodeInfo) -> int:
        return 10 * len(node.pods)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD),)


def create_plugin(decorated: object) -> Any:
    """Create the plugin of a decorated function or class with the default options."""
    plugin_class: Any = unwrap_plugin(decorated)
    return plugin_class(PluginArgs(Limits(), FeatureGates()))


def rejected_mask(runtime: PluginRuntime, plugins: tuple[Any], snapshot: Snapshot, pod: Pod) -> list[bool]:
    """Whether each node is rejected, from cached results if there are any. *plugins* has one plugin."""
    pod_info = snapshot.make_pod_info(pod)
    columns, plan = runtime.filter_tables.get_columns(plugins, frozenset(), pod_info, snapshot, {})
    for plugin in plan.uncached:
        columns[plugin.name] = compute_column(plugin, pod_info, snapshot, None, runtime.runner)
    mask: list[bool] = columns[plugins[0].name].rejected.tolist()
    return mask


def test_a_cluster_of_a_test_has_what_vectorized_plugins_receive() -> None:
    cluster = make_cluster(*CLUSTER)
    assert cluster.pod_info("web").pod == cluster.pod("web")
    assert list(cluster.snapshot().names) == ["big", "small"]
    with pytest.raises(KeyError, match="there is no pod default/absent; the pods are default/running, shop/also"):
        cluster.pod_info("absent")


def test_a_node_info_has_the_node_and_its_pods() -> None:
    node = make_cluster(*CLUSTER).node("big")
    assert (node.name, node.labels[MODEL], node.annotations, node.taints) == ("big", "a100", {}, ())
    assert node.node.status.allocatable["cpu"] == "8"
    assert sorted(pod.pod.metadata.name for pod in node.pods) == ["also", "running"]
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
        ("small", "example.com/unknown", (0, 0, 0)),
    ],
    ids=str,
)
def test_amounts_are_whole_numbers_in_base_units(node: str, resource: str, amounts: tuple[int, int, int]) -> None:
    node_info = make_cluster(*CLUSTER).node(node)
    assert (node_info.allocatable(resource), node_info.requested(resource), node_info.free(resource)) == amounts


def test_requests_of_a_resource_that_no_node_has_are_counted() -> None:
    """A plugin may limit them by a label of the node, and NodeResourcesFit may ignore the resource."""
    running = make_pod("running", node="n", **dict[str, Any]({"example.com/license": "2"}))
    node_info = make_cluster(make_node("n"), running).node("n")
    assert node_info.requested("example.com/license") == 2
    assert node_info.allocatable("example.com/license") == 0


def test_a_decorated_function_can_be_called_directly() -> None:
    cluster = make_cluster(*CLUSTER)
    assert gpu_model(cluster.pod("web"), cluster.node("small")) == "node(s) lack the model"
    assert gpu_model(cluster.pod("web"), cluster.node("big")) is None
    assert gpu_model.__doc__ == "Rejects nodes without the model in the pod's annotation."


def test_a_text_rejects_a_node() -> None:
    decision = run_plugin(gpu_model, make_cluster(*CLUSTER), "web")
    assert (decision.feasible_nodes, decision.rejected) == (("big",), {"small": ("node(s) lack the model",)})
    assert decision.unresolvable == frozenset()


def test_preemption_skips_nodes_with_an_unresolvable_reason() -> None:
    decision = run_plugin(crowded, make_cluster(*CLUSTER), "web")
    assert (decision.feasible_nodes, decision.unresolvable) == (("small",), {"big"})
    assert unresolvable_reason("x") == Reason("x", Code.UNRESOLVABLE)


def test_options_come_from_the_profile() -> None:
    assert run_plugin(crowded, make_cluster(*CLUSTER), "web", {"maxPods": 2}).feasible_nodes == ("big", "small")


def test_an_option_of_a_wrong_type_is_named_with_its_path() -> None:
    with pytest.raises(ConfigError, match=r"args\.maxPods: expected an integer, got the string \"two\""):
        run_plugin(crowded, make_cluster(*CLUSTER), "web", {"maxPods": "two"})


def test_scores_are_normalized_in_proportion_and_reversed() -> None:
    decision = run_plugin(cheapest, make_cluster(*CLUSTER), "web")
    assert decision.raw_scores == {"Cheapest": {"big": 16, "small": 5}}
    assert decision.scores == {"big": 0, "small": 69}


def test_a_class_filters_with_several_reasons_and_scores() -> None:
    decision = run_plugin(Both, make_cluster(*CLUSTER), "web", {"maxPods": 2})
    assert decision.rejected == {"small": ("too few cpus",)}
    assert decision.scores == {"big": 20}
    decision = run_plugin(Both, make_cluster(*CLUSTER), "web", {"maxPods": -1})
    assert decision.rejected["big"] == ("too many pods",)
    assert set(decision.rejected["small"]) == {"too few cpus", "too many pods"}


def test_a_class_registers_its_events() -> None:
    assert create_plugin(Both).events_to_register() == (ClusterEventWithHint(EventResource.NODE, ActionType.ADD),)
    assert not hasattr(create_plugin(gpu_model), "events_to_register")


def test_a_profile_enables_plugins_with_weight_and_arguments() -> None:
    profile = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: GpuModel}]}
    filter: {enabled: [{name: Crowded}]}
    score: {enabled: [{name: Cheapest, weight: 7}], disabled: [{name: "*"}]}
  pluginConfig: [{name: Crowded, args: {maxPods: 2}}]
"""
    decision = run_profile(profile, make_cluster(*CLUSTER), "other", gpu_model, crowded, cheapest)
    assert decision.total_scores == {"big": 0, "small": 69 * 7}
    decision = run_profile(profile, make_cluster(*CLUSTER), "web", gpu_model, crowded, cheapest)
    assert decision.rejected_by == {"small": "GpuModel"}


def test_a_node_of_a_test_has_the_given_annotations() -> None:
    cluster = make_cluster(make_node("n", annotations={"example.com/rack": "7"}, pods="20"))
    assert cluster.node("n").annotations == {"example.com/rack": "7"}
    assert cluster.node("n").allocatable("pods") == 20


def test_a_node_and_a_pod_of_a_test_have_the_given_resources() -> None:
    gpu = "nvidia.com/gpu"
    cluster = make_cluster(make_node("n", resources={gpu: "4"}, cpu="8"), make_pod("p", requests={gpu: "1"}, cpu="2"))
    node = cluster.node("n")
    assert [node.allocatable(name) for name in ("cpu", gpu, "pods")] == [8000, 4, 110]
    assert cluster.pod_info("p").signature.requested_amounts == {"cpu": 2000, gpu: 1}


def test_an_unknown_pod_or_node_of_a_test_is_an_error_that_names_the_known_ones() -> None:
    cluster = make_cluster(make_node("a"), make_node("b"), make_pod("web"))
    with pytest.raises(KeyError, match="there is no pod default/wbe; the pods are default/web"):
        run_plugin(gpu_model, cluster, "wbe")
    with pytest.raises(KeyError, match="there is no node c; the nodes are a, b"):
        cluster.node("c")


def test_a_node_of_a_test_has_the_given_spec() -> None:
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    cluster = make_cluster(make_node("n1", spec={"taints": [taint]}), make_pod("web"))

    decision = run_profile(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}", cluster, "web"
    )

    assert decision.rejected == {"n1": ("node(s) had untolerated taint(s)",)}


@pytest.mark.parametrize(
    "plugin", [gpu_model, crowded, cheapest, Both], ids=["GpuModel", "Crowded", "Cheapest", "Both"]
)
def test_cached_results_equal_fresh_ones(plugin: object) -> None:
    pending = [make_pod(f"more-{number}", cpu="1") for number in range(5)]
    check_cached_results(plugin, make_cluster(*CLUSTER, *pending))


def test_a_cacheable_rule_that_reads_an_annotation_fails_the_check() -> None:
    """The rule never sees an annotation, so it accepted all nodes, and the check found no difference."""

    @filter_plugin("Reader", cacheable=True)
    def reader(pod: Pod, node: NodeInfo) -> str | None:
        return "node(s) have another model" if node.labels.get(MODEL) != pod.metadata.annotations.get(MODEL) else None

    with pytest.raises(PluginFailedError, match=r"pod default/web: the cached result is .* a fresh one is"):
        check_cached_results(reader, make_cluster(*CLUSTER))


def test_only_changed_nodes_are_filtered_again() -> None:
    calls: list[str] = []

    @filter_plugin("Counting", cacheable=True)
    def counting(pod: Pod, node: NodeInfo) -> str | None:
        calls.append(node.name)
        return None

    plugins = (create_plugin(counting),)
    cluster, runtime = make_cluster(*CLUSTER, make_node("third"), make_node("fourth")), wiring.make_runtime()
    for number in range(3):
        pod = msgspec.structs.replace(
            cluster.pod("web"), metadata=msgspec.structs.replace(cluster.pod("web").metadata, name=f"web-{number}")
        )
        with cluster.cache.read() as snapshot:
            assert rejected_mask(runtime, plugins, snapshot, pod) == [False, False, False, False]
        cluster.cache.assume(pod, "small")
    assert calls == ["big", "small", "third", "fourth", "small", "small"]


def test_a_plugin_cached_by_signature_receives_only_what_pods_of_the_signature_share() -> None:
    received: list[tuple[str, dict[str, str], dict[str, str]]] = []

    @filter_plugin("Looks", cacheable=True)
    def looks(pod: Pod, node: NodeInfo) -> str | None:
        received.append((pod.metadata.name, pod.metadata.annotations, pod.metadata.labels))
        return None

    run_plugin(
        looks, make_cluster(make_node("n"), make_pod("web", labels={"app": "web"}, annotations={"a": "b"})), "web"
    )
    assert received == [("", {}, {"app": "web"})]


def test_results_are_cached_by_the_key_of_the_author() -> None:
    keyed = filter_plugin("Keyed", cacheable=lambda pod: pod.metadata.annotations.get(MODEL))(gpu_model)
    cluster = make_cluster(*CLUSTER)
    plugins = (create_plugin(keyed),)
    runtime, snapshot = wiring.make_runtime(), cluster.cache.snapshot()
    assert rejected_mask(runtime, plugins, snapshot, cluster.pod("web")) == [False, True]
    assert rejected_mask(runtime, plugins, snapshot, cluster.pod("other")) == [False, False]


def test_a_plugin_sees_nominated_pods() -> None:
    # A node takes two pods; a nominated pod of the same priority counts as the second.
    cluster = make_cluster(make_node("n"), make_pod("running", node="n"), make_pod("first"), make_pod("second"))
    cluster.cache.nominate(cluster.pod("first"), "n")
    decision = run_plugin(crowded, cluster, "second")
    assert decision.rejected == {"n": ("node(s) are crowded",)}
