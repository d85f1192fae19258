"""What is written into the status of a pod that waits, or must go."""

from typing import Any

from extender.loop.conditions import eviction, must_go, nominated_only, not_scheduled
from tests.build import a_pod

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
    write = not_scheduled(a_pod("web", status=status), "Unschedulable", "0/3 nodes are available: 3 no.", None, NOW)
    return write and write.body


def test_a_pod_learns_why_it_waits() -> None:
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
    """Source: A045."""
    pod = a_pod("web", status={"conditions": [FALSE], "nominatedNodeName": "n1"})
    message = "0/3 nodes are available: 3 no."

    assert not_scheduled(pod, "Unschedulable", message, "n1", NOW) is None
    other = not_scheduled(pod, "Unschedulable", message, "n2", NOW)
    cleared = not_scheduled(pod, "Unschedulable", message, "", NOW)

    assert other is not None
    assert other.body["status"] == {"nominatedNodeName": "n2"}
    assert cleared is not None
    assert cleared.body["status"] == {"nominatedNodeName": None}
    assert nominated_only(pod, "n1") is None


def test_a_victim_learns_why_it_must_go_and_only_it_is_deleted() -> None:
    """Source: E039."""
    victim = a_pod("low")
    write = must_go(victim, "default-scheduler", "pod", NOW)

    assert write is not None
    condition = write.body["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert eviction(victim).body == {"preconditions": {"uid": "uid-default-low"}}
