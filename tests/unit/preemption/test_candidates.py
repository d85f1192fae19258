"""Which nodes are looked at, and when to stop."""

from random import Random
from typing import Any

import pytest

from extender.cluster.state import ClusterState
from extender.preemption.candidates import Enough
from tests.build import a_cluster, a_node
from tests.unit.preemption.worlds import a_budget, a_small_node, high, low, searched, victims


def _full(count: int, **more: Any) -> ClusterState:
    state = a_cluster()
    for number in range(count):
        state.put_node(a_small_node(f"n{number}"))
        state.put_pod(low(f"p{number}", f"n{number}", cpu="2", **more))
    return state


@pytest.mark.parametrize(
    ("percentage", "absolute", "nodes", "wanted"),
    [
        pytest.param(10, 100, 5000, 500, id="a tenth of many"),
        pytest.param(10, 100, 600, 100, id="at least a hundred"),
        pytest.param(10, 100, 30, 30, id="never more than there are"),
        pytest.param(33, 0, 10, 3, id="rounded down"),
        pytest.param(1, 0, 50, 0, id="down to none"),
    ],
)
def test_enough_is_the_greater_of_share_and_number(percentage: int, absolute: int, nodes: int, wanted: int) -> None:
    assert Enough(percentage, absolute).of(nodes) == wanted


def test_every_node_is_looked_at_where_that_is_asked() -> None:
    found = searched(_full(5), high(), Enough(0, 1), every_node=True)

    assert sorted(victims(found)) == ["n0", "n1", "n2", "n3", "n4"]


def test_otherwise_the_search_stops_at_enough_candidates() -> None:
    found = searched(_full(5), high(), Enough(0, 2), every_node=False)

    assert list(victims(found)) == ["n0", "n1"]


def test_the_search_begins_by_chance_and_goes_round() -> None:
    starts = {
        tuple(victims(searched(_full(3), high(), Enough(0, 2), every_node=False, chance=Random(n)))) for n in range(20)
    }

    assert starts == {("n0", "n1"), ("n1", "n2"), ("n2", "n0")}


def test_it_goes_on_while_all_candidates_break_a_budget() -> None:
    state = _full(4, labels={"app": "db"})
    state.put_object(a_budget(0, {"app": "db"}))
    state.put_node(a_small_node("n4"))
    state.put_pod(low("p4", "n4", cpu="2"))

    found = searched(state, high(), Enough(0, 2), every_node=False)

    assert list(victims(found)) == ["n4", "n0", "n1"], "those that break no budget come first, then as many as wanted"


def test_where_no_candidate_is_wanted_none_is_found() -> None:
    found = searched(_full(2), high(), Enough(10, 0), every_node=False)

    assert (found.candidates, found.failed) == ((), 0)


def test_nodes_refused_for_good_are_not_looked_at() -> None:
    state = a_cluster(
        a_node("tainted", taints=[{"key": "only", "effect": "NoSchedule"}], allocatable={"cpu": "2", "pods": "9"}),
        a_node("small", allocatable={"cpu": "1", "pods": "9"}),
        low("a", "tainted", cpu="2"),
        low("b", "small"),
    )

    found = searched(state, high())

    assert (found.candidates, found.failed, dict(found.reasons)) == ((), 0, {})


def test_a_large_cluster_is_searched_in_pieces() -> None:
    """Only the last of 1100 nodes takes the pod; of pieces of 256, 768 and 76 it is in the third."""
    state = a_cluster()
    for number in range(1100):
        state.put_node(a_small_node(f"n{number}"))
        state.put_pod(low(f"p{number}", f"n{number}", cpu="2", priority=1 if number == 1099 else 100))

    found = searched(state, high(), Enough(0, 1), every_node=False)

    assert victims(found) == {"n1099": ["p1099"]}
    assert found.failed == 1099
