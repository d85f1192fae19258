"""Cached rejections: which nodes are filtered again, and errors of plugins."""

from collections.abc import Hashable, Sequence
from typing import Any

from extender.cache.hypothesis import Hypothesis
from extender.cache.snapshot import NodeView, Snapshot
from extender.cycle.tables.filter_table import FilterTables
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_runner import PluginRunner
from extender.framework.result_cache import FilterColumn
from extender.framework.status import Code, Reason, Rejection
from tests.build import make_cluster, make_node, make_pod

NODES = [make_node(name) for name in ("a", "b", "c", "d")]
OCCUPIED = Reason("has pods")


class OccupiedNodes:
    """Rejects nodes with pods; records the node names of each call."""

    name = "OccupiedNodes"
    filter_depends_on = DependsOn.NODE_AND_PODS

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def filter_cache_key(self, pod: Any) -> Hashable | None:
        return ""

    def filter(self, pod: Any, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        self.calls.append(list(nodes.names))
        return (Rejection(nodes.pod_count > 0, OCCUPIED),)


class Unlabeled(OccupiedNodes):
    """Rejects no node, and does not read pods."""

    name = "Unlabeled"
    filter_depends_on = DependsOn.NODE

    def filter(self, pod: Any, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        self.calls.append(list(nodes.names))
        return ()


class FailingFilter(OccupiedNodes):
    """Raises if a node of the view has pods."""

    name = "FailingFilter"

    def filter(self, pod: Any, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        if nodes.pod_count.any():
            raise ValueError("pods")
        return ()


class NoKey(OccupiedNodes):
    """Does not allow caching."""

    name = "NoKey"

    def filter_cache_key(self, pod: Any) -> Hashable | None:
        return None


class UnhashableKey(OccupiedNodes):
    """Returns a key that cannot be hashed."""

    name = "UnhashableKey"

    def filter_cache_key(self, pod: Any) -> Any:
        return []


def get_columns(tables: FilterTables, plugins: tuple[Any, ...], snapshot: Snapshot) -> dict[str, FilterColumn]:
    pod = snapshot.make_pod_info(make_pod("web"))
    return tables.get_columns(plugins, frozenset(), pod, snapshot, {})[0]


def test_only_changed_nodes_are_filtered_again() -> None:
    cluster, tables = make_cluster(*NODES), FilterTables(PluginRunner())
    plugins = occupied, unlabeled = OccupiedNodes(), Unlabeled()
    columns = get_columns(tables, plugins, cluster.snapshot())
    assert columns["OccupiedNodes"].rejected.tolist() == [False] * 4
    get_columns(tables, plugins, cluster.snapshot())

    cluster.add_or_update_pod(make_pod("running", node="b"))
    column = get_columns(tables, plugins, cluster.snapshot())["OccupiedNodes"]

    assert occupied.calls == [["a", "b", "c", "d"], ["b"]]
    assert unlabeled.calls == [["a", "b", "c", "d"]]
    assert column.rejected.tolist() == [False, True, False, False]
    assert column.masks_by_reason[OCCUPIED].tolist() == [False, True, False, False]


def test_a_table_is_computed_anew_if_most_nodes_changed() -> None:
    cluster, tables, plugin = make_cluster(*NODES), FilterTables(PluginRunner()), OccupiedNodes()
    get_columns(tables, (plugin,), cluster.snapshot())
    for name in ("a", "b", "c", "d"):
        cluster.add_or_update_pod(make_pod(f"on-{name}", node=name))
    assert get_columns(tables, (plugin,), cluster.snapshot())["OccupiedNodes"].rejected.all()
    assert plugin.calls == [["a", "b", "c", "d"]] * 2


def test_a_plugin_without_a_key_has_no_column() -> None:
    cluster, tables = make_cluster(*NODES), FilterTables(PluginRunner())
    plugins: Any = (NoKey(), OccupiedNodes())
    snapshot = cluster.snapshot()
    columns, plan = tables.get_columns(plugins, frozenset(), snapshot.make_pod_info(make_pod()), snapshot, {})
    assert list(columns) == ["OccupiedNodes"]
    assert (plan.entries, plan.uncached) == (plugins, plugins[:1])


def test_a_plugin_with_an_invalid_key_rejects_every_node() -> None:
    cluster, tables = make_cluster(*NODES), FilterTables(PluginRunner())
    columns = get_columns(tables, (UnhashableKey(), OccupiedNodes()), cluster.snapshot())
    assert columns["UnhashableKey"].rejected.all()
    assert [reason.text for reason in columns["UnhashableKey"].masks_by_reason] == [
        "filter_cache_key: TypeError: unhashable type: 'list'"
    ]
    assert not columns["OccupiedNodes"].rejected.any()


def test_an_error_of_a_plugin_leaves_the_rejections_by_others_valid() -> None:
    """The hypothesis has a pod on node b. Its results must not stay in the table of the snapshot."""
    cluster, tables, plugins = make_cluster(*NODES), FilterTables(PluginRunner()), (OccupiedNodes(), FailingFilter())
    snapshot = cluster.snapshot()
    get_columns(tables, plugins, snapshot)
    hypothesis = Hypothesis(snapshot, shares_results=True)
    hypothesis.assume_pod(snapshot.make_pod_info(make_pod("new")), "b")

    columns = get_columns(tables, plugins, hypothesis.snapshot())
    assert columns["OccupiedNodes"].rejected.tolist() == [False, True, False, False]
    assert [(reason.text, reason.code) for reason in columns["FailingFilter"].masks_by_reason] == [
        ("ValueError: pods", Code.ERROR)
    ]

    columns = get_columns(tables, plugins, snapshot)
    assert not columns["OccupiedNodes"].rejected.any()
    assert not columns["FailingFilter"].rejected.any()
