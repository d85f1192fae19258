"""The nodes that can be emptied, the most expensive ones first, and why the other nodes stay."""

from typing import Any

from extender.answers.rebalance import EmptiedNode, RetainedNode
from extender.api.kinds.node import Node
from extender.app import wiring
from extender.planning.rebalance.empty_nodes import EmptyPlan, empty_nodes
from extender.planning.rebalance.move_simulator import MoveSimulator
from extender.planning.rebalance.plan import SearchLimits
from tests.unit.planning.clusters import SETUP, budget, make_cache, node, pod

WEB = {"app": "web"}


def plan_of(*objects: dict[str, Any], **arguments: Any) -> EmptyPlan:
    return empty_nodes(MoveSimulator(make_cache(*objects), SETUP.profiles, wiring.make_runtime()), **arguments)


def list_steps(plan: EmptyPlan) -> list[str]:
    return [
        f"{step.change.action.value} {step.change.name}{f' to {step.target}' if step.target else ''}"
        for step in plan.proof.steps
    ]


def get_price(price_of: Node) -> float | None:
    return {"n1": 1.0, "n2": 5.0, "n3": 3.0}.get(price_of.metadata.name)


def test_the_most_expensive_node_is_emptied_first_and_no_pod_moves_twice() -> None:
    nodes = [node(f"n{number}") for number in (1, 2, 3)]
    objects = [*nodes, *(pod(f"p{number}", "1", on=f"n{number}") for number in (1, 2, 3))]
    plan = plan_of(*objects, get_price=get_price)
    assert plan.emptied == (EmptiedNode("n2", 1, 5.0), EmptiedNode("n3", 1, 3.0))
    assert list_steps(plan) == ["cordon n2", "cordon n3", "evict default/p2 to n1", "evict default/p3 to n1"]
    assert plan.retained == (RetainedNode("n1", "default/p1", "finds no other node: node(s) were unschedulable", 1.0),)


def test_daemon_pods_do_not_keep_a_node() -> None:
    plan = plan_of(node("n1"), node("n2"), pod("d", on="n1", owner="DaemonSet"), pod("single", on="n2", owner=""))
    assert plan.emptied == (EmptiedNode("n1", 0, None),)
    assert plan.retained == (RetainedNode("n2", "default/single", "has no controller that creates a new pod", None),)


def test_a_budget_keeps_a_node() -> None:
    objects = (node("n1"), node("n2"), pod("a", on="n1", labels=WEB), pod("b", on="n2"), budget("web", WEB, 0))
    plan = plan_of(*objects)
    assert [entry.node for entry in plan.emptied] == ["n2"]
    assert plan.retained == (RetainedNode("n1", "default/a", "budget default/web does not allow it", None),)


def test_only_named_nodes_are_considered() -> None:
    objects = (node("n1"), node("n2"), pod("a", on="n1"), pod("b", on="n2"))
    plan = plan_of(*objects, names=["n2"])
    assert (list_steps(plan), plan.retained) == (["cordon n2", "evict default/b to n1"], ())


def test_a_cordoned_node_is_not_cordoned_again() -> None:
    plan = plan_of(node("n1", unschedulable=True), node("n2"), pod("a", on="n1"), names=["n1"])
    assert list_steps(plan) == ["evict default/a to n2"]


def test_the_number_of_moves_has_a_limit() -> None:
    objects = (node("n1"), node("n2"), pod("a", on="n1"), pod("b", on="n1"))
    plan = plan_of(*objects, names=["n1"], limits=SearchLimits(max_moves=1))
    assert plan.retained == (RetainedNode("n1", None, "more than 1 moves in all; see --max-moves", None),)
    plan = plan_of(*objects, names=["n1"], limits=SearchLimits(max_attempts=1))
    assert (plan.emptied, plan.is_complete) == ((), False)


def test_a_waiting_pod_that_needs_the_room_comes_first() -> None:
    """The replacement of "a" would fit on n2, but when it leaves, the anti-affinity of a waiting pod ends."""
    term = {"labelSelector": {"matchLabels": WEB}, "topologyKey": "kubernetes.io/os"}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [node("n1"), node("n2", "2")]
    nodes[0]["metadata"]["labels"]["kubernetes.io/os"] = nodes[1]["metadata"]["labels"]["kubernetes.io/os"] = "linux"
    waiting_pod = pod("w", "2", affinity=rules, priority=1)
    plan = plan_of(*nodes, pod("a", "2", on="n1", labels=WEB), waiting_pod, names=["n1"])
    assert (plan.emptied, plan.proof.steps) == ((), ())
    assert plan.retained[0].pod == "default/a"


def test_a_waiting_pod_that_is_placed_and_evicted_is_not_placed_twice() -> None:
    nodes = [node(f"n{number}") for number in range(6)]
    plan = plan_of(*nodes, pod("running", "1", on="n0"), pod("first", "1"), pod("second", "1"))
    assert list_steps(plan)[-2:] == ["evict default/first to n0", "evict default/second to n0"]
    assert [entry.pod for entry in plan.placed_before] == ["default/first", "default/second"]
    assert [step.placed for step in plan.proof.steps] == [()] * 7
