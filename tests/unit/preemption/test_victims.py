"""Victim selection: all pods of lower priority are removed, then the most important are reprieved first."""

from math import inf

import pytest

from extender.preemption.victims import NO_VICTIMS
from tests.build import make_cluster, make_node, make_pod
from tests.unit.preemption.builders import (
    HOST,
    make_budget,
    make_preemptor,
    make_small_node,
    make_victim,
    search_candidates,
    victim_names,
)


def test_as_few_pods_as_possible_go_and_the_least_important_ones() -> None:
    state = make_cluster(
        make_small_node("n", cpu="4"),
        make_victim("a", "n", priority=3),
        make_victim("b", "n", priority=2),
        make_victim("c", "n", priority=1),
    )

    assert victim_names(search_candidates(state, make_preemptor(cpu="2"))) == {"n": ["c"]}


def test_of_equal_priority_the_longest_running_is_reprieved_first() -> None:
    state = make_cluster(
        make_small_node("n"), make_victim("young", "n", start="11:00"), make_victim("old", "n", start="09:00")
    )

    assert victim_names(search_candidates(state, make_preemptor(cpu="1"))) == {"n": ["young"]}


def test_a_pod_that_has_not_started_is_the_youngest() -> None:
    state = make_cluster(
        make_small_node("n"), make_victim("starting", "n", start=""), make_victim("running", "n", start="23:00")
    )

    assert victim_names(search_candidates(state, make_preemptor(cpu="1"))) == {"n": ["starting"]}


def test_victims_are_listed_with_the_most_important_first() -> None:
    state = make_cluster(
        make_small_node("n", cpu="3"),
        make_victim("b", "n", priority=2),
        make_victim("a", "n", priority=3, labels={"app": "web"}),
        make_victim("c", "n", priority=1),
        make_budget(0, {"app": "web"}),
    )

    assert victim_names(search_candidates(state, make_preemptor(cpu="3"))) == {"n": ["a", "b", "c"]}


def test_of_equally_important_victims_those_that_a_budget_protects_are_first() -> None:
    """Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
    DefaultPreemption.SelectVictimsOnNode (1.36).
    """
    state = make_cluster(
        make_small_node("n", cpu="4"),
        make_victim("a", "n", priority=1),
        make_victim("b", "n", priority=2),
        make_victim("c", "n", priority=1, labels={"app": "web"}),
        make_victim("d", "n", priority=1),
        make_budget(0, {"app": "web"}),
    )

    assert victim_names(search_candidates(state, make_preemptor(cpu="4"))) == {"n": ["b", "c", "a", "d"]}


def test_a_small_pod_may_be_reprieved_after_a_more_important_large_one_was_not() -> None:
    state = make_cluster(
        make_small_node("n", cpu="3"),
        make_victim("large", "n", cpu="2", priority=2),
        make_victim("small", "n", cpu="1", priority=1),
    )

    assert victim_names(search_candidates(state, make_preemptor(cpu="2"))) == {"n": ["large"]}


def test_pods_of_the_same_or_a_higher_priority_stay() -> None:
    state = make_cluster(
        make_small_node("n"),
        make_victim("equal", "n", priority=100),
        make_victim("higher", "n", priority=101),
        make_small_node("other"),
    )
    state.add_or_update_pod(make_victim("below", "other", cpu="2", priority=99))

    found = search_candidates(state, make_preemptor(priority=100))

    assert victim_names(found) == {"other": ["below"]}
    assert found.reason_counts == {NO_VICTIMS: 1}


def test_a_pod_without_priority_has_priority_0() -> None:
    state = make_cluster(make_small_node("n"), make_pod("plain", node="n", requests={"cpu": "2"}))

    assert victim_names(search_candidates(state, make_preemptor(priority=1))) == {"n": ["plain"]}


def test_a_node_that_stays_too_small_has_its_reason() -> None:
    state = make_cluster(make_small_node("n"), make_victim("low", "n"), make_victim("equal", "n", priority=100))

    found = search_candidates(state, make_preemptor(cpu="2"))

    assert found.candidates == ()
    assert (found.failed_count, found.reason_counts) == (1, {"Insufficient cpu": 1})


def test_pods_that_a_budget_protects_are_reprieved_before_more_important_ones() -> None:
    state = make_cluster(
        make_small_node("n"),
        make_victim("important", "n", priority=9),
        make_victim("protected", "n", priority=1, labels={"app": "db"}),
        make_budget(0, {"app": "db"}),
    )

    (candidate,) = search_candidates(state, make_preemptor(cpu="1")).candidates

    assert [victim.pod.metadata.name for victim in candidate.victims] == ["important"]
    assert candidate.num_pdb_violations == 0


