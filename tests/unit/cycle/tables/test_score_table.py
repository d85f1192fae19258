"""Cached scores are updated or recomputed with their column."""

from typing import Any

import numpy as np

from extender.cache.hypothesis import Hypothesis
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.score import Ranking, prioritize_nodes
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


def test_scores_of_other_feasible_nodes_are_cached_for_all_nodes() -> None:
    names = [f"n{number}" for number in range(8)]
    cache = make_cluster(*(make_node(name, labels={LABEL: str(number)}) for number, name in enumerate(names)))
    plugin, runtime = LabelScore(), PluginRuntime()
    profile = make_profile(plugin, weights={"LabelScore": 3})
    for rows in ([1, 4, 6], [0, 6, 7], [2]):
        snapshot = cache.snapshot()
        feasible = np.isin(np.arange(len(names)), rows)
        ranking = prioritize_nodes(
            snapshot.make_pod_info(make_pod()), snapshot, profile, runtime, feasible, PreFilterRun()
        )
        assert (ranking.rows.tolist(), ranking.totals.tolist()) == (rows, [3 * row for row in rows])
        assert ranking.find_best_rows().tolist() == rows[-1:]
        assert ranking.node_scores is not None
        assert [ranking.node_scores.get_row(row) for row in rows] == [{"LabelScore": (row, row, 3)} for row in rows]
    assert plugin.scored == [names]


def test_a_score_out_of_range_of_another_node_is_no_error() -> None:
    cache = make_cluster(make_node("n1", labels={LABEL: "7"}), make_node("n2", labels={LABEL: "101"}))
    snapshot, runtime, profile = cache.snapshot(), PluginRuntime(), make_profile(LabelScore())
    pod = snapshot.make_pod_info(make_pod())

    def rank(*feasible: bool) -> Ranking:
        return prioritize_nodes(pod, snapshot, profile, runtime, np.array(feasible), PreFilterRun())

    assert rank(True, False).totals.tolist() == [7]
    error = rank(True, True).error
    assert error is not None
    assert "returns an invalid score 101" in error.message
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
        ranking = prioritize_nodes(pod, snapshot, profile, runtime, feasible, PreFilterRun())
        totals: list[int] = ranking.totals.tolist()
        return totals

    assert (rank(1, 4), rank(2, 3, 5)) == ([100, 100], [100, 100, 100])
    assert plugin.normalized_counts == [8]
    cache.add_or_update_node(make_node("n3", labels={LABEL: "5"}))
    assert (rank(1, 4), rank(2, 3, 5)) == ([100, 100], [100, 0, 100])
    assert plugin.normalized_counts == [8, 2, 3]


class FailingScore(LabelScore):
    """Raises if the label of a node is 9."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "FailingScore"

    def score(self, _pod: Any, nodes: Any, _state: Any) -> Any:
        if any(node.metadata.labels[LABEL] == "9" for node in nodes.nodes):
            raise ValueError("nine")
        return np.zeros(len(nodes), dtype=np.int64)


def test_an_error_leaves_the_cached_scores_unchanged() -> None:
    """The first plugin scores the changed node before the second one fails. Its score must not stay in the table."""
    names = [f"n{number}" for number in range(8)]
    cache = make_cluster(*(make_node(name, labels={LABEL: "1"}) for name in names))
    runtime, profile = PluginRuntime(), make_profile(LabelScore(), FailingScore())

    def rank(snapshot: Any) -> Ranking:
        pod = snapshot.make_pod_info(make_pod())
        feasible = np.ones(len(names), dtype=np.bool_)
        return prioritize_nodes(pod, snapshot, profile, runtime, feasible, PreFilterRun())

    assert rank(cache.snapshot()).totals.tolist() == [1] * 8
    hypothesis = Hypothesis(cache.snapshot(), shares_results=True)
    hypothesis.add_or_update_node(make_node("n2", labels={LABEL: "9"}))
    error = rank(hypothesis.snapshot()).error
    assert error is not None
    assert error.message == 'running Score plugins: plugin "FailingScore" failed with: ValueError: nine'
    assert rank(cache.snapshot()).totals.tolist() == [1] * 8


def test_scores_in_the_order_of_the_profile() -> None:
    """Cached plugins that read pods, those that do not, and uncached ones are in different tables."""

    class PodCount(LabelScore):
        score_depends_on = DependsOn.NODE_AND_PODS

        def __init__(self) -> None:
            super().__init__()
            self.name = "PodCount"

        def score(self, _pod: Any, nodes: Any, _state: Any) -> Any:
            return nodes.pod_count * 10

    cache = make_cluster(*(make_node(f"n{number}", labels={LABEL: str(number)}) for number in range(4)))
    runtime = PluginRuntime()
    uncached = FakeScore("Uncached", {"n0": 50, "n1": 0, "n2": 0, "n3": 0})
    profile = make_profile(PodCount(), uncached, LabelScore(), weights={"LabelScore": 2})

    def rank() -> Ranking:
        snapshot = cache.snapshot()
        pod, feasible = snapshot.make_pod_info(make_pod()), np.ones(4, dtype=np.bool_)
        return prioritize_nodes(pod, snapshot, profile, runtime, feasible, PreFilterRun())

    assert rank().totals.tolist() == [50, 2, 4, 6]
    cache.add_or_update_pod(make_pod("running", node="n3"))
    ranking = rank()
    assert ranking.totals.tolist() == [50, 2, 4, 16]
    assert [(name, entry.raw.tolist()) for name, entry in ranking.scores_by_plugin.items()] == [
        ("PodCount", [0, 0, 0, 10]),
        ("Uncached", [50, 0, 0, 0]),
        ("LabelScore", [0, 1, 2, 3]),
    ]
