"""Cached scores are updated or recomputed with their column."""

from typing import Any

import numpy as np

from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.score import prioritize_changing_nodes, prioritize_nodes
from extender.framework.extension_points import DependsOn
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import FakeScore, make_profile

LABEL = "score"


class LabelScore(FakeScore):
    """Scores a node by its label, cached by node."""

    score_depends_on = DependsOn.NODE

    def __init__(self) -> None:
        super().__init__("LabelScore", {})
        self.scored: list[list[str]] = []

    def score_cache_key(self, _pod: Any) -> str:
        return "any"

    def score(self, _pod: Any, nodes: Any, _state: Any) -> Any:
        self.scored.append(list(nodes.names))
        return np.array([int(node.metadata.labels[LABEL]) for node in nodes.nodes], dtype=np.int64)


def test_only_changed_nodes_are_scored_again() -> None:
    names = [f"n{number}" for number in range(8)]
    cache = make_cluster(*(make_node(name, labels={LABEL: "1"}) for name in names))
    plugin, runtime = LabelScore(), PluginRuntime()
    profile = make_profile(plugin, weights={"LabelScore": 3})

    def total_scores() -> list[int]:
        snapshot = cache.snapshot()
        pod = snapshot.make_pod_info(make_pod())
        feasible = np.ones(len(names), dtype=np.bool_)
        return prioritize_nodes(pod, snapshot, profile, runtime, feasible, PreFilterRun()).totals.tolist()

    assert total_scores() == [3] * 8
    cache.add_or_update_node(make_node("n2", labels={LABEL: "7"}))
    assert total_scores() == [3, 3, 21, 3, 3, 3, 3, 3]
    assert plugin.scored == [names, ["n2"]]
    assert total_scores() == [3, 3, 21, 3, 3, 3, 3, 3]
    assert plugin.scored == [names, ["n2"]]


def test_scores_of_changing_nodes_are_computed_once_for_all_nodes() -> None:
    names = [f"n{number}" for number in range(8)]
    cache = make_cluster(*(make_node(name, labels={LABEL: str(number)}) for number, name in enumerate(names)))
    plugin, runtime = LabelScore(), PluginRuntime()
    profile = make_profile(plugin, weights={"LabelScore": 3})
    for rows in ([1, 4, 6], [0, 6, 7], [2]):
        snapshot = cache.snapshot()
        feasible = np.isin(np.arange(len(names)), rows)
        ranking, scores = prioritize_changing_nodes(
            snapshot.make_pod_info(make_pod()), snapshot, profile, runtime, feasible, PreFilterRun()
        )
        assert (ranking.rows.tolist(), ranking.totals.tolist()) == (rows, [3 * row for row in rows])
        assert [scores["LabelScore"].get_scores_of_row(row) for row in rows] == [(row, row) for row in rows]
    assert plugin.scored == [names]


def test_a_score_out_of_range_of_another_node_is_no_error_of_changing_nodes() -> None:
    cache = make_cluster(make_node("n1", labels={LABEL: "7"}), make_node("n2", labels={LABEL: "101"}))
    snapshot, runtime, profile = cache.snapshot(), PluginRuntime(), make_profile(LabelScore())
    pod = snapshot.make_pod_info(make_pod())

    def rank(*feasible: bool) -> Any:
        return prioritize_changing_nodes(pod, snapshot, profile, runtime, np.array(feasible), PreFilterRun())[0]

    assert rank(True, False).totals.tolist() == [7]
    assert "returns an invalid score 101" in rank(True, True).error.message
    assert rank(True, False).totals.tolist() == [7]


class ReversedScore(LabelScore):
    """Normalizes scores by the highest one."""

    normalizes_only_by_scores = True

    def __init__(self) -> None:
        super().__init__()
        self.normalized_counts: list[int] = []

    def normalize_score(self, _pod: Any, scores: Any, _nodes: Any, _state: Any) -> Any:
        self.normalized_counts.append(len(scores))
        return 100 - scores * 100 // max(1, scores.max())


def test_equal_scores_of_all_nodes_are_normalized_once() -> None:
    names = [f"n{number}" for number in range(8)]
    cache = make_cluster(*(make_node(name, labels={LABEL: "0"}) for name in names))
    plugin, runtime = ReversedScore(), PluginRuntime()
    profile = make_profile(plugin)

    def rank(*rows: int) -> list[int]:
        snapshot = cache.snapshot()
        feasible, pod = np.isin(np.arange(len(names)), rows), snapshot.make_pod_info(make_pod())
        ranking, _ = prioritize_changing_nodes(pod, snapshot, profile, runtime, feasible, PreFilterRun())
        totals: list[int] = ranking.totals.tolist()
        return totals

    assert (rank(1, 4), rank(2, 3, 5)) == ([100, 100], [100, 100, 100])
    assert plugin.normalized_counts == [8]
    cache.add_or_update_node(make_node("n3", labels={LABEL: "5"}))
    assert (rank(1, 4), rank(2, 3, 5)) == ([100, 100], [100, 0, 100])
    assert plugin.normalized_counts == [8, 2, 3]
