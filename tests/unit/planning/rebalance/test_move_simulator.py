"""Evictions on a cache: the scheduling cycle places the pod again, and every change can be undone."""

from typing import Any

import pytest

from extender.answers.rebalance import PodPlacement
from extender.app import wiring
from extender.planning.rebalance.move_simulator import Move, MoveSimulator, stays_with_node
from extender.planning.rebalance.plan import Action, Change
from tests.unit.planning.clusters import SETUP, budget, make_cache, node, pod

WEB = {"app": "web"}


def make_simulator(*objects: dict[str, Any]) -> MoveSimulator:
    return MoveSimulator(make_cache(*objects), SETUP.profiles, wiring.make_runtime())


def get_nodes(simulator: MoveSimulator) -> dict[str, str]:
    return {entry.key: entry.node_name for entry in simulator.cache.assigned_pods.values()}


def evict(simulator: MoveSimulator, key: str, *, settles: bool = False) -> Move | str:
    assigned_pod = simulator.find_assigned_pod(key)
    assert assigned_pod is not None
    return simulator.evict(assigned_pod, settles=settles)


def test_an_evicted_pod_goes_where_the_scheduling_cycle_places_it() -> None:
    simulator = make_simulator(node("n1"), node("n2"), node("n3", "1"), pod("a", "2", on="n1"))
    simulator.cordon("n1")
    move = evict(simulator, "default/a")
    assert isinstance(move, Move)
    assert (move.pod.node_name, move.equal_nodes) == ("n2", ("n2",))
    simulator.undo_to(0)
    assert get_nodes(simulator) == {"default/a": "n1"}
    assert not simulator.is_cordoned("n1")


def test_a_move_without_another_node_changes_nothing() -> None:
    simulator = make_simulator(node("n1"), node("n2", "1"), pod("a", "2", on="n1"))
    simulator.cordon("n1")
    assert evict(simulator, "default/a") == "finds no other node: Insufficient cpu, node(s) were unschedulable"
    assert get_nodes(simulator) == {"default/a": "n1"}


def test_a_budget_allows_a_second_eviction_after_the_first_pod_is_placed() -> None:
    pods = [pod(name, "1", on="n1", labels=WEB) for name in "ab"]
    simulator = make_simulator(node("n1"), node("n2"), *pods, budget("web", WEB, 1))
    simulator.cordon("n1")
    assert isinstance(evict(simulator, "default/a"), Move)
    assert isinstance(evict(simulator, "default/b"), Move)
    simulator.undo_to(0)
    assert get_nodes(simulator) == {"default/a": "n1", "default/b": "n1"}


def test_a_pod_on_an_unknown_budget_is_not_evicted() -> None:
    simulator = make_simulator(node("n1"), node("n2"), pod("a", on="n1", labels=WEB), budget("web", WEB, 0))
    assert evict(simulator, "default/a") == "budget default/web does not allow it"


def test_waiting_pods_take_the_room_first_if_they_are_tried() -> None:
    objects = (
        node("n1", "2"),
        node("n2", "2"),
        pod("a", "2", on="n1"),
        pod("w", "2", priority=1),
        pod("x", "1", on="n2"),
    )
    simulator = make_simulator(*objects)
    # The waiting pod comes first in the queue, so the evicted pod finds no node.
    assert evict(simulator, "default/a", settles=True) == "finds no other node: Insufficient cpu"
    assert get_nodes(simulator) == {"default/a": "n1", "default/x": "n2"}
    assert [entry.metadata.name for entry in simulator.cache.pending_pods.values()] == ["w"]


