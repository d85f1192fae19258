"""Which nodes are evaluated, and when the search stops."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from extender.cache.cache import Cache
from extender.plugins.default_preemption import DefaultPreemptionArgs
from extender.preemption import candidates
from extender.preemption.candidates import CandidateSearchResult
from tests.build import make_cluster, make_node
from tests.unit.preemption.builders import (
    make_budget,
    make_preemptor,
    make_small_node,
    make_victim,
    search_candidates,
    victim_names,
)


def _full(count: int, **more: Any) -> Cache:
    state = make_cluster()
    for number in range(count):
        state.add_or_update_node(make_small_node(f"n{number}"))
        state.add_or_update_pod(make_victim(f"p{number}", f"n{number}", cpu="2", **more))
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
    assert DefaultPreemptionArgs(percentage, absolute).calculate_num_candidates(nodes) == wanted


def test_every_node_is_evaluated_if_requested() -> None:
    found = search_candidates(_full(5), make_preemptor(), DefaultPreemptionArgs(0, 1), all_nodes=True)

    assert sorted(victim_names(found)) == ["n0", "n1", "n2", "n3", "n4"]


def test_no_node_is_evaluated_if_no_pod_of_the_cluster_has_a_lower_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod that did not fit on a full cluster of equal priorities looked at all pods: 5 ms for 32,000."""
    monkeypatch.setattr(candidates, "_select_victims", None)
    found = search_candidates(_full(5), make_preemptor(priority=1))
    expected = CandidateSearchResult((), 5, Counter({"No preemption victims found for incoming pod": 5}), ())
    assert found == expected


def test_otherwise_the_search_stops_at_enough_candidates() -> None:
    found = search_candidates(_full(5), make_preemptor(), DefaultPreemptionArgs(0, 2), all_nodes=False)

    assert list(victim_names(found)) == ["n0", "n1"]


def test_the_search_starts_at_random_and_wraps_around() -> None:
    starts = {
        tuple(
            victim_names(
                search_candidates(
                    _full(3), make_preemptor(), DefaultPreemptionArgs(0, 2), all_nodes=False, rng=Random(n)
                )
            )
        )
        for n in range(20)
    }

    assert starts == {("n0", "n1"), ("n1", "n2"), ("n2", "n0")}


def test_the_search_goes_on_while_all_candidates_violate_a_budget() -> None:
    state = _full(4, labels={"app": "db"})
    state.add_or_update_object(make_budget(0, {"app": "db"}))
    state.add_or_update_node(make_small_node("n4"))
    state.add_or_update_pod(make_victim("p4", "n4", cpu="2"))

    found = search_candidates(state, make_preemptor(), DefaultPreemptionArgs(0, 2), all_nodes=False)

    assert list(victim_names(found)) == ["n4", "n0", "n1"], (
        "those that break no budget come first, then as many as wanted"
    )


def test_a_limit_of_zero_finds_no_candidate() -> None:
    found = search_candidates(_full(2), make_preemptor(), DefaultPreemptionArgs(10, 0), all_nodes=False)

    assert (found.candidates, found.failed_count) == ((), 0)


def test_unresolvable_nodes_are_not_evaluated() -> None:
    state = make_cluster(
        make_node("tainted", taints=[{"key": "only", "effect": "NoSchedule"}], allocatable={"cpu": "2", "pods": "9"}),
        make_node("small", allocatable={"cpu": "1", "pods": "9"}),
        make_victim("a", "tainted", cpu="2"),
        make_victim("b", "small"),
    )

    found = search_candidates(state, make_preemptor())

    assert (found.candidates, found.failed_count, dict(found.reason_counts)) == ((), 0, {})


def test_a_large_cluster_is_searched_in_batches() -> None:
    """Only the last of 1100 nodes fits the pod; of batches of 256, 768 and 76 it is in the third."""
    state = make_cluster()
    for number in range(1100):
        state.add_or_update_node(make_small_node(f"n{number}"))
        state.add_or_update_pod(make_victim(f"p{number}", f"n{number}", cpu="2", priority=1 if number == 1099 else 100))

    found = search_candidates(state, make_preemptor(), DefaultPreemptionArgs(0, 1), all_nodes=False)

    assert victim_names(found) == {"n1099": ["p1099"]}
    assert found.failed_count == 1099
