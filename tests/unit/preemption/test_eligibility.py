"""Which pods may evict others."""

from typing import Any

import pytest

from extender.preemption.eligibility import objection
from tests.build import a_cluster, a_node, a_pod
from tests.unit.preemption.worlds import a_small_node, attempted, high, low

NEVER = "not eligible due to preemptionPolicy=Never."
ON_ITS_WAY = "not eligible due to a terminating pod on the nominated node."
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
GOING = {"deletionTimestamp": "2026-01-01T12:00:00Z"}


def _leaving(*, priority: int = 1, metadata: Any = GOING, conditions: tuple[Any, ...] = (PREEMPTED,)) -> Any:
    status = {"conditions": list(conditions)}
    return a_pod("leaving", node="n", priority=priority, requests={"cpu": "2"}, metadata=metadata, status=status)


def _said(*things: Any, nominated: str = "n", **more: Any) -> str:
    query, cluster, attempt = attempted(a_cluster(*things), high(status={"nominatedNodeName": nominated}, **more))
    return objection(query, cluster, attempt.feasibility)


def test_a_pod_may_evict_unless_something_speaks_against_it() -> None:
    assert _said(a_small_node("n"), low("low", "n", cpu="2"), nominated="") == ""


@pytest.mark.parametrize(("policy", "said"), [("Never", NEVER), ("PreemptLowerPriority", "")], ids=["never", "lower"])
def test_the_policy_of_the_pod_is_kept(policy: str, said: str) -> None:
    assert _said(a_small_node("n"), low("low", "n", cpu="2"), nominated="", spec={"preemptionPolicy": policy}) == said


def test_a_pod_waits_for_its_victims_to_leave() -> None:
    assert _said(a_small_node("n"), _leaving()) == ON_ITS_WAY


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(_leaving(metadata={}), id="not being deleted"),
        pytest.param(_leaving(conditions=()), id="deleted by somebody else"),
        pytest.param(_leaving(conditions=({**PREEMPTED, "reason": "EvictionByEvictionAPI"},)), id="evicted otherwise"),
        pytest.param(_leaving(conditions=({**PREEMPTED, "status": "False"},)), id="not evicted after all"),
        pytest.param(_leaving(priority=100), id="of no lower priority"),
    ],
)
def test_other_pods_there_do_not_hold_it_up(other: Any) -> None:
    assert _said(a_small_node("n"), other) == ""


def test_it_does_not_wait_for_a_node_that_refuses_it_for_good() -> None:
    tainted = a_node("n", taints=[{"key": "only", "effect": "NoSchedule"}], allocatable={"cpu": "2", "pods": "9"})

    assert _said(tainted, _leaving()) == ""


def test_it_does_not_wait_for_a_node_that_is_gone() -> None:
    assert _said(a_small_node("other"), low("low", "other", cpu="2"), _leaving(), nominated="n") == ""
