"""Indexed and cached budget matching equals matching every budget."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.api.kinds.disruption import PodDisruptionBudget
from extender.api.matching import selector_from_label_selector
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.preemption.disruption_budgets import find_violating_pods, find_violating_units, list_budgets
from tests.build import make_cluster, make_node, make_object, make_pod

WORDS = st.sampled_from(["a", "b", "c"])
NAMESPACES = st.sampled_from(["here", "there"])
LABELS = st.dictionaries(WORDS, WORDS, max_size=3)
CONDITIONS = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        WORDS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(WORDS, min_size=1, max_size=2, unique=True),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator}, WORDS, st.sampled_from(["Exists", "DoesNotExist"])
    ),
)
SELECTORS = st.fixed_dictionaries({"matchLabels": LABELS, "matchExpressions": st.lists(CONDITIONS, max_size=2)})
BUDGETS = st.lists(
    st.tuples(NAMESPACES, SELECTORS, st.integers(-1, 2), st.sets(st.sampled_from(["p0", "p1"]))), max_size=4
)
PODS = st.lists(st.tuples(NAMESPACES, LABELS, st.integers(0, 2)), max_size=8)


def _budget(number: int, namespace: str, selector: Any, allowed: int, disrupted: set[str]) -> Any:
    return make_object(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{number}", "namespace": namespace},
            "spec": {"selector": selector},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        }
    )


def _reference(
    budgets: Sequence[PodDisruptionBudget], pods: Sequence[AssignedPodInfo], *, all_spend: bool
) -> list[bool]:
    """Return the violations, one pod after another; with *all_spend* a violating pod still uses later budgets."""
    left = [budget.status.disruptions_allowed for budget in budgets]
    found = []
    for pod in pods:
        broken = False
        for number, budget in enumerate(budgets):
            selector = selector_from_label_selector(budget.spec.selector)
            meant = pod.labels and budget.metadata.namespace == pod.namespace and not selector.is_empty
            spends = (
                meant and selector.matches(pod.labels) and pod.pod.metadata.name not in budget.status.disrupted_pods
            )
            if spends and (all_spend or not broken):
                left[number] -= 1
                broken = broken or left[number] < 0
        found.append(broken)
    return found


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37], ids=["1.36", "1.37"])
@settings(max_examples=200, deadline=None)
@given(raw_budgets=BUDGETS, raw_pods=PODS)
def test_evictions_violate_the_budgets_that_match_the_pods(
    release: Release, raw_budgets: list[Any], raw_pods: list[Any]
) -> None:
    """In 1.36 a pod on a node uses all budgets that match it, later those up to the first one that it violates."""
    budgets = [_budget(number, *raw) for number, raw in enumerate(raw_budgets)]
    raw_pods.sort(key=lambda raw: raw[2])
    pods = [
        make_pod(f"p{number}", namespace=namespace, labels=labels, node=f"n{node}")
        for number, (namespace, labels, node) in enumerate(raw_pods)
    ]
    snapshot = make_cluster(*(make_node(f"n{node}") for node in range(3)), *budgets, *pods).snapshot()
    there = [list(snapshot.pods_on(f"n{node}").values()) for node in range(3)]
    everybody = [pod for each in there for pod in each]
    nodes = np.repeat(np.arange(3), [len(each) for each in there])
    found = list_budgets(snapshot, release)

    all_spend = not release.stops_at_violated_budget
    apart = [message for each in there for message in _reference(budgets, each, all_spend=all_spend)]
    assert find_violating_pods(found, PodBatch(everybody, nodes), nodes).tolist() == apart
    together = _reference(budgets, everybody, all_spend=False)
    assert find_violating_units(found, [[pod] for pod in everybody]) == together
