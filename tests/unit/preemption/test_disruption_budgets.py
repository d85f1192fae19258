"""Which evictions violate a disruption budget."""

from typing import Any

import numpy as np
import pytest

from extender.api.matching import selector_from_label_selector
from extender.cache.pod_batch import PodBatch
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.preemption import disruption_budgets
from extender.preemption.disruption_budgets import find_violating_pods, list_budgets
from tests.build import make_cluster, make_object
from tests.unit.preemption.builders import make_budget, make_small_node, make_victim

WEB = {"app": "web"}


def _broken(*budgets: Any, labels: tuple[dict[str, str] | None, ...] = (WEB, WEB, WEB), **more: Any) -> list[bool]:
    """Return which of pods a, b, c, d with these labels violate a budget if evicted from one node in this order."""
    pods = [make_victim(name, "n", labels=each, **more) for name, each in zip("abcd", labels, strict=False)]
    snapshot = make_cluster(make_small_node("n"), *pods, *budgets).snapshot()
    there = sorted(snapshot.pods_on("n").values(), key=lambda pod: pod.key)
    nodes = np.zeros(len(there), dtype=np.int64)
    return find_violating_pods(list_budgets(snapshot, RELEASE_1_37), PodBatch(there, nodes), nodes).tolist()


@pytest.mark.parametrize(
    ("allowed", "broken"),
    [
        pytest.param(0, [True, True, True], id="none may go"),
        pytest.param(2, [False, False, True], id="two may go"),
        pytest.param(3, [False, False, False], id="all may go"),
        pytest.param(-1, [True, True, True], id="fewer than none may go"),
    ],
)
def test_pods_use_a_budget_one_after_another(allowed: int, broken: list[bool]) -> None:
    assert _broken(make_budget(allowed, WEB)) == broken


def test_without_budgets_nothing_is_violated() -> None:
    assert _broken() == [False, False, False]


def test_unmatched_pods_use_no_budget() -> None:
    assert _broken(make_budget(1, WEB), labels=(WEB, {"app": "db"}, WEB)) == [False, False, True]


def test_pods_without_labels_are_never_matched() -> None:
    lenient = make_object(
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
def test_budgets_protect_the_pods_that_their_selectors_match(expression: dict[str, Any], broken: list[bool]) -> None:
    budget = make_object(
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
    assert _broken(make_budget(0, labels)) == [False, False, False]


def test_an_invalid_selector_protects_nothing() -> None:
    broken = make_object(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "broken", "namespace": "default"},
            "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}},
        }
    )
    assert _broken(broken) == [False, False, False]


def test_a_budget_applies_to_its_own_namespace() -> None:
    assert _broken(make_budget(0, WEB, namespace="other")) == [False, False, False]


def test_disrupted_pods_do_not_count() -> None:
    assert _broken(make_budget(1, WEB, disrupted={"b": "2026-01-01T00:00:00Z"})) == [False, False, True]


def test_a_pod_may_violate_any_of_several_budgets() -> None:
    assert _broken(make_budget(2, WEB), make_budget(1, WEB, name="second")) == [False, True, True]


def test_each_node_is_counted_on_its_own() -> None:
    pods = [make_victim(f"p{number}", f"n{number % 2}", labels=WEB) for number in range(4)]
    snapshot = make_cluster(make_small_node("n0"), make_small_node("n1"), *pods, make_budget(1, WEB)).snapshot()
    there = [*snapshot.pods_on("n0").values(), *snapshot.pods_on("n1").values()]
    nodes = np.array([0, 0, 1, 1])

    assert find_violating_pods(list_budgets(snapshot, RELEASE_1_37), PodBatch(there, nodes), nodes).tolist() == [
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("release", "violating"),
    [(RELEASE_1_36, [True, True]), (RELEASE_1_37, [True, False])],
    ids=["1.36 uses all budgets", "1.37 stops at the first violated budget"],
)
def test_a_pod_that_violates_a_budget_uses_no_later_budget_since_1_37(release: Release, violating: list[bool]) -> None:
    """Source: pkg/scheduler/framework/preemption/util.go, FilterVictimsWithPDBViolation (1.37)."""
    budgets = [make_budget(0, WEB, name="a"), make_budget(1, {"tier": "x"}, name="b")]
    pods = [make_victim("a", "n", labels={**WEB, "tier": "x"}), make_victim("b", "n", labels={"tier": "x"})]
    snapshot = make_cluster(make_small_node("n"), *pods, *budgets).snapshot()
    there = sorted(snapshot.pods_on("n").values(), key=lambda pod: pod.key)
    nodes = np.zeros(2, dtype=np.int64)
    assert find_violating_pods(list_budgets(snapshot, release), PodBatch(there, nodes), nodes).tolist() == violating


def test_the_selector_of_a_budget_is_compiled_again_only_if_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []

    def compile_selector(selector: Any) -> Any:
        compiled.append(selector)
        return selector_from_label_selector(selector)

    monkeypatch.setattr(disruption_budgets, "selector_from_label_selector", compile_selector)
    cluster = make_cluster(make_budget(1, {"app": "compiled"}))
    for allowed, labels in ((1, "compiled"), (0, "compiled"), (0, "other"), (2, "other")):
        cluster.add_or_update_object(make_budget(allowed, {"app": labels}))
        (budget,) = list_budgets(cluster.snapshot(), RELEASE_1_37).budgets
        assert (budget.selector.matches({"app": labels}), budget.disruptions_allowed) == (True, allowed)
    assert [selector.match_labels["app"] for selector in compiled] == ["compiled", "other"]
