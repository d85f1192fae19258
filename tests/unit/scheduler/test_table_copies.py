"""Scheduling writes the tables of the cache in place: no read scope is open at a write."""

from collections.abc import Callable
from typing import Any

import pytest

from extender.analysis.pod_placer import PodPlacer
from extender.app import wiring
from extender.cache.cluster_tables import ClusterTables
from extender.planning.scenario import Scenario
from extender.planning.what_if import WhatIfRunner
from tests.build import make_node, make_pod
from tests.unit.planning.clusters import SETUP, decode_pod, make_cache, node, pod
from tests.unit.scheduler.builders import SchedulerHarness


@pytest.fixture
def count_copies(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return the function that returns the number of copies of a cache's tables."""
    copies: list[bool] = []
    fork = ClusterTables.fork

    def fork_and_count(tables: ClusterTables, *, new_history: bool = True, **arguments: Any) -> ClusterTables:
        if not new_history:
            copies.append(True)
        return fork(tables, new_history=new_history, **arguments)

    monkeypatch.setattr(ClusterTables, "fork", fork_and_count)
    return lambda: len(copies)


def test_scheduled_and_failed_pods_copy_no_table(count_copies: Callable[[], int]) -> None:
    pods = [make_pod(f"small-{number}", requests={"cpu": "1"}) for number in range(5)]
    large_pod = make_pod("large", requests={"cpu": "9"})
    harness = SchedulerHarness(make_node("n1"), make_node("n2"))
    harness.create(*pods, large_pod)
    harness.run(turns=6)
    assert sum(bool(harness.node_of(pod)) for pod in pods) == len(pods)
    assert harness.node_of(large_pod) == ""
    assert count_copies() == 0


def test_simulated_placements_copy_no_table(count_copies: Callable[[], int]) -> None:
    placer = PodPlacer(make_cache(node("n1"), node("n2")), SETUP.profiles, wiring.make_runtime())
    attempts = [placer.place(decode_pod(pod(f"p{number}"))) for number in range(9)]
    assert [bool(attempt.node) for attempt in attempts] == [*[True] * 8, False]
    placer.unassign_placed_pods()
    assert count_copies() == 0


def test_scenarios_copy_no_table(count_copies: Callable[[], int]) -> None:
    cluster = make_cache(node("n1"), node("n2"), node("n3"), *(pod(f"p{number}", "1", "n1") for number in range(3)))
    runner = WhatIfRunner(cluster, SETUP.profiles, wiring.make_runtime())
    assert len(runner.run(Scenario(drain=("n1",))).moved) == 3
    assert len(runner.run(Scenario(remove=("n1", "n2"))).moved) == 3
    assert count_copies() == 0
