"""The choice of one node: the highest total of the requested nodes, ties by chance, errors and rejections."""

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from extender.cache.cache import Cache
from extender.cycle.plugin_runtime import PluginRuntime
from extender.extender_api.best_node.choice import NodeChoice, PluginScore, choose_node
from extender.extender_api.node_names import NodeNames
from extender.extender_api.requested_nodes import find_nodes_by_name
from extender.framework.status import Code, Reason, Status
from tests.build import make_cluster, make_node, make_pod
from tests.fake_plugins import FixedScore, RaisingPlugin, RejectingFilter, RejectingPreFilter, make_profile

NODE_NAMES = ("n1", "n2", "n3", "n4")
WEB = make_pod("web")


def choose(
    *plugins: Any, names: tuple[str, ...] = NODE_NAMES, cluster: Cache | None = None, seed: int = 0, weight: int = 1
) -> NodeChoice | Status | None:
    snapshot = (cluster or make_cluster(*map(make_node, NODE_NAMES))).snapshot()
    requested_nodes = find_nodes_by_name(NodeNames(list(names)), snapshot, PluginRuntime())
    return choose_node(
        snapshot.make_pod_info(WEB), make_profile(*plugins, weight=weight), requested_nodes, Random(seed)
    )


def test_the_node_with_the_highest_total_is_chosen_with_its_scores() -> None:
    assert choose(FixedScore({"n1": 20, "n2": 90, "n3": 70}), weight=3) == NodeChoice(
        "n2", 1, 4, 1, 270, {"FixedScore": PluginScore(90, 90, 3)}
    )


def test_only_requested_nodes_that_fit_are_chosen() -> None:
    plugins = (FixedScore({"n1": 20, "n2": 90, "n3": 70, "n4": 30}), RejectingFilter({Reason("no"): ["n3"]}))
    choice = choose(*plugins, names=("n4", "new", "n3", "n1"))
    assert isinstance(choice, NodeChoice)
    assert (choice.node_name, choice.position, choice.feasible_count, choice.total) == ("n4", 0, 2, 30)


def test_the_only_node_that_fits_is_chosen_without_scores() -> None:
    class RaisesWhileScoring(RaisingPlugin):
        filter = RejectingFilter.filter
        nodes_by_reason = {Reason("no"): ["n1", "n2", "n3"]}  # noqa: RUF012

    assert choose(RaisesWhileScoring(), names=("n2", "n4")) == NodeChoice("n4", 1, 1)


def test_no_node_is_chosen_if_none_fits() -> None:
    assert choose(RejectingFilter({Reason("no"): None})) is None
    assert choose(RejectingFilter({Reason("no"): ["n1"]}), names=("n1", "new")) is None
    assert choose(RejectingPreFilter(Status(Code.UNSCHEDULABLE, ("no",)))) is None
    assert choose(FixedScore({}), names=()) is None
    assert choose(FixedScore({}), cluster=Cache()) is None


def test_an_error_of_a_plugin_is_returned() -> None:
    choice = choose(RaisingPlugin())
    assert isinstance(choice, Status)
    assert choice.message == 'running "RaisingPlugin" filter plugin: ZeroDivisionError: a bug'

    class RaisesWhileScoring(RaisingPlugin):
        def filter(self, pod: Any, nodes: Any, state: Any) -> tuple[()]:
            return ()

    choice = choose(RaisesWhileScoring())
    assert isinstance(choice, Status)
    assert choice.message == ('running Score plugins: plugin "RaisingPlugin" failed with: ZeroDivisionError: a bug')


def test_each_of_the_best_nodes_is_chosen_about_equally_often() -> None:
    plugin = FixedScore({"n1": 9, "n2": 5, "n3": 9, "n4": 9})
    choices = [choose(plugin, seed=seed) for seed in range(300)]
    counts = Counter(choice.node_name for choice in choices if isinstance(choice, NodeChoice))
    assert set(counts) == {"n1", "n3", "n4"}
    assert min(counts.values()) > 70
    assert {choice.best_count for choice in choices if isinstance(choice, NodeChoice)} == {3}


SCORES = st.dictionaries(st.sampled_from(NODE_NAMES), st.integers(0, 5), min_size=len(NODE_NAMES))


@given(
    first=SCORES,
    second=SCORES,
    rejected=st.lists(st.sampled_from(NODE_NAMES)),
    names=st.lists(st.sampled_from((*NODE_NAMES, "new")), unique=True),
    seed=st.integers(0, 99),
)
def test_the_chosen_node_has_the_highest_total_of_the_requested_nodes_that_fit(
    first: dict[str, int], second: dict[str, int], rejected: list[str], names: list[str], seed: int
) -> None:
    class OtherScore(FixedScore):
        name = "OtherScore"

    plugins = (FixedScore(first), OtherScore(second), RejectingFilter({Reason("no"): rejected}))
    choice = choose(*plugins, names=tuple(names), seed=seed)
    totals = {name: first[name] + second[name] for name in names if name in first and name not in rejected}
    if not totals:
        assert choice is None
        return
    assert isinstance(choice, NodeChoice)
    assert totals[choice.node_name] == max(totals.values())
    assert names[choice.position] == choice.node_name
    assert choice.feasible_count == len(totals)
