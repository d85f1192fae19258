"""Which candidate is best: each criterion breaks the ties of the criteria before it."""

from random import Random

import pytest

from extender.cache.pod_info import AssignedPodInfo
from extender.preemption.plan import Candidate, select_candidate
from tests.build import make_cluster
from tests.unit.preemption.builders import make_candidate, make_small_node, make_victim


def _pod(priority: int, start: str = "10:00") -> AssignedPodInfo:
    """Make a pod with this priority and start time."""
    state = make_cluster(make_small_node("n"), make_victim("pod", "n", priority=priority, start=start))
    return next(iter(state.assigned_pods.values()))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(
            make_candidate("x", _pod(9), _pod(9)),
            make_candidate("a", _pod(1), violations=1),
            id="fewer broken budgets, whatever the priorities",
        ),
        pytest.param(
            make_candidate("x", _pod(1), _pod(1), _pod(1)),
            make_candidate("a", _pod(2)),
            id="the lower highest priority, however many",
        ),
        pytest.param(
            make_candidate("x", _pod(3), _pod(1)),
            make_candidate("a", _pod(3), _pod(2)),
            id="the smaller sum of priorities",
        ),
        pytest.param(
            make_candidate("x", _pod(-1)),
            make_candidate("a", _pod(-1), _pod(-50)),
            id="fewer pods of negative priority have the smaller sum",
        ),
        pytest.param(
            make_candidate("x", _pod(3, "11:00"), _pod(1, "08:00")),
            make_candidate("a", _pod(3, "10:00"), _pod(1, "12:00")),
            id="the later start of the most important",
        ),
        pytest.param(
            make_candidate("x", _pod(3, "11:00"), _pod(3, "12:00")),
            make_candidate("a", _pod(3, "10:00"), _pod(3, "13:00")),
            id="of several most important the earliest start counts",
        ),
        pytest.param(
            make_candidate("x", _pod(3, "")),
            make_candidate("a", _pod(3, "23:00")),
            id="a pod that has not started is the latest",
        ),
    ],
)
def test_the_better_node_is_selected(better: Candidate, worse: Candidate) -> None:
    for candidates in ((better, worse), (worse, better)):
        plan = select_candidate(candidates, None)

        assert plan.best_candidate is better
        assert plan.tied_nodes == ("x",)
        assert plan.candidates == candidates


def test_tied_nodes_are_listed_and_the_first_by_name_is_selected() -> None:
    plan = select_candidate(
        [make_candidate("b", _pod(1)), make_candidate("a", _pod(1)), make_candidate("c", _pod(2))], None
    )

    assert (plan.best_candidate.node_name, plan.tied_nodes) == ("a", ("a", "b"))


def test_the_rng_selects_among_tied_nodes_only() -> None:
    candidates = [make_candidate("b", _pod(1)), make_candidate("a", _pod(1)), make_candidate("c", _pod(2))]

    assert {select_candidate(candidates, Random(seed)).best_candidate.node_name for seed in range(20)} == {"a", "b"}
