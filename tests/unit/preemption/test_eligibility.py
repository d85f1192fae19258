"""Which pods may preempt others."""

from typing import Any

import pytest

from extender.preemption.eligibility import get_ineligibility_reason
from tests.build import make_cluster, make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.preemption.builders import make_failed_attempt, make_preemptor, make_small_node, make_victim

NEVER = "not eligible due to preemptionPolicy=Never."
ON_ITS_WAY = "not eligible due to a terminating pod on the nominated node."
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
GOING = {"deletionTimestamp": "2026-01-01T12:00:00Z"}


def _leaving(*, priority: int = 1, metadata: Any = GOING, conditions: tuple[Any, ...] = (PREEMPTED,)) -> Any:
    status = {"conditions": list(conditions)}
    return make_pod("leaving", node="n", priority=priority, requests={"cpu": "2"}, metadata=metadata, status=status)


def _reason(*objects: Any, nominated: str = "n", **more: Any) -> str:
    pod_info, snapshot, attempt = make_failed_attempt(
        make_cluster(*objects), make_preemptor(status={"nominatedNodeName": nominated}, **more)
    )
    return get_ineligibility_reason(pod_info, snapshot, attempt.diagnosis)


def test_a_pod_may_preempt_by_default() -> None:
    assert _reason(make_small_node("n"), make_victim("low", "n", cpu="2"), nominated="") == ""


@pytest.mark.parametrize(
    ("policy", "message"), [("Never", NEVER), ("PreemptLowerPriority", "")], ids=["never", "lower"]
)
def test_the_preemption_policy_of_the_pod_is_respected(policy: str, message: str) -> None:
    assert (
        _reason(make_small_node("n"), make_victim("low", "n", cpu="2"), nominated="", spec={"preemptionPolicy": policy})
        == message
    )


def test_a_pod_waits_for_its_victims_to_leave() -> None:
    assert _reason(make_small_node("n"), _leaving()) == ON_ITS_WAY


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
def test_other_pods_on_the_node_do_not_matter(other: Any) -> None:
    assert _reason(make_small_node("n"), other) == ""


@pytest.mark.parametrize(("has_group_victims", "reason"), [(False, ON_ITS_WAY), (True, "")], ids=["pods", "pod groups"])
def test_a_leaving_member_counts_with_the_priority_of_its_group_if_victims_are_groups(
    has_group_victims: bool, reason: str
) -> None:
    leaving = make_group_member(
        "leaving", node="n", priority=1, requests={"cpu": "2"}, metadata=GOING, status={"conditions": [PREEMPTED]}
    )
    pod_info, snapshot, attempt = make_failed_attempt(
        make_cluster(make_small_node("n"), make_pod_group(priority=100), leaving),
        make_preemptor(status={"nominatedNodeName": "n"}),
    )
    assert (
        get_ineligibility_reason(pod_info, snapshot, attempt.diagnosis, has_group_victims=has_group_victims) == reason
    )


def test_it_does_not_wait_for_an_unresolvable_node() -> None:
    tainted = make_node("n", taints=[{"key": "only", "effect": "NoSchedule"}], allocatable={"cpu": "2", "pods": "9"})

    assert _reason(tainted, _leaving()) == ""


def test_it_does_not_wait_for_a_node_that_is_gone() -> None:
    assert _reason(make_small_node("other"), make_victim("low", "other", cpu="2"), _leaving(), nominated="n") == ""
