"""Plans of moves in random clusters: the core accepts each step, no budget is exceeded, and small plans are shortest.

The variables REBALANCE_CLUSTERS and REBALANCE_SEED change the number of clusters and the first seed; `make rebalance`
runs 10,000 and prints the figures.
"""

import os
from collections import Counter
from random import Random
from typing import Final

import pytest

from extender.planning.rebalance.empty_nodes import empty_nodes
from extender.planning.rebalance.fix_violations import fix_violations
from extender.planning.rebalance.make_room import make_room
from extender.planning.rebalance.plan import Step
from tests.properties.rebalance_clusters import Body, Replay, find_any_plan, make_cluster, make_simulator

CLUSTERS: Final = int(os.environ.get("REBALANCE_CLUSTERS", "150"))
FIRST_SEED: Final = int(os.environ.get("REBALANCE_SEED", "0"))
SMALL: Final = (6, 12)
LARGE: Final = (20, 80)
SEEDS_PER_UNSOLVED: Final = 40
COMPLETE_MOVES: Final = 2
"""The number of moves up to which all sequences are tried to find a shorter plan; without a plan, only for some."""


def list_seeds(*remainders: int) -> list[int]:
    """Return the seeds of one test: half of the clusters for the first question, a quarter for each other one."""
    return [seed for seed in range(FIRST_SEED, FIRST_SEED + CLUSTERS) if seed % 4 in remainders]


def make(seed: int) -> tuple[list[Body], list[Body], list[Body]]:
    return make_cluster(Random(seed), *(SMALL if seed % 8 < 4 else LARGE))


def replay(cluster: tuple[list[Body], list[Body], list[Body]], steps: tuple[Step, ...], placed: dict[str, str]) -> None:
    """Make all steps on the documents, after the pods that need no step are placed."""
    nodes, pods, budgets = cluster
    run = Replay(nodes, pods, budgets)
    run.check_placements(placed)
    for key, name in placed.items():
        run.pods[key]["spec"]["nodeName"] = name
        run.pods[key]["status"] = {"phase": "Running"}
    for step in steps:
        run.make(step)


@pytest.mark.slow
def test_each_step_of_a_plan_for_a_pod_is_possible_and_small_plans_are_the_shortest() -> None:
    counts: Counter[str] = Counter()
    for seed in list_seeds(0, 1):
        cluster = make(seed)
        simulator = make_simulator([body for part in cluster for body in part])
        target = next(pod for pod in simulator.waiting if pod.metadata.name == "w0")
        plan = make_room(simulator, [target])
        moves = None if plan.unplaced else plan.proof.moves
        counts["no plan" if moves is None else f"{moves} moves"] += 1
        replay(cluster, plan.proof.steps, {entry.pod: entry.node for entry in plan.placed_before})
        if seed % 8 < 4 and (moves is not None or seed % SEEDS_PER_UNSOLVED == 0):
            counts["compared"] += 1
            if shorter := find_shorter_plan(seed, COMPLETE_MOVES + 1 if moves is None else moves):
                counts["not the least"] += 1
                print(f"seed {seed}: {moves} moves, but {shorter} suffice")  # noqa: T201
    print(f"plans for a pod: {dict(sorted(counts.items()))}")  # noqa: T201
    assert counts["not the least"] <= 0.05 * counts["compared"]


def find_shorter_plan(seed: int, moves: int) -> int | None:
    """Return the least number of moves below *moves* that lets the pod run; None if no sequence does."""
    simulator = make_simulator([body for part in make(seed) for body in part])
    target = next(pod for pod in simulator.waiting if pod.metadata.name == "w0")
    simulator.settle()
    shorter = range(1, min(moves, COMPLETE_MOVES + 1))
    return next((number for number in shorter if find_any_plan(simulator, target, number)), None)


def test_each_step_of_a_plan_that_empties_nodes_is_possible_and_the_nodes_are_empty() -> None:
    counts: Counter[str] = Counter()
    for seed in list_seeds(2):
        cluster = make(seed)
        simulator = make_simulator([body for part in cluster for body in part])
        plan = empty_nodes(simulator)
        counts += Counter(clusters=1, nodes=len(cluster[0]), emptied=len(plan.emptied), moves=plan.proof.moves)
        replay(cluster, plan.proof.steps, {entry.pod: entry.node for entry in plan.placed_before})
        for entry in plan.emptied:
            pods = simulator.cache.snapshot().pods_on(entry.node).values()
            assert {pod.pod.metadata.owner_references[0].kind for pod in pods} <= {"DaemonSet"}
        assert len(plan.emptied) + len(plan.retained) == len(cluster[0])
    print(f"plans that empty nodes: {dict(counts)}")  # noqa: T201


def test_each_step_of_a_plan_that_ends_violations_is_possible() -> None:
    counts: Counter[str] = Counter()
    for seed in list_seeds(3):
        cluster = make(seed)
        simulator = make_simulator([body for part in cluster for body in part])
        plan = fix_violations(simulator)
        counts += Counter(
            clusters=1, violations=len(plan.violations), remaining=len(plan.remaining), moves=plan.proof.moves
        )
        replay(cluster, plan.proof.steps, {entry.pod: entry.node for entry in plan.placed_before})
    print(f"plans that end violations: {dict(counts)}")  # noqa: T201
    assert counts["remaining"] < counts["violations"]
