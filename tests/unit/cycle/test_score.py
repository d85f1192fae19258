"""Raw, normalized and weighted scores, and errors of score plugins."""

from random import Random
from typing import Any

import numpy as np
import pytest

from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.score import Ranking, prioritize_nodes, select_host
from extender.framework.extension_points import DependsOn, PreScoreResult
from extender.framework.status import Code, Status
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import FakeScore, RaisingPlugin, make_profile


class CacheableScore(FakeScore):
    """Its scores are cached, so all nodes are scored."""

    score_depends_on = DependsOn.NODE

    def score_cache_key(self, _pod: Any) -> str:
        return "any"


def score_nodes(
    *plugins: Any,
    weights: dict[str, int] | None = None,
    feasible: tuple[bool, ...] = (True, True, True),
    pre_filter_run: PreFilterRun | None = None,
) -> Ranking:
    """Score the feasible nodes of a, b and c."""
    snapshot = make_cluster(*map(make_node, "abc")).snapshot()
    return prioritize_nodes(
        snapshot.make_pod_info(make_pod()),
        snapshot,
        make_profile(*plugins, weights=weights),
        PluginRuntime(),
        np.array(feasible),
        pre_filter_run or PreFilterRun(),
    )


def test_totals_are_sums_of_weighted_scores() -> None:
    ranking = score_nodes(
        FakeScore("X", {"a": 10, "b": 20, "c": 30}), FakeScore("Y", {"a": 5, "b": 5, "c": 0}), weights={"Y": 3}
    )

    assert ranking.totals.tolist() == [25, 35, 30]
    assert ranking.find_best_rows().tolist() == [1]


def test_only_feasible_nodes_are_scored() -> None:
    ranking = score_nodes(FakeScore("X", {"a": 10, "c": 30}), feasible=(True, False, True))

    assert ranking.rows.tolist() == [0, 2]
    assert ranking.totals.tolist() == [10, 30]


def test_a_plugin_that_skips_is_absent() -> None:
    ranking = score_nodes(FakeScore("X", {"a": 1, "b": 1, "c": 1}), FakeScore("Y", {}, PreScoreResult(skip=True)))

    assert list(ranking.scores_by_plugin) == ["X"]


class ScoreFromPreFilter:
    """Scores every node by its PreFilter state, which it also reads in PreScore."""

    name = "X"
    scores_from_pre_filter = True

    def __init__(self, *, skip: bool = False) -> None:
        self._skip = skip

    def pre_score(self, *_: Any) -> PreScoreResult:
        return PreScoreResult(skip=self._skip)

    def score(self, _pod: Any, nodes: Any, state: int) -> Any:
        return np.full(len(nodes), state, dtype=np.int64)


def test_a_plugin_with_pre_score_can_read_the_state_of_pre_filter() -> None:
    ranking = score_nodes(ScoreFromPreFilter(), pre_filter_run=PreFilterRun(cycle_state={"X": 7}))

    assert ranking.totals.tolist() == [7, 7, 7]


def test_a_missing_state_of_pre_filter_is_an_error_of_pre_score_unless_it_skips() -> None:
    """Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.PreScore (1.36)."""
    assert score_nodes(ScoreFromPreFilter()).error == Status(
        Code.ERROR, ('running PreScore plugin "X": not found',), "X"
    )
    assert score_nodes(ScoreFromPreFilter(skip=True)).totals.tolist() == [0, 0, 0]


def test_without_score_plugins_every_total_is_one() -> None:
    """Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36)."""
    assert score_nodes().totals.tolist() == [1, 1, 1]


class RaisingPreScore:
    """A plugin with only PreScore, which raises."""

    name = "BrokenBefore"

    def pre_score(self, *_: Any) -> PreScoreResult:
        raise ValueError("out of order")


def test_without_score_plugins_pre_score_does_not_run() -> None:
    """Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36)."""
    ranking = score_nodes(RaisingPreScore())

    assert ranking.error is None
    assert ranking.totals.tolist() == [1, 1, 1]


def test_if_every_plugin_skips_every_total_is_zero() -> None:
    assert score_nodes(FakeScore("Y", {}, PreScoreResult(skip=True))).totals.tolist() == [0, 0, 0]


