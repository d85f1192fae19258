"""Which evictions break a disruption budget."""

from typing import Any

import numpy as np
import pytest

from extender.cluster.batches import PodBatch
from extender.preemption.budgets import budgets_of, violating
from tests.build import a_cluster, an_object
from tests.unit.preemption.worlds import a_budget, a_small_node, low

WEB = {"app": "web"}


def _broken(*budgets: Any, labels: tuple[dict[str, str] | None, ...] = (WEB, WEB, WEB), **more: Any) -> list[bool]:
    """What is said about pods a, b, c, d with these labels, evicted from one node in this order."""
    pods = [low(name, "n", labels=each, **more) for name, each in zip("abcd", labels, strict=False)]
    cluster = a_cluster(a_small_node("n"), *pods, *budgets).snapshot()
    there = sorted(cluster.pods_on("n").values(), key=lambda pod: pod.key)
    nodes = np.zeros(len(there), dtype=np.int64)
    return violating(budgets_of(cluster), PodBatch(there, nodes), nodes).tolist()


@pytest.mark.parametrize(
    ("allowed", "broken"),
    [
        pytest.param(0, [True, True, True], id="none may go"),
        pytest.param(2, [False, False, True], id="two may go"),
        pytest.param(3, [False, False, False], id="all may go"),
        pytest.param(-1, [True, True, True], id="fewer than none may go"),
    ],
)
def test_pods_spend_a_budget_one_after_another(allowed: int, broken: list[bool]) -> None:
    assert _broken(a_budget(allowed, WEB)) == broken


def test_without_budgets_nothing_is_broken() -> None:
    assert _broken() == [False, False, False]


def test_pods_that_are_not_meant_spend_nothing() -> None:
    assert _broken(a_budget(1, WEB), labels=(WEB, {"app": "db"}, WEB)) == [False, False, True]


def test_pods_without_labels_are_never_meant() -> None:
    lenient = an_object(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "not-web", "namespace": "default"},
            "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}},
        }
    )
    assert _broken(lenient, labels=(None, {"tier": "1"})) == [False, True]


@pytest.mark.parametrize(
    ("expression", "broken"),
    [
        pytest.param({"operator": "In", "values": ["web", "db"]}, [True, True, False, False], id="one of two values"),
        pytest.param({"operator": "NotIn", "values": ["web"]}, [False, True, True, True], id="another value, or none"),
        pytest.param({"operator": "Exists"}, [True, True, True, False], id="any value"),
    ],
)
def test_budgets_protect_whom_their_selectors_mean(expression: dict[str, Any], broken: list[bool]) -> None:
    budget = an_object(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "budget", "namespace": "default"},
            "spec": {"selector": {"matchExpressions": [{"key": "app", **expression}]}},
        }
    )
    assert _broken(budget, labels=(WEB, {"app": "db"}, {"app": "ui"}, {"tier": "1"})) == broken


@pytest.mark.parametrize("labels", [None, {}], ids=["absent", "empty"])
def test_a_selector_that_is_absent_or_empty_protects_nothing(labels: dict[str, str] | None) -> None:
    assert _broken(a_budget(0, labels)) == [False, False, False]


def test_a_selector_that_cannot_be_read_protects_nothing() -> None:
    broken = an_object(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "broken", "namespace": "default"},
            "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}},
        }
    )
    assert _broken(broken) == [False, False, False]


def test_a_budget_is_for_its_own_namespace() -> None:
    assert _broken(a_budget(0, WEB, namespace="other")) == [False, False, False]


def test_pods_already_on_their_way_out_do_not_count() -> None:
    assert _broken(a_budget(1, WEB, disrupted={"b": "2026-01-01T00:00:00Z"})) == [False, False, True]


def test_a_pod_may_break_any_of_several_budgets() -> None:
    assert _broken(a_budget(2, WEB), a_budget(1, WEB, name="second")) == [False, True, True]


def test_each_node_spends_budgets_anew() -> None:
    pods = [low(f"p{number}", f"n{number % 2}", labels=WEB) for number in range(4)]
    cluster = a_cluster(a_small_node("n0"), a_small_node("n1"), *pods, a_budget(1, WEB)).snapshot()
    there = [*cluster.pods_on("n0").values(), *cluster.pods_on("n1").values()]
    nodes = np.array([0, 0, 1, 1])

    assert violating(budgets_of(cluster), PodBatch(there, nodes), nodes).tolist() == [False, True, False, True]
