"""A pod is not bound to a node that was deleted or changed so that it no longer fits."""

from typing import Any

import pytest

from extender.api.kinds.node import Node
from extender.cache.pod_info import PodInfo
from extender.cycle.bind_precheck import recheck_node
from extender.framework.status import Status
from tests.build import make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness

TAINTED = {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}
TOLERATING = {"tolerations": [{"key": "maintenance", "operator": "Exists"}]}
BY_LABEL = {"nodeSelector": {"disk": "ssd"}}
CHANGED = 'node "n1" changed before the pod was bound to it: '


def recheck(harness: SchedulerHarness, pod_info: PodInfo, node_at_decision: Node | None) -> Status | None:
    """Recheck n1."""
    runtime = harness.context.runtimes["default-scheduler"]
    return recheck_node(pod_info, "n1", node_at_decision, harness.cache, harness.profile, runtime)


@pytest.mark.parametrize(
    ("pod", "changed_node", "message"),
    [
        ({}, None, 'node "n1" was deleted before the pod was bound to it'),
        ({}, {"unschedulable": True}, CHANGED + "node(s) were unschedulable"),
        ({}, TAINTED, CHANGED + "node(s) had untolerated taint(s)"),
        (TOLERATING, TAINTED, ""),
        (BY_LABEL, {"labels": {"disk": "ssd"}}, ""),
        (BY_LABEL, {}, CHANGED + "node(s) didn't match Pod's node affinity/selector"),
        ({}, {"allocatable": {"cpu": "1m", "pods": "1"}}, ""),
    ],
    ids=[
        "gone", "cordoned", "tainted", "tainted and tolerated", "label still there", "label gone",
        "smaller, which is for the kubelet to refuse",
    ],
)  # fmt: skip
def test_a_changed_node_is_rechecked(pod: dict[str, Any], changed_node: dict[str, Any] | None, message: str) -> None:
    harness = SchedulerHarness(make_node("n1", labels={"disk": "ssd"}))
    node_at_decision = harness.cache.get_node("n1")
    if changed_node is None:
        harness.cache.remove_node("n1")
    else:
        harness.cache.add_or_update_node(make_node("n1", **changed_node))
    pod_info = harness.cache.snapshot().make_pod_info(make_pod("web", spec=pod))
    status = recheck(harness, pod_info, node_at_decision)
    assert ("" if status is None else status.message) == message


def test_an_unchanged_node_is_not_rechecked() -> None:
    harness = SchedulerHarness(make_node("n1", unschedulable=True))
    pod_info = harness.cache.snapshot().make_pod_info(make_pod("web"))
    assert recheck(harness, pod_info, harness.cache.get_node("n1")) is None
    unknown = recheck(harness, pod_info, None)
    assert unknown is not None
    assert unknown.message == CHANGED + "node(s) were unschedulable"


def test_a_pod_is_retried_elsewhere_if_its_node_is_cordoned_before_the_binding() -> None:
    harness = SchedulerHarness(make_node("n1"))
    pod = make_pod("web", requests={"cpu": "1"})
    call = harness.api.call

    async def cordoned_meanwhile(api_call: Any, *checks: Any) -> None:
        if api_call.subresource == "binding" and harness.cache.snapshot().row("n2") is None:
            harness.dispatcher.on_update(make_node("n1"), make_node("n1", unschedulable=True))
            harness.dispatcher.on_add(make_node("n2"))
        await call(api_call, *checks)

    harness.api.call = cordoned_meanwhile  # type: ignore[method-assign]
    harness.create(pod)
    harness.run(turns=2)

    assert harness.node_of(pod) == "n2"
    assert len(harness.api.calls_to("binding")) == 1
    assert [reason for _, reason, _ in harness.events.recorded] == ["FailedScheduling", "Scheduled"]