def test_a_budget_is_violated_as_a_last_resort_and_counted() -> None:
    state = make_cluster(
        make_small_node("n"),
        make_victim("a", "n", priority=2, labels={"app": "db"}),
        make_victim("b", "n", priority=1, labels={"app": "db"}),
        make_budget(1, {"app": "db"}),
    )

    (candidate,) = search_candidates(state, make_preemptor(cpu="2")).candidates

    assert len(candidate.victims) == 2
    assert candidate.num_pdb_violations == 1


def test_required_anti_affinity_evicts_the_pods_it_means() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
            ]
        }
    }
    state = make_cluster(
        make_small_node("n", cpu="8"),
        make_victim("web", "n", priority=5, labels={"app": "web"}),
        make_victim("other", "n", priority=1),
    )

    assert victim_names(search_candidates(state, make_preemptor(cpu="1", spec={"affinity": apart}))) == {"n": ["web"]}


def test_a_host_port_evicts_the_pod_that_has_it() -> None:
    port = {"containers": [{"name": "a", "ports": [{"hostPort": 80}]}]}
    state = make_cluster(
        make_small_node("n", cpu="8"),
        make_pod("taken", node="n", priority=5, spec=port, status={"startTime": "2026-01-01T00:00:00Z"}),
        make_victim("other", "n", priority=1),
    )

    assert victim_names(search_candidates(state, make_pod("high", priority=100, spec=port))) == {"n": ["taken"]}


def test_space_for_a_nominated_pod_of_no_lower_priority_is_left_free() -> None:
    state = make_cluster(
        make_small_node("n", cpu="3"),
        *(make_victim(name, "n", priority=p) for name, p in (("a", 3), ("b", 2), ("c", 1))),
    )
    state.nominate(make_preemptor("first", cpu="1"), "n")

    assert victim_names(search_candidates(state, make_preemptor(cpu="1"))) == {"n": ["b", "c"]}


@pytest.mark.parametrize("priority", [99, 100], ids=["of lower priority", "the pod itself"])
def test_other_nominations_do_not_count(priority: int) -> None:
    state = make_cluster(make_small_node("n"), make_victim("a", "n", priority=3), make_victim("b", "n", priority=2))
    name = "high" if priority == 100 else "lesser"
    state.nominate(make_preemptor(name, cpu="1", priority=priority), "n")

    assert victim_names(search_candidates(state, make_preemptor(cpu="1"))) == {"n": ["b"]}


def test_a_node_that_does_not_fit_both_pod_and_nominated_pod_is_rejected() -> None:
    state = make_cluster(make_small_node("n"), make_victim("low", "n"))
    state.nominate(make_preemptor("first", cpu="2"), "n")

    found = search_candidates(state, make_preemptor(cpu="1"))

    assert found.candidates == ()
    assert found.reason_counts == {"Insufficient cpu": 1}


def test_each_node_is_evaluated_on_its_own() -> None:
    state = make_cluster(*(make_small_node(f"n{number}") for number in range(4)))
    for number in range(4):
        for place in range(number):
            state.add_or_update_pod(
                make_victim(f"p{number}{place}", f"n{number}", cpu=f"{2000 // number}m", priority=place)
            )
    state.add_or_update_node(make_node("n0", allocatable={"cpu": "1", "pods": "10"}))

    assert victim_names(search_candidates(state, make_preemptor(cpu="1500m"))) == {
        "n1": ["p10"],
        "n2": ["p21", "p20"],
        "n3": ["p32", "p31", "p30"],
    }


def test_the_cluster_itself_is_left_as_it_was() -> None:
    state = make_cluster(make_small_node("n"), make_victim("a", "n"), make_victim("b", "n", priority=2))

    search_candidates(state, make_preemptor())

    snapshot = state.snapshot()
    assert sorted(pod.pod.metadata.name for pod in snapshot.pods_on("n").values()) == ["a", "b"]
    assert snapshot.view().requested(snapshot.symbols.resources.intern("cpu")).tolist() == [2000]


def test_a_pod_without_a_start_time_has_not_started() -> None:
    snapshot = make_cluster(make_small_node("n1"), make_victim("a", "n1", start="")).snapshot()
    (pod,) = snapshot.pods_on("n1").values()

    assert pod.start_time == inf
