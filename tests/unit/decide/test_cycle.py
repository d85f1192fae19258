"""One attempt from pod to node: what is picked, what is said when nothing can be, and when the queue comes first."""

from random import Random
from typing import Any

import pytest

from extender.decide.admission import held_back
from extender.decide.cycle import decide
from extender.decide.decision import Decision, Placed, Unplaced
from extender.decide.engine import Engine
from extender.decide.sampling import Search
from extender.framework.verdict import Code, Status
from extender.plugins.scheduling_gates import SchedulingGates
from tests.build import a_cluster, a_node, a_pod
from tests.unit.decide.stand_ins import Broken, Helping, Rating, Refusing, a_profile


def decided(*plugins: Any, nodes: str = "abc", seed: int = 1, percentage: int | None = None) -> Decision:
    """What becomes of a pod on these nodes."""
    cluster = a_cluster(*map(a_node, nodes)).snapshot()
    profile = a_profile(*plugins, percentage=percentage)
    return decide(cluster.query(a_pod()), cluster, profile, Engine(), Random(seed), Search())


def unplaced(*plugins: Any, nodes: str = "abc") -> Unplaced:
    decision = decided(*plugins, nodes=nodes)
    assert isinstance(decision, Unplaced)
    return decision


def test_the_best_node_is_picked() -> None:
    decision = decided(Rating("X", {"a": 1, "b": 9, "c": 3}))

    assert isinstance(decision, Placed)
    assert (decision.node, decision.feasible, decision.evaluated) == ("b", 3, 3)


def test_ties_are_broken_by_chance_and_only_among_the_best() -> None:
    rating = Rating("X", {"a": 5, "b": 9, "c": 9})
    picked = {decision.node for seed in range(20) if isinstance(decision := decided(rating, seed=seed), Placed)}

    assert picked == {"b", "c"}


def test_the_only_feasible_node_is_taken_unrated() -> None:
    """A broken score plugin is of no consequence then (A100)."""
    decision = decided(Refusing("R", "a", "b"), Rating("X", {}))

    assert isinstance(decision, Placed)
    assert (decision.node, decision.ranking) == ("c", None)


@pytest.mark.parametrize(
    ("plugins", "node"),
    [((), "a"), ((Refusing("R", "a"),), "b")],
    ids=["it takes the pod", "it does not"],
)
def test_the_node_a_pod_is_nominated_for_is_taken_unrated_if_it_takes_the_pod(plugins: Any, node: str) -> None:
    """Source: A097."""
    cluster = a_cluster(*map(a_node, "abc")).snapshot()
    profile = a_profile(*plugins, Rating("X", {"a": 1, "b": 9, "c": 3}))
    pod = a_pod(status={"nominatedNodeName": "a"})

    decision = decide(cluster.query(pod), cluster, profile, Engine(), Random(1), Search())

    assert isinstance(decision, Placed)
    assert decision.node == node


def test_without_nodes_post_filter_is_not_asked() -> None:
    """Source: A018."""
    helping = Helping("H", Code.SUCCESS)

    decision = unplaced(helping, nodes="")

    assert decision.message == "no nodes available to schedule pods"
    assert decision.status.code is Code.UNRESOLVABLE
    assert decision.rejectors == frozenset()
    assert helping.asked == 0


def test_a_rejected_pod_says_who_rejected_it() -> None:
    decision = unplaced(Refusing("R", "a", "b", "c", text="no"))

    assert decision.message == "0/3 nodes are available: 3 no."
    assert (decision.reason, decision.rejectors, decision.nominated) == ("Unschedulable", {"R"}, "")


def test_an_error_is_no_rejection() -> None:
    """The pod has no rejectors, so that the queue retries it after its error backoff (A018, A019)."""
    helping = Helping("H", Code.SUCCESS)

    decision = unplaced(Broken(), helping)

    assert decision.reason == "SchedulerError"
    assert decision.message == 'running PreFilter plugin "Broken": ValueError: out of order'
    assert (decision.rejectors, helping.asked) == (frozenset(), 0)


def test_failing_to_score_is_an_error() -> None:
    decision = unplaced(Rating("X", {"a": 1, "b": 101, "c": 1}))

    assert decision.reason == "SchedulerError"
    assert 'plugin "X" returns an invalid score 101' in decision.message


@pytest.mark.parametrize(
    ("plugins", "message", "nominated"),
    [
        ([Helping("A", Code.UNSCHEDULABLE, "x"), Helping("B", Code.UNSCHEDULABLE, "y")], " x, y", None),
        ([Helping("A", Code.UNSCHEDULABLE, "x"), Helping("B", Code.SUCCESS, nominated="b")], "", "b"),
        ([Helping("A", Code.SUCCESS, nominated="a"), Helping("B", Code.UNSCHEDULABLE, "y")], "", "a"),
        ([Helping("A", Code.UNSCHEDULABLE, "x", nominated=""), Helping("B", Code.UNSCHEDULABLE, "y")], " x, y", ""),
        ([Helping("A", Code.UNRESOLVABLE, "x"), Helping("B", Code.SUCCESS, nominated="b")], " x", None),
        ([Helping("A", Code.ERROR, "not found"), Helping("B", Code.SUCCESS, nominated="b")], " not found", None),
    ],
    ids=[
        "all that cannot help are heard",
        "the first that helps decides",
        "nobody is asked after success",
        "a cleared nomination is remembered",
        "what is final ends the round",
        "an error ends the round",
    ],
)
def test_post_filter_plugins_are_asked_in_order(plugins: list[Any], message: str, nominated: str | None) -> None:
    """Source: A062."""
    decision = unplaced(Refusing("R", "a", "b", "c", text="no"), *plugins)

    assert decision.message == f"0/3 nodes are available: 3 no.{message}"
    assert decision.nominated == nominated


def test_a_percentage_stops_the_search_early() -> None:
    names = [f"n{i}" for i in range(200)]
    cluster = a_cluster(*map(a_node, names)).snapshot()
    rating = Rating("X", dict.fromkeys(names, 1))

    decision = decide(cluster.query(a_pod()), cluster, a_profile(rating, percentage=10), Engine(), Random(1), Search())

    assert isinstance(decision, Placed)
    assert (decision.feasible, decision.evaluated) == (100, 100)


def test_a_gated_pod_does_not_enter_the_queue() -> None:
    cluster = a_cluster(a_node("a")).snapshot()
    gated = cluster.query(a_pod(spec={"schedulingGates": [{"name": "quota"}]}))

    assert held_back(gated, cluster, a_profile(SchedulingGates()), Engine()) == Status(
        Code.UNRESOLVABLE, ("waiting for scheduling gates: [quota]",), "SchedulingGates"
    )
    assert held_back(cluster.query(a_pod()), cluster, a_profile(SchedulingGates()), Engine()) is None


def test_a_broken_pre_enqueue_holds_the_pod_back_with_its_name() -> None:
    cluster = a_cluster(a_node("a")).snapshot()

    status = held_back(cluster.query(a_pod()), cluster, a_profile(Broken()), Engine())

    assert status == Status(Code.ERROR, ('running PreEnqueue plugin "Broken": ValueError: out of order',), "Broken")
