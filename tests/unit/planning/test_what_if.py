"""The outcome of scenarios: moves, waiting pods, preemption, budgets, and the cluster afterwards."""

from dataclasses import replace
from typing import Any, ClassVar

from extender.answers.planning import (
    BlockedPodResult,
    EvictedPodResult,
    LostPodResult,
    MovedPodResult,
    ScenarioOutcome,
    ViolatedBudget,
)
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.framework.binding_points import PermitResult
from extender.framework.status import Code, Status
from extender.planning.scenario import AddedNodes, Scale, Scenario
from extender.planning.what_if import WhatIfRunner
from tests.unit.planning.clusters import SETUP, ZONE, budget, decode_pod, make_cache, node, pod

WEB = {"app": "web"}
CHANGING = (0, 0)
"""The progress while the changes of a scenario are applied."""


def make_runner(*objects: dict[str, Any]) -> tuple[Cache, WhatIfRunner]:
    cache = make_cache(*objects)
    return cache, WhatIfRunner(cache, SETUP.profiles, wiring.make_runtime())


def run(*objects: dict[str, Any], **changes: Any) -> ScenarioOutcome:
    return make_runner(*objects)[1].run(Scenario(**changes))


def test_drained_pods_move_and_those_without_space_wait_with_their_reasons() -> None:
    outcome = run(node("n1", "4"), node("n2", "2"), pod("a", "2", on="n1"), pod("b", "1", on="n1"), drain=("n1",))
    assert outcome.moved == [MovedPodResult("default/a", "n1", "n2")]
    (waiting,) = outcome.waiting
    assert (waiting.pod, waiting.source, waiting.was_waiting) == ("default/b", "n1", False)
    assert waiting.reasons == ["Insufficient cpu", "node(s) were unschedulable"]
    assert (outcome.before.waiting, outcome.after.waiting) == (0, 1)
    assert (outcome.before.pods, outcome.after.pods) == (2, 1)


def test_a_pod_that_waits_already_is_placed_by_new_nodes() -> None:
    outcome = run(node("n1", "1"), pod("a", "1", on="n1"), pod("b", "1"), pod("c", "9"), add=(AddedNodes(1, "n1"),))
    assert outcome.moved == [MovedPodResult("default/b", None, "n1-new-1")]
    assert [(waiting.pod, waiting.was_waiting) for waiting in outcome.waiting] == [("default/c", True)]


def test_pods_of_a_lost_zone_move_and_a_pod_without_a_controller_is_lost() -> None:
    outcome = run(
        node("a1", zone="a"),
        node("b1", zone="b"),
        pod("web", on="a1"),
        pod("single", on="a1", owner=""),
        lose=((ZONE, "a"),),
    )
    assert outcome.moved == [MovedPodResult("default/web", "a1", "b1")]
    assert outcome.lost == [LostPodResult("default/single", "a1")]
    assert (outcome.before.nodes, outcome.after.nodes) == (2, 1)


def test_a_budget_lets_a_drain_continue_while_replacements_find_nodes() -> None:
    pods = [pod(name, "1", on="n1", labels=WEB) for name in ("a", "b", "c")]
    outcome = run(node("n1", "9"), node("n2", "2"), *pods, budget("web", WEB, 1), drain=("n1",))
    assert [moved.pod for moved in outcome.moved] == ["default/a", "default/b"]
    # The third replacement finds no node. It used up the budget, but no other pod needs it.
    assert [waiting.pod for waiting in outcome.waiting] == ["default/c"]
    assert outcome.blocked == []


def test_a_budget_blocks_a_drain_when_a_replacement_waits() -> None:
    pods = [pod(name, "1", on="n1", labels=WEB) for name in ("a", "b", "c")]
    outcome = run(node("n1", "9"), node("n2", "1"), *pods, budget("web", WEB, 1), drain=("n1",))
    assert [moved.pod for moved in outcome.moved] == ["default/a"]
    assert [waiting.pod for waiting in outcome.waiting] == ["default/b"]
    assert outcome.blocked == [BlockedPodResult("default/c", "n1", ["default/web"])]


def test_a_pod_that_would_preempt_waits_and_preempts_only_if_the_scenario_allows_it() -> None:
    objects = (
        node("n1", "2"),
        node("n2", "2"),
        pod("low", "2", on="n2", priority=1),
        pod("high", "2", on="n1", priority=9),
    )
    outcome = run(*objects, drain=("n1",))
    (waiting,) = outcome.waiting
    assert waiting.preemption is not None
    assert (waiting.preemption.node, waiting.preemption.victims) == (
        "n2",
        ["default/low"],
    )
    outcome = run(*objects, drain=("n1",), preempt=True)
    assert outcome.moved == [MovedPodResult("default/high", "n1", "n2")]
    assert outcome.evicted == [EvictedPodResult("default/low", "n2", "default/high", [])]
    assert [(waiting.pod, waiting.source) for waiting in outcome.waiting] == [("default/low", "n2")]


