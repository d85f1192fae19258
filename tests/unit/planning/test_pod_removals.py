"""Pods that leave their nodes: drains with budgets, lost nodes, and their replacements."""

from typing import Any

from extender.answers.planning import BlockedPodResult, LostPodResult
from extender.cache.cache import Cache
from extender.planning.cache_edits import CacheEdits
from extender.planning.pod_removals import PodRemovals
from extender.planning.remaining_disruptions import ClusterBudgets, RemainingDisruptions
from tests.coroutines import run_steps
from tests.unit.planning.clusters import budget, make_cache, node, pod

WEB = {"app": "web"}


def make_removals(*objects: dict[str, Any]) -> tuple[Cache, PodRemovals]:
    cache = make_cache(node("n1", "9"), *objects)
    return cache, PodRemovals(cache, CacheEdits(cache), RemainingDisruptions(ClusterBudgets(cache.snapshot())))


def test_a_drain_leaves_the_node_s_own_pods_and_names_lost_pods() -> None:
    cache, removals = make_removals(
        pod("agent", on="n1", owner="DaemonSet"), pod("single", on="n1", owner=""), pod("web", on="n1")
    )
    removals.drain_node("n1")
    replacements = run_steps(removals.evict_drained_pods())
    assert [new_pod.key for new_pod in replacements] == ["default/web"]
    assert removals.get_source(replacements[0].metadata.uid) == "n1"
    assert removals.lost == [LostPodResult("default/single", "n1")]
    assert list(cache.assigned_pods) == ["uid-agent"]


def test_a_drain_continues_when_a_replacement_is_placed() -> None:
    cache, removals = make_removals(
        *(pod(name, on="n1", labels=WEB) for name in ("a", "b", "c")), budget("web", WEB, 1)
    )
    signature = cache.assigned_pods["uid-a"].signature
    removals.drain_node("n1")
    first = run_steps(removals.evict_drained_pods())
    assert [new_pod.key for new_pod in first] == ["default/a"]
    assert run_steps(removals.evict_drained_pods()) == []
    removals.count_placed(first[0].metadata.uid, signature)
    removals.count_placed(first[0].metadata.uid, signature)  # is counted once
    assert [new_pod.key for new_pod in run_steps(removals.evict_drained_pods())] == ["default/b"]
    assert removals.blocked == [BlockedPodResult("default/c", "n1", ["default/web"])]
    assert removals.violations == {}


def test_a_lost_node_violates_budgets_and_takes_its_own_pods_along() -> None:
    cache, removals = make_removals(
        pod("a", on="n1", labels=WEB),
        pod("b", on="n1", labels=WEB),
        pod("agent", on="n1", owner="DaemonSet"),
        budget("web", WEB, 1),
    )
    removals.clear_node("n1")
    assert [new_pod.key for new_pod in removals.take_replacements()] == ["default/a", "default/b"]
    assert removals.violations == {"default/web": ["default/b"]}
    assert (dict(cache.assigned_pods), removals.lost) == ({}, [])


def test_a_terminating_pod_leaves_without_a_replacement_and_without_its_budget() -> None:
    body = pod("a", on="n1", labels=WEB)
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cache, removals = make_removals(body, budget("web", WEB, 0))
    removals.drain_node("n1")
    assert (run_steps(removals.evict_drained_pods()), removals.blocked, dict(cache.assigned_pods)) == ([], [], {})
