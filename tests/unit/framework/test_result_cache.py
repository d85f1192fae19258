"""Cached filter results and scores: which rows are computed again, and when a column is computed anew."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_runner import PluginRunner
from extender.framework.result_cache import FilterColumn, NodeSet, ResultCache
from extender.framework.status import Reason, Rejection
from tests.build import make_cluster, make_node, make_pod

NODES = [make_node(name) for name in ("a", "b", "c", "d")]
OCCUPIED = Reason("has pods")
RUNNER = PluginRunner()


class OccupiedNodes:
    """Rejects nodes with pods and scores by the number of pods; records the node names of each call."""

    name = "OccupiedNodes"
    filter_depends_on = score_depends_on = DependsOn.NODE_AND_PODS

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def filter_cache_key(self, pod: Any) -> Hashable | None:
        return ""

    score_cache_key = filter_cache_key

    def filter(self, pod: Any, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        self.calls.append(list(nodes.names))
        return (Rejection(nodes.pod_count > 0, OCCUPIED),)

    def score(self, pod: Any, nodes: NodeView, state: Any) -> IntArray:
        self.calls.append(list(nodes.names))
        return nodes.pod_count * 60


def filter_column(cache: ResultCache, plugin: OccupiedNodes, snapshot: Snapshot) -> FilterColumn:
    return cache.get_filter_column(plugin, snapshot.make_pod_info(make_pod("web")), snapshot, None, RUNNER)


def test_only_changed_nodes_are_filtered_again() -> None:
    cluster, cache, plugin = make_cluster(*NODES), ResultCache(), OccupiedNodes()
    assert filter_column(cache, plugin, cluster.snapshot()).rejected.tolist() == [False] * 4
    filter_column(cache, plugin, cluster.snapshot())

    cluster.add_or_update_pod(make_pod("running", node="b"))
    column = filter_column(cache, plugin, cluster.snapshot())

    assert plugin.calls == [["a", "b", "c", "d"], ["b"]]
    assert column.rejected.tolist() == [False, True, False, False]
    assert column.masks_by_reason[OCCUPIED].tolist() == [False, True, False, False]


def test_a_disabled_cache_filters_all_nodes_each_time() -> None:
    cluster, cache, plugin = make_cluster(*NODES), ResultCache(enabled=False), OccupiedNodes()
    filter_column(cache, plugin, cluster.snapshot())
    filter_column(cache, plugin, cluster.snapshot())
    assert plugin.calls == [["a", "b", "c", "d"]] * 2


def test_a_column_is_computed_anew_if_most_nodes_changed() -> None:
    cluster, cache, plugin = make_cluster(*NODES), ResultCache(), OccupiedNodes()
    filter_column(cache, plugin, cluster.snapshot())
    for name in ("a", "b", "c", "d"):
        cluster.add_or_update_pod(make_pod(f"on-{name}", node=name))
    assert filter_column(cache, plugin, cluster.snapshot()).rejected.all()
    assert plugin.calls == [["a", "b", "c", "d"]] * 2


def test_a_score_column_has_its_version_and_the_rows_of_the_last_write() -> None:
    cluster, cache, plugin = make_cluster(*NODES), ResultCache(), OccupiedNodes()
    pod = cluster.snapshot().make_pod_info(make_pod("web"))
    first = cache.get_score_column(plugin, pod, cluster.snapshot(), None, RUNNER)
    assert first is not None
    assert (first.version, first.in_range) == (0, True)

    for name in ("x", "y"):
        cluster.add_or_update_pod(make_pod(name, node="c"))
    second = cache.get_score_column(plugin, pod, cluster.snapshot(), None, RUNNER)

    assert second is first
    assert (first.version, first.last_written_rows.tolist(), first.in_range) == (1, [2], False)
    assert first.value.tolist() == [0, 0, 120, 0]


def test_a_node_set_is_reused_for_an_equal_mask() -> None:
    cache, mask = ResultCache(), np.array([True, False, True])
    node_set = cache.get_node_set(mask)
    assert cache.get_node_set(mask.copy()) is node_set
    assert (node_set.rows.tolist(), node_set.is_all_nodes) == ([0, 2], False)
    assert node_set.intersect(np.array([1, 2])).tolist() == [2]
    assert node_set.find_positions(np.array([2])).tolist() == [1]
    assert NodeSet.from_mask(np.ones(2, dtype=np.bool_)).is_all_nodes