def test_changes_are_proven_in_order_up_to_the_first_that_is_not_possible() -> None:
    simulator = make_simulator(node("n1", "3"), node("n2", "3"), pod("a", "1", on="n1"), pod("w", "3"))
    simulator.settle()
    changes = [
        Change(Action.CORDON, "n1"),
        Change(Action.EVICT, "default/a"),
        Change(Action.UNCORDON, "n1"),
        Change(Action.EVICT, "default/gone"),
    ]
    simulator = make_simulator(node("n1", "3"), node("n2", "2"), pod("a", "1", on="n1"), pod("w", "3"))
    proof = simulator.prove(changes)
    assert [step.change for step in proof.steps] == changes[:3]
    assert (proof.steps[1].source, proof.steps[1].target, proof.steps[1].placed) == ("n1", "n2", ())
    assert proof.steps[2].placed == (PodPlacement("default/w", "n1"),)
    assert str(proof.failure) == "evict default/gone: is on no node"
    assert proof.moves == 1


def test_an_unknown_node_is_a_failure() -> None:
    proof = make_simulator(node("n1")).prove([Change(Action.CORDON, "n9")])
    assert str(proof.failure) == "cordon n9: there is no such node"


def test_a_pod_that_was_placed_and_evicted_again_waits_after_all_is_undone() -> None:
    simulator = make_simulator(node("n1", "2"), node("n2", "2"), pod("w", "1"))
    simulator.settle()
    (first,) = get_nodes(simulator).values()
    simulator.cordon(first)
    assert isinstance(evict(simulator, "default/w"), Move)
    simulator.undo_to(0)
    assert get_nodes(simulator) == {}
    assert [entry.metadata.name for entry in simulator.cache.pending_pods.values()] == ["w"]


CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str]] = {
    "a pod of a controller": (pod("a", on="n1"), [], ""),
    "a pod whose budget allows it": (pod("a", on="n1", labels=WEB), [budget("web", WEB, 1)], ""),
    "a DaemonSet pod": (pod("a", on="n1", owner="DaemonSet"), [], "belongs to its node"),
    "a pod without a controller": (pod("a", on="n1", owner=""), [], "has no controller that creates a new pod"),
    "a pod that the cluster autoscaler must not evict": (
        pod("a", on="n1", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
        [],
        "has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict=false",
    ),
    "a pod that Karpenter must not evict": (
        pod("a", on="n1", annotations={"karpenter.sh/do-not-disrupt": "true"}),
        [],
        "has the annotation karpenter.sh/do-not-disrupt=true",
    ),
    "a pod of another scheduler": (
        pod("a", on="n1", schedulerName="other"),
        [],
        'waits for scheduler "other", which has no profile',
    ),
    "a pod whose budget is used up": (
        pod("a", on="n1", labels=WEB),
        [budget("web", WEB, 0)],
        "budget default/web does not allow it",
    ),
    "a pod with two budgets": (
        pod("a", on="n1", labels=WEB),
        [budget("web", WEB, 1), budget("second", WEB, 1)],
        "budget default/web, default/second does not allow it",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_obstacles_of(case: str) -> None:
    body, budgets, expected = CASES[case]
    simulator = make_simulator(node("n1"), body, *budgets)
    (assigned_pod,) = simulator.cache.assigned_pods.values()
    assert simulator.find_obstacle(assigned_pod) == expected


def test_only_daemon_mirror_and_terminating_pods_stay_with_their_node() -> None:
    terminating = pod("t", on="n1")
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    mirror = pod("m", on="n1", annotations={"kubernetes.io/config.mirror": "x"})
    cache = make_cache(
        node("n1"), terminating, mirror, pod("d", on="n1", owner="DaemonSet"), pod("o", on="n1", owner="")
    )
    staying = {entry.pod.metadata.name for entry in cache.assigned_pods.values() if stays_with_node(entry)}
    assert staying == {"t", "m", "d"}


def test_each_attempt_is_announced_before_it_begins() -> None:
    calls: list[str] = []
    cache = make_cache(node("n1", "2"), node("n2", "2"), pod("a", "1", on="n1"))
    simulator = MoveSimulator(cache, SETUP.profiles, wiring.make_runtime(), on_attempt=lambda: calls.append("attempt"))
    move = evict(simulator, "default/a")
    assert isinstance(move, Move)
    assert calls == ["attempt"]
    simulator.check_node(move.pod.pod, "n1")
    assert calls == ["attempt"] * simulator.attempts == ["attempt"] * 2
