"""Raw, normalised and weighted scores, and what happens when a score plugin is at fault."""

from typing import Any

import numpy as np
import pytest

from extender.decide.engine import Engine
from extender.decide.prefiltering import PreFilterOutcome
from extender.decide.rank import Ranking, rank
from extender.framework.points import PreScored, Reads
from extender.framework.verdict import Code, Status
from tests.build import a_cluster, a_node, a_pod
from tests.unit.decide.stand_ins import Broken, Rating, a_profile


class KeptRating(Rating):
    """Its scores are kept, so they are asked for all nodes."""

    score_reads = Reads.NODE

    def score_key(self, _pod: Any) -> str:
        return "any"


def ranked(
    *plugins: Any, weights: dict[str, int] | None = None, feasible: tuple[bool, ...] = (True, True, True)
) -> Ranking:
    """Nodes a, b and c scored, as far as they are feasible."""
    cluster = a_cluster(*map(a_node, "abc")).snapshot()
    return rank(
        cluster.query(a_pod()),
        cluster,
        a_profile(*plugins, weights=weights),
        Engine(),
        np.array(feasible),
        PreFilterOutcome(),
    )


def test_totals_are_sums_of_weighted_scores() -> None:
    got = ranked(Rating("X", {"a": 10, "b": 20, "c": 30}), Rating("Y", {"a": 5, "b": 5, "c": 0}), weights={"Y": 3})

    assert got.totals.tolist() == [25, 35, 30]
    assert got.best().tolist() == [1]


def test_only_feasible_nodes_are_scored() -> None:
    got = ranked(Rating("X", {"a": 10, "c": 30}), feasible=(True, False, True))

    assert got.rows.tolist() == [0, 2]
    assert got.totals.tolist() == [10, 30]


def test_a_plugin_that_skips_is_absent() -> None:
    got = ranked(Rating("X", {"a": 1, "b": 1, "c": 1}), Rating("Y", {}, PreScored(skip=True)))

    assert list(got.plugins) == ["X"]


def test_without_score_plugins_every_total_is_one() -> None:
    """Source: A101."""
    assert ranked().totals.tolist() == [1, 1, 1]


class BrokenBefore:
    """Stands at PreScore only, and raises."""

    name = "BrokenBefore"

    def pre_score(self, *_: Any) -> PreScored:
        raise ValueError("out of order")


def test_without_score_plugins_pre_score_is_not_asked_either() -> None:
    """Source: A101."""
    got = ranked(BrokenBefore())

    assert got.error is None
    assert got.totals.tolist() == [1, 1, 1]


def test_if_every_plugin_skips_every_total_is_zero() -> None:
    assert ranked(Rating("Y", {}, PreScored(skip=True))).totals.tolist() == [0, 0, 0]


@pytest.mark.parametrize("score", [101, -1])
def test_a_score_out_of_range_is_an_error(score: int) -> None:
    """Source: A066."""
    got = ranked(Rating("X", {"a": 1, "b": score, "c": 1}))

    assert got.error is not None
    assert got.error.code is Code.ERROR
    assert f'plugin "X" returns an invalid score {score}, it should in the range of [0, 100]' in got.error.message
    assert len(got.rows) == 0


def test_a_plugin_that_raises_is_named() -> None:
    told = 'running PreScore plugin "Broken": ValueError: out of order'
    assert ranked(Broken()).error == Status(Code.ERROR, (told,), "Broken")


def test_a_pre_score_that_answers_with_an_error_ends_it() -> None:
    got = ranked(Rating("X", {}, PreScored(status=Status(Code.ERROR, ("no labels",)))))

    assert got.error == Status(Code.ERROR, ('running PreScore plugin "X": no labels',), "X")


def test_scores_are_held_against_their_range_after_all_plugins_scored() -> None:
    got = ranked(Rating("X", {"a": 101, "b": 1, "c": 1}), Rating("Y", {}))

    assert got.error is not None
    assert got.error.message.startswith('running Score plugins: plugin "Y" failed with: ')


def test_of_several_scores_out_of_range_the_first_node_s_is_told() -> None:
    got = ranked(Rating("X", {"a": 1, "b": 1, "c": 999}), Rating("Y", {"a": 1, "b": 200, "c": 1}))

    said = 'applying score defaultWeights on Score plugins: plugin "Y" returns an invalid score 200'
    assert got.error is not None
    assert got.error.message.startswith(said)


def test_a_score_out_of_range_of_a_node_that_is_not_feasible_does_no_harm() -> None:
    got = ranked(KeptRating("X", {"a": 1, "b": 101, "c": 3}), feasible=(True, False, True))

    assert got.error is None
    assert got.totals.tolist() == [1, 3]
