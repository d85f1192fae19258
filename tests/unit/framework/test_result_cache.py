"""Cached results: the rows of a table that are stale, the plugins of a table, and node sets."""

from typing import Any

import numpy as np
import pytest

from extender.analysis.pod_placer import PodPlacer
from extender.app.wiring import make_runtime
from extender.cache.hypothesis import Hypothesis
from extender.cycle.decision import ScheduleResult
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_runner import PluginRunner
from extender.framework.result_cache import NodeSet, ResultCache, ResultTable, TableStore
from tests.build import make_cluster, make_node, make_pod
from tests.unit.planning.clusters import SETUP

NAMES = ("a", "b", "c", "d", "e", "f")
RUNNER = PluginRunner()


@pytest.mark.parametrize(
    ("depends_on", "after_pod", "after_node"),
    [
        (DependsOn.NODE, [], [2]),
        (DependsOn.NODE_AND_PODS, [1], [1, 2]),
        (DependsOn.ALL_NODES, [], None),
    ],
)
def test_stale_rows_depend_on_what_the_plugins_read(
    depends_on: DependsOn, after_pod: list[int], after_node: list[int] | None
) -> None:
    cluster = make_cluster(*map(make_node, NAMES))
    table = ResultTable([depends_on], cluster.snapshot(), 1)
    assert table.is_current(cluster.snapshot())

    cluster.add_or_update_pod(make_pod("running", node="b"))
    snapshot = cluster.snapshot()
    assert table.is_current(snapshot) is (not after_pod)
    stale_rows = table.find_stale_rows(snapshot)
    assert stale_rows is not None
    assert stale_rows.tolist() == after_pod

    cluster.add_or_update_node(make_node("c", labels={"new": "label"}))
    snapshot = cluster.snapshot()
    assert not table.is_current(snapshot)
    stale_rows = table.find_stale_rows(snapshot)
    assert (None if stale_rows is None else stale_rows.tolist()) == after_node
    table.mark_current(snapshot)
    assert table.is_current(snapshot)


def test_all_rows_are_stale_if_most_nodes_changed() -> None:
    cluster = make_cluster(*map(make_node, NAMES))
    table = ResultTable([DependsOn.NODE_AND_PODS], cluster.snapshot(), 1)
    for name in NAMES[:4]:
        cluster.add_or_update_pod(make_pod(f"on-{name}", node=name))
    assert table.find_stale_rows(cluster.snapshot()) is not None
    cluster.add_or_update_pod(make_pod("on-e", node="e"))
    assert table.find_stale_rows(cluster.snapshot()) is None


def test_all_rows_are_stale_for_another_number_of_nodes_and_for_an_older_snapshot() -> None:
    cluster = make_cluster(*map(make_node, NAMES))
    old_snapshot = cluster.snapshot()
    table = ResultTable([DependsOn.NODE], old_snapshot, 1)
    cluster.add_or_update_node(make_node("g"))
    assert table.find_stale_rows(cluster.snapshot()) is None

    table = ResultTable([DependsOn.NODE], cluster.snapshot(), 1)
    assert table.find_stale_rows(old_snapshot) is None


@pytest.mark.parametrize(("depends_on", "stale"), [(DependsOn.NODE, []), (DependsOn.NODE_AND_PODS, [3])])
def test_a_hypothesis_shares_the_rows_that_it_did_not_change(depends_on: DependsOn, stale: list[int]) -> None:
    cluster = make_cluster(*map(make_node, NAMES))
    snapshot = cluster.snapshot()
    table = ResultTable([depends_on], snapshot, 1)
    hypothesis = Hypothesis(snapshot, shares_results=True)
    hypothesis.assume_pod(snapshot.make_pod_info(make_pod("new")), "d")

    for other in (hypothesis.snapshot(), snapshot):  # to the hypothesis and back
        stale_rows = table.find_stale_rows(other)
        assert stale_rows is not None
        assert stale_rows.tolist() == (stale if other is not snapshot or table.is_current(snapshot) is False else [])
        table.mark_current(other)


class KeyedPlugin:
    """A plugin with a constant key."""

    def __init__(self, name: str, depends_on: DependsOn = DependsOn.NODE, key: Any = "key") -> None:
        self.name, self.filter_depends_on, self._key = name, depends_on, key

    def filter_cache_key(self, _pod: Any) -> Any:
        if isinstance(self._key, Exception):
            raise self._key
        return self._key


