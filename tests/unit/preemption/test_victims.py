"""Who must go: everybody of lower priority is taken away, then the most important come back first."""

import pytest

from extender.preemption.victims import NO_VICTIMS
from tests.build import a_cluster, a_node, a_pod
from tests.unit.preemption.worlds import HOST, a_budget, a_small_node, high, low, searched, victims


def test_as_few_pods_as_possible_go_and_the_least_important_ones() -> None:
    state = a_cluster(
        a_small_node("n", cpu="4"), low("a", "n", priority=3), low("b", "n", priority=2), low("c", "n", priority=1)
    )

    assert victims(searched(state, high(cpu="2"))) == {"n": ["c"]}


def test_of_equal_priority_the_longest_running_is_spared_first() -> None:
    state = a_cluster(a_small_node("n"), low("young", "n", start="11:00"), low("old", "n", start="09:00"))

    assert victims(searched(state, high(cpu="1"))) == {"n": ["young"]}


def test_a_pod_that_has_not_started_is_the_youngest() -> None:
    state = a_cluster(a_small_node("n"), low("starting", "n", start=""), low("running", "n", start="23:00"))

    assert victims(searched(state, high(cpu="1"))) == {"n": ["starting"]}


def test_victims_are_told_with_the_most_important_first() -> None:
    state = a_cluster(
        a_small_node("n", cpu="3"),
        low("b", "n", priority=2),
        low("a", "n", priority=3, labels={"app": "web"}),
        low("c", "n", priority=1),
        a_budget(0, {"app": "web"}),
    )

    assert victims(searched(state, high(cpu="3"))) == {"n": ["a", "b", "c"]}


def test_a_small_pod_may_be_spared_after_a_more_important_large_one_was_not() -> None:
    state = a_cluster(
        a_small_node("n", cpu="3"), low("large", "n", cpu="2", priority=2), low("small", "n", cpu="1", priority=1)
    )

    assert victims(searched(state, high(cpu="2"))) == {"n": ["large"]}


def test_pods_of_the_same_or_a_higher_priority_stay() -> None:
    state = a_cluster(
        a_small_node("n"), low("equal", "n", priority=100), low("higher", "n", priority=101), a_small_node("other")
    )
    state.put_pod(low("below", "other", cpu="2", priority=99))

    found = searched(state, high(priority=100))

    assert victims(found) == {"other": ["below"]}
    assert found.reasons == {NO_VICTIMS: 1}


def test_a_pod_without_priority_has_priority_0() -> None:
    state = a_cluster(a_small_node("n"), a_pod("plain", node="n", requests={"cpu": "2"}))

    assert victims(searched(state, high(priority=1))) == {"n": ["plain"]}


def test_a_node_that_stays_too_small_is_told_why() -> None:
    state = a_cluster(a_small_node("n"), low("low", "n"), low("equal", "n", priority=100))

    found = searched(state, high(cpu="2"))

    assert found.candidates == ()
    assert (found.failed, found.reasons) == (1, {"Insufficient cpu": 1})


def test_pods_a_budget_protects_are_spared_before_more_important_ones() -> None:
    state = a_cluster(
        a_small_node("n"),
        low("important", "n", priority=9),
        low("protected", "n", priority=1, labels={"app": "db"}),
        a_budget(0, {"app": "db"}),
    )

    (candidate,) = searched(state, high(cpu="1")).candidates

    assert [victim.pod.metadata.name for victim in candidate.victims] == ["important"]
    assert candidate.violations == 0


def test_a_budget_is_broken_as_a_last_resort_and_counted() -> None:
    state = a_cluster(
        a_small_node("n"),
        low("a", "n", priority=2, labels={"app": "db"}),
        low("b", "n", priority=1, labels={"app": "db"}),
        a_budget(1, {"app": "db"}),
    )

    (candidate,) = searched(state, high(cpu="2")).candidates

    assert len(candidate.victims) == 2
    assert candidate.violations == 1


def test_required_anti_affinity_evicts_the_pods_it_means() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
            ]
        }
    }
    state = a_cluster(
        a_small_node("n", cpu="8"), low("web", "n", priority=5, labels={"app": "web"}), low("other", "n", priority=1)
    )

    assert victims(searched(state, high(cpu="1", spec={"affinity": apart}))) == {"n": ["web"]}


def test_a_host_port_evicts_the_pod_that_has_it() -> None:
    port = {"containers": [{"name": "a", "ports": [{"hostPort": 80}]}]}
    state = a_cluster(
        a_small_node("n", cpu="8"),
        a_pod("taken", node="n", priority=5, spec=port, status={"startTime": "2026-01-01T00:00:00Z"}),
        low("other", "n", priority=1),
    )

    assert victims(searched(state, a_pod("high", priority=100, spec=port))) == {"n": ["taken"]}


def test_room_for_a_nominated_pod_of_no_lower_priority_is_left_free() -> None:
    state = a_cluster(
        a_small_node("n", cpu="3"), *(low(name, "n", priority=p) for name, p in (("a", 3), ("b", 2), ("c", 1)))
    )
    state.nominate(high("first", cpu="1"), "n")

    assert victims(searched(state, high(cpu="1"))) == {"n": ["b", "c"]}


@pytest.mark.parametrize("priority", [99, 100], ids=["of lower priority", "the pod itself"])
def test_other_nominations_do_not_count(priority: int) -> None:
    state = a_cluster(a_small_node("n"), low("a", "n", priority=3), low("b", "n", priority=2))
    name = "high" if priority == 100 else "lesser"
    state.nominate(high(name, cpu="1", priority=priority), "n")

    assert victims(searched(state, high(cpu="1"))) == {"n": ["b"]}


def test_a_nominated_pod_that_fits_nowhere_beside_the_pod_rules_the_node_out() -> None:
    state = a_cluster(a_small_node("n"), low("low", "n"))
    state.nominate(high("first", cpu="2"), "n")

    found = searched(state, high(cpu="1"))

    assert found.candidates == ()
    assert found.reasons == {"Insufficient cpu": 1}


def test_each_node_is_judged_for_itself() -> None:
    state = a_cluster(*(a_small_node(f"n{number}") for number in range(4)))
    for number in range(4):
        for place in range(number):
            state.put_pod(low(f"p{number}{place}", f"n{number}", cpu=f"{2000 // number}m", priority=place))
    state.put_node(a_node("n0", allocatable={"cpu": "1", "pods": "10"}))

    assert victims(searched(state, high(cpu="1500m"))) == {
        "n1": ["p10"],
        "n2": ["p21", "p20"],
        "n3": ["p32", "p31", "p30"],
    }


def test_the_cluster_itself_is_left_as_it_was() -> None:
    state = a_cluster(a_small_node("n"), low("a", "n"), low("b", "n", priority=2))

    searched(state, high())

    cluster = state.snapshot()
    assert sorted(pod.pod.metadata.name for pod in cluster.pods_on("n").values()) == ["a", "b"]
    assert cluster.view().requested(cluster.vocabulary.resources.id("cpu")).tolist() == [2000]
