"""The checker finds the pods that are pending at the end of a history although they fit, or with a wrong condition."""

import pytest

from tests.history.checker import find_pending_violations
from tests.history.history_builder import HistoryBuilder, device_of, volume_of


def violated_rules(builder: HistoryBuilder) -> list[tuple[str, str, str]]:
    """Return rule, pod and node of each violation."""
    return [(each.rule, each.pod, each.node) for each in find_pending_violations(builder.history())]


def test_a_pending_pod_that_fits_breaks_a_rule() -> None:
    builder = HistoryBuilder()
    builder.node(unschedulable=True)
    builder.pod("web", requests={"cpu": "1"})
    assert violated_rules(builder) == []
    builder.node()
    assert violated_rules(builder) == [("bound in time", "default/web", "alpha")]


def test_a_pod_that_fits_only_without_a_nominated_pod_of_higher_priority_may_be_pending() -> None:
    builder = HistoryBuilder()
    builder.node()
    nominated = {"phase": "Pending", "nominatedNodeName": "alpha"}
    builder.pod("urgent", requests={"cpu": "3"}, priority=10, schedulingGates=[{"name": "x"}], status=nominated)
    builder.pod("web", requests={"cpu": "2"}, priority=5)
    rules = [(each.rule, each.pod) for each in find_pending_violations(builder.history())]
    assert rules == [("condition", "default/urgent")]
    builder.pod("other", requests={"cpu": "2"}, priority=20)
    assert ("bound in time", "default/other", "alpha") in violated_rules(builder)


@pytest.mark.parametrize(
    ("volume", "fits"),
    [
        ({"node": "alpha"}, True),
        ({"node": "beta"}, False),
        ({"node": "alpha", "uid": "PersistentVolumeClaim:default/data"}, True),
        ({"node": "alpha", "uid": "another claim"}, False),
    ],
    ids=["free", "on another node", "bound in advance", "bound to another claim"],
)
def test_a_pending_pod_fits_where_a_volume_is_free(volume: dict[str, str], fits: bool) -> None:
    builder = HistoryBuilder()
    builder.node()
    builder.claim("data")
    builder.pod("web", volumes=volume_of("data"))
    builder.volume("disk", **volume)
    assert violated_rules(builder) == ([("bound in time", "default/web", "alpha")] if fits else [])


def test_a_pending_pod_fits_where_a_device_is_free() -> None:
    builder = HistoryBuilder()
    builder.node()
    builder.device_slice("alpha", "gpu-0", "gpu-1")
    builder.device_claim("first", "gpu-0")
    builder.device_claim("gpu")
    builder.pod("web", resourceClaims=device_of("gpu"))
    assert violated_rules(builder) == [("bound in time", "default/web", "alpha")]
    builder.device_claim("second", "gpu-1")
    assert violated_rules(builder) == []


CONDITION_CASES: dict[str, list[dict[str, str]]] = {
    "no condition": [],
    "an error": [{"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": "0/1 nodes"}],
    "no message": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    "bound": [{"type": "PodScheduled", "status": "True"}],
    "gated": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
}


@pytest.mark.parametrize("case", CONDITION_CASES)
def test_a_pending_pod_with_a_wrong_condition_breaks_a_rule(case: str) -> None:
    builder = HistoryBuilder()
    builder.node(cpu="1")
    builder.pod("web", requests={"cpu": "2"}, status={"phase": "Pending", "conditions": CONDITION_CASES[case]})
    assert violated_rules(builder) == [("condition", "default/web", "")]


def test_a_gated_pod_is_not_expected_to_be_bound() -> None:
    builder = HistoryBuilder()
    builder.node()
    gated = {"phase": "Pending", "conditions": CONDITION_CASES["gated"]}
    builder.pod("web", schedulingGates=[{"name": "x"}], status=gated)
    assert violated_rules(builder) == []
    builder.pod("web", schedulingGates=[{"name": "x"}])
    assert violated_rules(builder) == [("condition", "default/web", "")]
