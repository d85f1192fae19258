"""Pods whose node violates their rules by now, and the moves that end the violations."""

from typing import Any

import pytest

from extender.answers.rebalance import RuleViolation
from extender.app import wiring
from extender.planning.rebalance.fix_violations import FixPlan, fix_violations
from extender.planning.rebalance.move_simulator import MoveSimulator
from extender.planning.rebalance.plan import SearchLimits
from tests.unit.planning.clusters import SETUP, ZONE, make_cache, node, pod

WEB = {"app": "web"}
HOST = "kubernetes.io/hostname"


def plan_of(*objects: dict[str, Any], limits: SearchLimits | None = None) -> FixPlan:
    return fix_violations(MoveSimulator(make_cache(*objects), SETUP.profiles, wiring.make_runtime()), limits)


def list_moves(plan: FixPlan) -> list[tuple[str, str]]:
    return [(step.change.name, step.target) for step in plan.proof.steps]


def anti_affinity(labels: dict[str, str]) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def affinity(labels: dict[str, str]) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": WEB},
}
CASES: dict[str, tuple[list[dict[str, Any]], RuleViolation]] = {
    "a taint that the pod does not tolerate": (
        [node("n1", taints=[TAINT]), node("n2"), pod("a", on="n1")],
        RuleViolation("default/a", "n1", "TaintToleration", "node(s) had untolerated taint(s)", "UntoleratedTaint"),
    ),
    "a label that the pod selects and the node lost": (
        [node("n1"), {**node("n2"), "metadata": {"name": "n2", "labels": WEB}}, pod("a", on="n1", nodeSelector=WEB)],
        RuleViolation(
            "default/a",
            "n1",
            "NodeAffinity",
            "node(s) didn't match Pod's node affinity/selector",
            "NodeAffinityMismatch",
        ),
    ),
    "a neighbor that the pod must have": (
        [node("n1"), node("n2"), pod("web", on="n2", labels=WEB), pod("a", on="n1", affinity=affinity(WEB))],
        RuleViolation(
            "default/a", "n1", "InterPodAffinity", "node(s) didn't match pod affinity rules", "PodAffinityMismatch"
        ),
    ),
    "a neighbor that the pod must not have": (
        [
            node("n1"),
            node("n2"),
            pod("web", on="n1", owner="", labels=WEB),
            pod("a", on="n1", affinity=anti_affinity(WEB)),
        ],
        RuleViolation(
            "default/a",
            "n1",
            "InterPodAffinity",
            "node(s) didn't match pod anti-affinity rules",
            "PodAntiAffinityConflict",
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pod_moves_because_of(case: str) -> None:
    objects, violation = CASES[case]
    plan = plan_of(*objects)
    assert violation in plan.violations
    assert (list_moves(plan), plan.remaining) == ([("default/a", "n2")], ())


def test_one_move_ends_a_skew_that_several_pods_violate() -> None:
    pods = [pod(name, on="a1", labels=WEB, topologySpreadConstraints=[SPREAD]) for name in "bcd"]
    plan = plan_of(node("a1", zone="a"), node("b1", zone="b"), pod("e", on="b1", labels=WEB), *pods)
    assert [entry.pod for entry in plan.violations] == ["default/b", "default/c", "default/d"]
    assert {entry.plugin for entry in plan.violations} == {"PodTopologySpread"}
    assert (list_moves(plan), plan.remaining) == ([("default/b", "b1")], ())


def test_the_pod_with_the_move_that_ends_most_violations_moves() -> None:
    pods = [pod(name, on="n1", labels=WEB) for name in "abd"]
    lone = pod("lone", on="n1", labels={"app": "lone"}, affinity=anti_affinity(WEB))
    plan = plan_of(node("n1"), node("n2"), *pods, lone)
    assert len(plan.violations) == 4  # the neighbors violate it too: they could not come back
    assert list_moves(plan) == [("default/lone", "n2")]


def test_a_violation_that_no_move_ends_has_the_reason() -> None:
    plan = plan_of(node("n1", taints=[TAINT]), node("n2", "1"), pod("a", "2", on="n1"), pod("b", on="n1", owner=""))
    assert {entry.pod: reason for entry, reason in plan.remaining} == {
        "default/a": "finds no other node: Insufficient cpu, node(s) had untolerated taint(s)",
        "default/b": "has no controller that creates a new pod",
    }


def test_daemon_pods_cordoned_nodes_and_full_nodes_are_no_violations() -> None:
    daemon = pod("d", on="n1", owner="DaemonSet")
    plan = plan_of(node("n1", taints=[TAINT]), node("n2", "1", unschedulable=True), daemon, pod("a", "9", on="n2"))
    assert (plan.violations, plan.proof.steps) == ((), ())


def test_the_number_of_moves_has_a_limit() -> None:
    pods = [pod(name, on="n1") for name in "ab"]
    plan = plan_of(node("n1", taints=[TAINT]), node("n2"), *pods, limits=SearchLimits(max_moves=1))
    assert (plan.proof.moves, plan.is_complete) == (1, False)
    assert [reason for _, reason in plan.remaining] == ["the search reached its limit"]