def test_a_victim_may_find_another_node_and_its_budget_is_named() -> None:
    selector = {"disk": "ssd"}
    ssd = node("n2", "2")
    ssd["metadata"]["labels"].update(selector)
    outcome = run(
        node("n1", "2"),
        ssd,
        pod("low", "2", on="n2", labels=WEB, priority=1),
        pod("new", "2", priority=9, nodeSelector=selector),
        budget("web", WEB, 0),
        preempt=True,
    )
    assert outcome.evicted == [EvictedPodResult("default/low", "n2", "default/new", ["default/web"])]
    assert outcome.moved == [MovedPodResult("default/new", None, "n2"), MovedPodResult("default/low", "n2", "n1")]
    assert outcome.violated_budgets == [ViolatedBudget("default/web", ["default/low"])]


class LetsLowWait:
    """Lets the pod `low` wait on Permit."""

    name: ClassVar[str] = "LetsLowWait"

    def permit(self, pod: Any, *_: Any) -> PermitResult:
        return PermitResult(Status(Code.WAIT, ("for a turn",)), 60.0) if pod.uid == "uid-low" else PermitResult()


def test_a_pod_that_waits_on_permit_can_be_evicted_by_a_pod_that_a_budget_let_move_later() -> None:
    profiles = {
        name: replace(profile, permit_plugins=(*profile.permit_plugins, LetsLowWait()))
        for name, profile in SETUP.profiles.items()
    }
    drained = [pod(name, "1", on="n1", labels=WEB, priority=9) for name in ("a", "b")]
    low = pod("low", "2", owner="", priority=0)
    cache = make_cache(node("n1", "9"), node("n2", "3"), *drained, low, budget("web", WEB, 1))
    runner = WhatIfRunner(cache, profiles, wiring.make_runtime())
    outcome = runner.run(Scenario(drain=("n1",), preempt=True))
    assert [(moved.pod, moved.to) for moved in outcome.moved] == [("default/a", "n2"), ("default/b", "n2")]
    assert [(waiting.pod, waiting.reasons) for waiting in outcome.waiting] == [
        ("default/low", ["Insufficient cpu", "node(s) were unschedulable"])
    ]
    assert outcome.evicted == [EvictedPodResult("default/low", "n2", "default/b", [])]


def test_a_later_preemption_sees_the_budget_that_an_earlier_one_used() -> None:
    selector = {"disk": "ssd"}
    nodes = [node(f"n{number}", "2") for number in (1, 2, 3)]
    for body in nodes:
        body["metadata"]["labels"].update(selector)
    victims = [
        pod("web-a", "2", on="n1", labels=WEB, priority=1),
        pod("web-b", "2", on="n2", labels=WEB, priority=2),
        pod("other", "2", on="n3", priority=3, preemptionPolicy="Never"),
    ]
    preemptors = [pod(name, "2", priority=9, nodeSelector=selector) for name in ("first", "second")]
    outcome = run(*nodes, *victims, *preemptors, budget("web", WEB, 1), preempt=True)
    # Without the budget the second pod would evict web-b, whose priority is lower.
    assert outcome.evicted == [
        EvictedPodResult("default/web-a", "n1", "default/first", []),
        EvictedPodResult("default/other", "n3", "default/second", []),
    ]


def test_a_pod_of_another_scheduler_waits_for_it() -> None:
    outcome = run(node("n1"), node("n2"), pod("a", on="n1", schedulerName="other"), drain=("n1",))
    assert outcome.moved == []
    assert outcome.waiting[0].reasons == ['waits for scheduler "other", which has no profile']


def test_a_scaled_workload_gains_and_loses_pods() -> None:
    objects = (node("n1", "3"), pod("a", on="n1"), pod("b", on="n1"))
    up = run(*objects, scale=(Scale("replicaset", "default", "web", 5),))
    assert [(moved.pod, moved.to) for moved in up.moved] == [("default/web-new-0", "n1")]
    assert [waiting.pod for waiting in up.waiting] == ["default/web-new-1", "default/web-new-2"]
    down = run(*objects, scale=(Scale("replicaset", "default", "web", 0),))
    assert (down.removed, down.after.pods) == (["default/a", "default/b"], 0)


