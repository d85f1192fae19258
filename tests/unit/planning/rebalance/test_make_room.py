"""The fewest evictions that let pods run: direct ones, chains, budgets, several pods, and other pods in the queue."""

from typing import Any

from extender.answers.rebalance import PodPlacement
from extender.app import wiring
from extender.planning.rebalance.make_room import RoomPlan, make_room
from extender.planning.rebalance.move_simulator import MoveSimulator
from extender.planning.rebalance.plan import Action, SearchLimits
from tests.unit.planning.clusters import SETUP, ZONE, budget, make_cache, node, pod

WEB = {"app": "web"}


def plan_for(*names: str, objects: list[dict[str, Any]], limits: SearchLimits | None = None) -> RoomPlan:
    simulator = MoveSimulator(make_cache(*objects), SETUP.profiles, wiring.make_runtime())
    return make_room(simulator, [entry for entry in simulator.waiting if entry.metadata.name in names], limits)


def list_steps(plan: RoomPlan) -> list[str]:
    return [
        f"{step.change.action.value} {step.change.name}{f' to {step.target}' if step.target else ''}"
        for step in plan.proof.steps
    ]


def test_one_eviction_frees_a_node() -> None:
    objects = [node("n1"), node("n2"), pod("a", "2", on="n1"), pod("b", "1", on="n2"), pod("c", "2", on="n2")]
    plan = plan_for("big", objects=[*objects, pod("big", "3")])
    assert list_steps(plan) == ["cordon n2", "evict default/c to n1", "uncordon n2"]
    assert plan.proof.steps[-1].placed == (PodPlacement("default/big", "n2"),)
    assert (plan.unplaced, plan.is_complete) == ((), True)


def test_a_pod_that_fits_needs_no_move() -> None:
    plan = plan_for("w", objects=[node("n1"), pod("w")])
    assert (plan.proof.steps, plan.placed_before) == ((), (PodPlacement("default/w", "n1"),))


def test_the_gate_of_a_gated_pod_is_the_reason() -> None:
    objects = [node("n1"), pod("a", "3", on="n1"), pod("big", "3", schedulingGates=[{"name": "example.com/quota"}])]
    plan = plan_for("big", objects=objects)
    assert plan.unplaced == (("default/big", "waiting for scheduling gates: [example.com/quota]"),)


def test_room_is_made_for_a_pod_that_makes_room() -> None:
    # "a" fits only on n2, after "b" has left for n3.
    ssd = node("n2", "2")
    for body in (first := node("n1", "4"), ssd):
        body["metadata"]["labels"]["disk"] = "ssd"
    objects = [
        first,
        ssd,
        node("n3", "2"),
        pod("a", "2", on="n1", nodeSelector={"disk": "ssd"}),
        pod("b", "2", on="n2"),
    ]
    plan = plan_for("big", objects=[*objects, pod("big", "4")])
    assert list_steps(plan) == [
        "cordon n1",
        "cordon n2",
        "evict default/b to n3",
        "uncordon n2",
        "evict default/a to n2",
        "uncordon n1",
    ]


def test_many_pods_are_searched_from_each_node() -> None:
    """With 80 pods, sequences of two moves are too many to try all of them."""
    objects: list[dict[str, Any]] = [node(f"n{number}", "4") for number in range(20)]
    objects += [pod(f"p{number}", "900m", on=f"n{number % 20}", labels={"p": "x"}) for number in range(80)]
    objects += [node("spare", "2"), pod("big", "1900m", nodeSelector={"kubernetes.io/hostname": "n7"})]
    plan = plan_for("big", objects=objects)
    assert plan.proof.moves == 2
    assert {step.target for step in plan.proof.steps if step.change.action is Action.EVICT} == {"spare"}
    assert plan.proof.steps[-1].placed == (PodPlacement("default/big", "n7"),)


def test_a_pod_with_a_budget_that_forbids_it_is_not_evicted() -> None:
    objects = [
        node("n1"),
        node("n2"),
        pod("a", "2", on="n1"),
        pod("c", "3", on="n2", labels=WEB),
        budget("web", WEB, 0),
    ]
    plan = plan_for("big", objects=[*objects, pod("big", "4")])
    assert list_steps(plan) == []
    assert plan.unplaced == (("default/big", "0/2 nodes are available: 2 Insufficient cpu."),)


def test_a_move_out_of_a_zone_ends_a_conflict_of_anti_affinity() -> None:
    term = {"labelSelector": {"matchLabels": WEB}, "topologyKey": ZONE}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    objects = [
        node("a1", zone="a"),
        node("a2", zone="a"),
        node("b1", "1", zone="b"),
        pod("web", "1", on="a1", labels=WEB),
    ]
    plan = plan_for("lone", objects=[*objects, pod("lone", "2", affinity=rules)])
    assert plan.proof.moves == 1
    assert [step.target for step in plan.proof.steps if step.target] == ["b1"]


def test_another_waiting_pod_that_comes_first_in_the_queue_takes_the_room() -> None:
    objects = [
        node("n1"),
        node("n2"),
        pod("a", "2", on="n1"),
        pod("c", "2", on="n2"),
        pod("w", "3"),
        pod("first", "3", priority=1),
    ]
    assert plan_for("w", objects=objects).unplaced[0][0] == "default/w"
    plan = plan_for("first", objects=objects)
    assert (plan.proof.moves, plan.unplaced) == (1, ())


def test_several_pods_share_one_plan() -> None:
    objects = [node(f"n{number}") for number in (1, 2, 3)]
    objects += [pod(f"p{number}", "1", on=f"n{number % 3 + 1}") for number in range(6)]
    plan = plan_for("w1", "w2", objects=[*objects, pod("w1", "3"), pod("w2", "2")])
    assert plan.unplaced == ()
    placed = [entry.pod for step in plan.proof.steps for entry in step.placed]
    assert sorted([*placed, *(entry.pod for entry in plan.placed_before)]) == ["default/w1", "default/w2"]


def test_a_search_that_reaches_its_limit_says_so() -> None:
    objects = [node("n1"), node("n2"), pod("a", "3", on="n1"), pod("c", "3", on="n2"), pod("big", "4")]
    assert plan_for("big", objects=objects).is_complete
    plan = plan_for("big", objects=objects, limits=SearchLimits(max_attempts=1))
    assert ([pod for pod, _ in plan.unplaced], plan.is_complete) == (["default/big"], False)
