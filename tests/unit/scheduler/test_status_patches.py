"""The status patches of pending pods and victims."""

from typing import Any

from extender.fake_apiserver.registry.patch import apply_strategic_merge_patch
from extender.scheduler.status_patches import (
    make_delete_call,
    make_disruption_target_patch,
    make_nomination_patch,
    make_pod_scheduled_patch,
)
from tests.build import make_pod

NOW = 1_772_323_200.0  # 2026-03-01T00:00:00Z
FALSE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 no.",
    "lastTransitionTime": "2026-02-28T00:00:00Z",
    "observedGeneration": 0,
}


def patched(**status: Any) -> Any:
    api_call = make_pod_scheduled_patch(
        make_pod("web", status=status), "Unschedulable", "0/3 nodes are available: 3 no.", None, NOW
    )
    return api_call and api_call.body


def test_the_pod_scheduled_condition_has_the_reason() -> None:
    assert patched() == {
        "metadata": {"uid": "uid-default-web"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/3 nodes are available: 3 no.",
                    "observedGeneration": 0,
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-03-01T00:00:00Z",
                }
            ]
        },
    }


def test_nothing_is_written_twice() -> None:
    assert patched(conditions=[FALSE]) is None


def test_the_time_of_transition_stays_while_the_status_does() -> None:
    body = patched(conditions=[{**FALSE, "message": "something else"}])

    assert body["status"]["conditions"][0]["lastTransitionTime"] == "2026-02-28T00:00:00Z"


def test_a_nomination_is_written_if_it_differs() -> None:
    """Source: pkg/scheduler/schedule_one.go, updatePod (1.36)."""
    pod = make_pod("web", status={"conditions": [FALSE], "nominatedNodeName": "n1"})
    message = "0/3 nodes are available: 3 no."

    assert make_pod_scheduled_patch(pod, "Unschedulable", message, "n1", NOW) is None
    other = make_pod_scheduled_patch(pod, "Unschedulable", message, "n2", NOW)
    cleared = make_pod_scheduled_patch(pod, "Unschedulable", message, "", NOW)

    assert other is not None
    assert other.body["status"] == {"nominatedNodeName": "n2"}
    assert cleared is not None
    assert cleared.body["status"] == {"nominatedNodeName": None}
    assert make_nomination_patch(pod, "n1") is None


def test_a_new_condition_follows_those_of_other_writers() -> None:
    """The API server would put it first without the order.

    Source: apimachinery/pkg/util/strategicpatch/patch.go, normalizeElementOrder (1.36).
    """
    conditions = [{"type": "PodReadyToStartContainers", "status": "True"}, {"type": "PodScheduled", "status": "True"}]
    victim: dict[str, Any] = {"status": {"conditions": conditions}}
    api_call = make_disruption_target_patch(make_pod("low", status=victim["status"]), "default-scheduler", "pod", NOW)

    assert api_call is not None
    patched_conditions = apply_strategic_merge_patch(victim, dict(api_call.body), "Pod")["status"]["conditions"]
    assert [condition["type"] for condition in patched_conditions] == [
        "PodReadyToStartContainers",
        "PodScheduled",
        "DisruptionTarget",
    ]


def test_a_condition_that_changes_keeps_its_place() -> None:
    status = {"conditions": [{"type": "Initialized", "status": "True"}, {**FALSE, "message": "something else"}]}

    body = patched(**status)
    patched_conditions = apply_strategic_merge_patch({"status": status}, body, "Pod")["status"]["conditions"]
    assert body["status"]["$setElementOrder/conditions"] == [{"type": "Initialized"}, {"type": "PodScheduled"}]
    assert [condition["type"] for condition in patched_conditions] == ["Initialized", "PodScheduled"]


def test_a_victim_gets_its_condition_and_only_it_is_deleted() -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36)."""
    victim = make_pod("low")
    api_call = make_disruption_target_patch(victim, "default-scheduler", "pod", NOW)

    assert api_call is not None
    condition = api_call.body["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert make_delete_call(victim).body == {"preconditions": {"uid": "uid-default-low"}}