def test_scenarios_on_one_cluster_do_not_influence_each_other() -> None:
    nominated = pod("first", "2", owner="", priority=5, status={"phase": "Pending", "nominatedNodeName": "n2"})
    objects = (
        *(node(f"n{number}", "3", zone="ab"[number % 2]) for number in range(6)),
        *(pod(f"p{number}", "1", on=f"n{number % 6}", labels=WEB) for number in range(9)),
        pod("waits", "9"),
        nominated,
        budget("web", WEB, 2),
    )
    scenarios = [
        Scenario(drain=("n1",)),
        Scenario(lose=((ZONE, "a"),)),
        Scenario(remove=("n3",), add=(AddedNodes(2, "n0"),)),
        Scenario(pods=(decode_pod(pod("vip", "3", priority=9)),), preempt=True),
        Scenario(scale=(Scale("replicaset", "default", "web", 3),)),
    ]

    def describe(outcome: ScenarioOutcome) -> object:
        waiting = [(entry.pod, entry.message) for entry in outcome.waiting]
        return outcome.moved, waiting, outcome.evicted, outcome.blocked, outcome.before, outcome.after

    alone = [describe(make_runner(*objects)[1].run(scenario, seed=4)) for scenario in scenarios]
    _, runner = make_runner(*objects)
    together = [describe(runner.run(scenario, seed=4)) for scenario in (*scenarios, *scenarios)]
    assert together == alone + alone
    cache, runner = make_runner(*objects)
    for scenario in scenarios:
        runner.run(scenario)
    assert sorted(cache.pending_pods) == ["uid-first", "uid-waits"]
    assert [pod_info.key for pod_info in cache.snapshot().nominated_pods("n2")] == ["default/first"]
    assert not any(cache.is_assumed(uid) for uid in cache.assigned_pods)


def test_the_cost_follows_the_nodes() -> None:
    cache = make_cache(node("n1"), node("n2"))
    runner = WhatIfRunner(cache, SETUP.profiles, wiring.make_runtime(), lambda priced: 2.0)
    outcome = runner.run(Scenario(remove=("n2",), add=(AddedNodes(2, "n1"),)))
    assert outcome.before.cost is not None
    assert outcome.after.cost is not None
    assert (outcome.before.cost, outcome.after.cost) == (4.0, 6.0)


def test_a_scenario_in_steps_shows_the_changed_cluster_and_its_end_undoes_the_changes() -> None:
    cache, runner = make_runner(node("n1"), node("n2"), pod("a", on="n1"), pod("b", on="n1"))
    seen: list[dict[str, int]] = []

    def observe(snapshot: Snapshot) -> None:
        seen.append({name: len(snapshot.pods_on(name)) for name in snapshot.names})

    steps = runner.run_in_steps(Scenario(drain=("n1",)), observe=observe)
    assert list(steps) == [*(CHANGING,) * 3, (1, 2), (2, 2)]
    assert seen == [{"n1": 0, "n2": 2}]
    assert len(cache.snapshot().pods_on("n1")) == 2


def test_a_scenario_that_ends_early_is_undone() -> None:
    cache, runner = make_runner(node("n1"), node("n2"), pod("a", on="n1"), pod("b", on="n1"))
    steps = runner.run_in_steps(Scenario(drain=("n1",)))
    assert [next(steps) for _ in range(4)] == [*(CHANGING,) * 3, (1, 2)]
    steps.close()
    assert len(cache.snapshot().pods_on("n1")) == 2
    assert not cache.snapshot().view().unschedulable.any()


def test_a_waiting_pod_with_affinity_is_tried_again_after_its_neighbor_is_placed() -> None:
    term = {"labelSelector": {"matchLabels": WEB}, "topologyKey": "kubernetes.io/hostname"}
    rules = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    follower = pod("follower", "1", affinity=rules, priority=9, preemptionPolicy="Never")
    outcome = run(node("n1"), node("n2"), pod("web", "1", on="n1", labels=WEB), follower, drain=("n1",))
    assert outcome.moved == [MovedPodResult("default/web", "n1", "n2"), MovedPodResult("default/follower", None, "n2")]


def test_the_reasons_of_a_waiting_pod_with_a_spread_constraint_are_those_after_the_last_placement() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
    spec: dict[str, Any] = {"labels": WEB, "topologySpreadConstraints": [spread]}
    nodes = [node("a1", "1", zone="a"), node("a2", "1", zone="a"), node("b1", "1", zone="b")]
    outcome = run(*nodes, pod("w1", on="a1", **spec), pod("w2", **spec, priority=9), pod("x", on="b1"), pod("y"))
    assert [waiting.reasons for waiting in outcome.waiting] == [["Insufficient cpu"]]


def test_the_changes_of_a_copy_are_not_undone() -> None:
    cache, runner = make_runner(node("n1"), node("n2"), pod("a", on="n1"))
    assert list(runner.run_in_steps(Scenario(drain=("n1",)), undo=False)) == [*(CHANGING,) * 2, (1, 1)]
    assert [len(cache.snapshot().pods_on(name)) for name in ("n1", "n2")] == [0, 1]
