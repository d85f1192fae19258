"""Every event is forwarded and measured under upstream's label."""

from typing import Any

import pytest

from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.events import ActionType, ClusterEvent, EventResource, make_pod_event
from extender.scheduler.event_timing import TimedEventHandler
from tests.build import make_node, make_pod


class RecordingHandler:
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **more: self.calls.append(name)


@pytest.mark.parametrize(
    ("release", "resource"), [(RELEASE_1_36, "UnschedulablePod"), (RELEASE_1_37, "UnscheduledPod")]
)
def test_events_are_forwarded_and_measured_by_label(release: Release, resource: str) -> None:
    """Source: pkg/scheduler/metrics/metrics.go, EventHandlingLatency (1.36)."""
    handler = RecordingHandler()
    labels: list[str] = []
    timed = TimedEventHandler(handler, lambda event, seconds: labels.append(event) if seconds >= 0 else None, release)  # type: ignore[arg-type]
    pod = make_pod()
    timed.on_pending_pod_add(pod)
    timed.on_pending_pod_update(
        pod, pod, [make_pod_event(release, EventResource.TARGET_POD, ActionType.UPDATE, pod, pod)]
    )
    timed.on_pending_pod_delete(pod)
    timed.on_assumed_pod_delete(pod)
    timed.on_cluster_event(ClusterEvent(EventResource.NODE, ActionType.ADD, None, make_node()), max_priority=3)
    assert handler.calls == [
        "on_pending_pod_add",
        "on_pending_pod_update",
        "on_pending_pod_delete",
        "on_assumed_pod_delete",
        "on_cluster_event",
    ]
    assert labels == [
        f"{resource}Add", f"{resource}Update", f"{resource}Delete", "AssignedPodDelete", "NodeAdd",
    ]  # fmt: skip
