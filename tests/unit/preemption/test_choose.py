"""Which node is best: each criterion decides among those that are equal by all before it."""

from random import Random

import pytest

from extender.cluster.pods import PlacedPod
from extender.preemption.choose import choose
from extender.preemption.plan import Candidate
from tests.build import a_cluster
from tests.unit.preemption.worlds import a_candidate, a_small_node, low


def _pod(priority: int, start: str = "10:00") -> PlacedPod:
    """A pod of this priority, started then."""
    state = a_cluster(a_small_node("n"), low("pod", "n", priority=priority, start=start))
    return next(iter(state.placed.values()))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(
            a_candidate("x", _pod(9), _pod(9)),
            a_candidate("a", _pod(1), violations=1),
            id="fewer broken budgets, whatever the priorities",
        ),
        pytest.param(
            a_candidate("x", _pod(1), _pod(1), _pod(1)),
            a_candidate("a", _pod(2)),
            id="the lower highest priority, however many",
        ),
        pytest.param(
            a_candidate("x", _pod(3), _pod(1)),
            a_candidate("a", _pod(3), _pod(2)),
            id="the smaller sum of priorities",
        ),
        pytest.param(
            a_candidate("x", _pod(-1)),
            a_candidate("a", _pod(-1), _pod(-50)),
            id="fewer pods of negative priority have the smaller sum",
        ),
        pytest.param(
            a_candidate("x", _pod(3, "11:00"), _pod(1, "08:00")),
            a_candidate("a", _pod(3, "10:00"), _pod(1, "12:00")),
            id="the later start of the most important",
        ),
        pytest.param(
            a_candidate("x", _pod(3, "11:00"), _pod(3, "12:00")),
            a_candidate("a", _pod(3, "10:00"), _pod(3, "13:00")),
            id="of several most important the earliest start counts",
        ),
        pytest.param(
            a_candidate("x", _pod(3, "")),
            a_candidate("a", _pod(3, "23:00")),
            id="a pod that has not started is the latest",
        ),
    ],
)
def test_the_better_node_is_chosen(better: Candidate, worse: Candidate) -> None:
    for candidates in ((better, worse), (worse, better)):
        plan = choose(candidates, None)

        assert plan.chosen is better
        assert plan.ties == ("x",)
        assert plan.candidates == candidates


def test_equals_are_told_and_the_first_by_name_is_taken() -> None:
    plan = choose([a_candidate("b", _pod(1)), a_candidate("a", _pod(1)), a_candidate("c", _pod(2))], None)

    assert (plan.chosen.node, plan.ties) == ("a", ("a", "b"))


def test_chance_picks_among_equals_only() -> None:
    candidates = [a_candidate("b", _pod(1)), a_candidate("a", _pod(1)), a_candidate("c", _pod(2))]

    assert {choose(candidates, Random(seed)).chosen.node for seed in range(20)} == {"a", "b"}