class PluginWithoutKey:
    """A plugin that is not cached."""

    name = "Plain"


def test_plugins_that_read_pods_have_another_table() -> None:
    on_nodes, on_pods, plain = KeyedPlugin("A"), KeyedPlugin("B", DependsOn.NODE_AND_PODS), PluginWithoutKey()
    skipped, without_key, failing = KeyedPlugin("C"), KeyedPlugin("D", key=None), KeyedPlugin("E", key=ValueError("no"))
    entries = on_pods, plain, skipped, on_nodes, without_key, failing
    store = TableStore[ResultTable]("Filter", RUNNER, lambda plugin: plugin)
    plan, tables, errors = store.find(entries, frozenset({"C"}), make_pod())

    assert plan.entries == (on_pods, plain, on_nodes, without_key, failing)
    assert plan.uncached == (plain, without_key, failing)
    assert [(key[0].entries, key[1:], table) for key, table in tables] == [
        ((on_nodes,), ("key",), None),
        ((on_pods,), ("key",), None),
    ]
    assert {name: str(error) for name, error in errors.items()} == {
        "E": 'running "E" filter plugin: filter_cache_key: ValueError: no'
    }


def test_a_table_is_found_by_its_key() -> None:
    entries = (KeyedPlugin("A"),)
    store = TableStore[ResultTable]("Filter", RUNNER, lambda plugin: plugin)
    table = ResultTable([DependsOn.NODE], make_cluster().snapshot(), 1)
    store.add(store.find(entries, frozenset(), make_pod())[1][0][0], table)
    assert store.find(entries, frozenset(), make_pod())[1][0][1] is table
    assert store.find((KeyedPlugin("A"),), frozenset(), make_pod())[1][0][1] is None


def test_random_tables_are_evicted_if_they_are_too_large() -> None:
    store = TableStore[ResultTable]("Filter", RUNNER, lambda plugin: plugin)
    table = ResultTable([DependsOn.NODE], make_cluster().snapshot(), (2 << 20) - 2048)  # room for 24
    plugins = [(KeyedPlugin("A", key=number),) for number in range(30)]
    keys = [store.find(entries, frozenset(), make_pod())[1][0][0] for entries in plugins]
    for key in keys:
        store.add(key, table)
    found = [store.find(entries, frozenset(), make_pod())[1][0][1] is table for entries in plugins]
    assert found.count(True) == 24
    assert found[-1]


def test_a_store_has_at_most_24_576_tables_however_few_nodes_they_have() -> None:
    store = TableStore[ResultTable]("Filter", RUNNER, lambda plugin: plugin)
    small = ResultTable([DependsOn.NODE], make_cluster().snapshot(), 0)
    for number in range(24_576):
        store.add((number,), small)
    assert len(store._tables) == 24_576
    for number in range(24_576, 30_000):
        store.add((number,), small)
        assert 24_192 < len(store._tables) <= 24_576
    store.add(("large",), ResultTable([DependsOn.NODE], make_cluster().snapshot(), (2 << 20) - 2048))
    assert len(store._tables) == 24


def test_the_tables_of_a_pod_of_more_than_8_kib_are_not_stored() -> None:
    """The keys of 400 pods with image names of a megabyte kept 370 MB after the pods were gone."""
    cache, runtime = make_cluster(make_node("n1"), make_node("n2")), make_runtime()
    for name, size, stored in (("small", 7 << 10, 2), ("large", 9 << 10, 2)):
        pod = make_pod(name, spec={"containers": [{"name": "app", "image": size * "x"}]})
        assert isinstance(PodPlacer(cache, SETUP.profiles, runtime).find_node(pod), ScheduleResult)
        for tables in (runtime.filter_tables, runtime.score_tables):
            assert len(tables._store._tables) == stored


def test_a_node_set_is_reused_for_an_equal_mask() -> None:
    cache, mask = ResultCache(), np.array([True, False, True])
    node_set = cache.get_node_set(mask)
    assert cache.get_node_set(mask.copy()) is node_set
    assert (node_set.rows.tolist(), node_set.is_all_nodes) == ([0, 2], False)
    values = np.array([5, 6, 7])
    assert values[node_set.selection].tolist() == [5, 7]
    assert NodeSet.from_mask(np.ones(2, dtype=np.bool_)).is_all_nodes