@pytest.mark.parametrize("score", [101, -1])
def test_a_score_out_of_range_is_an_error(score: int) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins (1.36)."""
    ranking = score_nodes(FakeScore("X", {"a": 1, "b": score, "c": 1}))

    assert ranking.error is not None
    assert ranking.error.code is Code.ERROR
    assert f'plugin "X" returns an invalid score {score}, it should in the range of [0, 100]' in ranking.error.message
    assert len(ranking.rows) == 0


def test_a_plugin_that_raises_is_named() -> None:
    message = 'running PreScore plugin "Broken": ValueError: out of order'
    assert score_nodes(RaisingPlugin()).error == Status(Code.ERROR, (message,), "Broken")


def test_an_error_of_pre_score_ends_scoring() -> None:
    ranking = score_nodes(FakeScore("X", {}, PreScoreResult(status=Status(Code.ERROR, ("no labels",)))))

    assert ranking.error == Status(Code.ERROR, ('running PreScore plugin "X": no labels',), "X")


def test_the_score_range_is_checked_after_all_plugins_scored() -> None:
    ranking = score_nodes(FakeScore("X", {"a": 101, "b": 1, "c": 1}), FakeScore("Y", {}))

    assert ranking.error is not None
    assert ranking.error.message.startswith('running Score plugins: plugin "Y" failed with: ')


@pytest.mark.parametrize(
    ("plugins", "first"),
    [
        ((FakeScore("X", {}), CacheableScore("Y", {})), "X"),
        ((CacheableScore("X", {}), FakeScore("Y", {})), "X"),
        ((FakeScore("X", {"a": 1, "b": 1, "c": 1}), FakeScore("Y", {}), CacheableScore("Z", {})), "Y"),
        ((FakeScore("X", {}, PreScoreResult(skip=True)), CacheableScore("Y", {})), "Y"),
    ],
)
def test_of_several_plugins_that_raise_the_first_one_is_reported(plugins: tuple[Any, ...], first: str) -> None:
    error = score_nodes(*plugins).error

    assert error is not None
    assert error.message.startswith(f'running Score plugins: plugin "{first}" failed with: ')


def test_of_several_scores_out_of_range_the_first_node_is_reported() -> None:
    ranking = score_nodes(FakeScore("X", {"a": 1, "b": 1, "c": 999}), FakeScore("Y", {"a": 1, "b": 200, "c": 1}))

    message = 'applying score defaultWeights on Score plugins: plugin "Y" returns an invalid score 200'
    assert ranking.error is not None
    assert ranking.error.message.startswith(message)


def test_a_score_out_of_range_of_an_infeasible_node_is_ignored() -> None:
    ranking = score_nodes(CacheableScore("X", {"a": 1, "b": 101, "c": 3}), feasible=(True, False, True))

    assert ranking.error is None
    assert ranking.totals.tolist() == [1, 3]


# -- select_host

ROWS = np.array([2, 5, 7, 9], dtype=np.int64)


class UnusedRandom(Random):
    """Fails if it is used."""

    def randrange(self, *_: object) -> int:
        raise AssertionError("there is nothing to leave to chance")


def test_without_a_tie_the_rng_is_not_used() -> None:
    assert select_host(Ranking(ROWS, np.array([1, 4, 3, 3])), UnusedRandom()) == 5
    assert select_host(Ranking(ROWS, np.array([1, 4, 3, 3]), best_rows=[5]), UnusedRandom()) == 5


@pytest.mark.parametrize("best_rows", [None, [2, 9]])
def test_each_of_the_best_is_as_likely(best_rows: list[int] | None) -> None:
    rng = Random(7)
    ranking = Ranking(ROWS, np.array([4, 1, 3, 4]), best_rows=best_rows)
    selected = [select_host(ranking, rng) for _ in range(1000)]

    assert set(selected) == {2, 9}
    assert 450 < selected.count(2) < 550


def test_the_same_seed_selects_the_same_node_with_and_without_best_rows() -> None:
    totals = np.array([4, 4, 3, 4])
    for seed in range(20):
        assert select_host(Ranking(ROWS, totals), Random(seed)) == select_host(
            Ranking(ROWS, totals, best_rows=[2, 5, 9]), Random(seed)
        )
