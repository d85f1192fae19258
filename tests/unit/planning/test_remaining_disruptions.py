"""The remaining disruptions of budgets during a scenario."""

from typing import Any

import pytest

from extender.cache.cache import Cache
from extender.planning.remaining_disruptions import ClusterBudgets, RemainingDisruptions
from tests.unit.planning.clusters import budget, make_cache, node, pod

WEB = {"app": "web"}


def make_remaining_disruptions(*budgets: dict[str, Any]) -> tuple[Cache, RemainingDisruptions]:
    pods = [pod(f"p{number}", on="n1", labels=WEB) for number in range(4)]
    cache = make_cache(node("n1", "9"), *pods, pod("free", on="n1"), *budgets)
    return cache, RemainingDisruptions(ClusterBudgets(cache.snapshot()))


def test_a_budget_blocks_when_it_is_used_up_and_allows_again_after_a_replacement() -> None:
    cache, remaining_disruptions = make_remaining_disruptions(budget("web", WEB, 1))
    first, second = cache.assigned_pods["uid-p0"], cache.assigned_pods["uid-p1"]
    assert remaining_disruptions.find_blocking_budgets(first) == []
    assert remaining_disruptions.count_disruption(first) == []
    assert remaining_disruptions.find_blocking_budgets(second) == ["default/web"]
    assert remaining_disruptions.count_disruption(second) == ["default/web"]
    remaining_disruptions.count_replacement(first.signature)
    remaining_disruptions.count_replacement(first.signature)
    assert remaining_disruptions.find_blocking_budgets(second) == []


def test_a_pod_that_no_budget_matches_is_free() -> None:
    cache, remaining_disruptions = make_remaining_disruptions(budget("web", WEB, 0))
    free = cache.assigned_pods["uid-free"]
    assert (remaining_disruptions.find_blocking_budgets(free), remaining_disruptions.count_disruption(free)) == ([], [])


def test_the_eviction_api_refuses_a_pod_with_two_budgets() -> None:
    cache, remaining_disruptions = make_remaining_disruptions(budget("one", WEB, 5), budget("two", WEB, 5))
    assert remaining_disruptions.find_blocking_budgets(cache.assigned_pods["uid-p0"]) == ["default/one", "default/two"]


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 3}, 1),
        ({"minAvailable": "50%"}, 2),
        ({"minAvailable": "60%"}, 1),
        ({"maxUnavailable": "30%"}, 2),
        ({"maxUnavailable": 9}, 4),
        ({}, 4),
    ],
    ids=["a minimum", "half", "a percentage is rounded up", "a maximum in percent", "a large maximum", "no limit"],
)
def test_a_budget_without_a_status_is_calculated_from_its_spec(spec: dict[str, Any], allowed: int) -> None:
    body = budget("web", WEB, 0)
    body["spec"] = {"selector": {"matchLabels": WEB}, **spec}
    del body["status"]
    cache, remaining_disruptions = make_remaining_disruptions(body)
    pods = [cache.assigned_pods[f"uid-p{number}"] for number in range(4)]
    assert [remaining_disruptions.count_disruption(assigned_pod) for assigned_pod in pods].count([]) == allowed
