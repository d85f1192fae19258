"""Cluster events: their labels, and which registered events match them."""

from typing import Any

import pytest

from extender.cache.pod_info import PodInfo
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    make_pod_event,
    register_pod_events,
)


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (ClusterEvent(EventResource.NODE, ActionType.ADD), "NodeAdd"),
        (ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE), "AssignedPodDelete"),
        (ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL), "NodeUpdateNodeLabel"),
        (ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), "storage.k8s.io/CSINodeUpdate"),
        (ClusterEvent(EventResource.ANY, ActionType.ALL, label_override="ForceActivate"), "ForceActivate"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_events_have_the_labels_of_kube_scheduler(event: ClusterEvent, label: str) -> None:
    """Source: kube-scheduler/framework/types.go, ClusterEvent.Label (1.36)."""
    assert event.label == label


NODE_UPDATES = ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
MATCHES = {
    "the same resource and action": (EventResource.NODE, ActionType.ADD, EventResource.NODE, ActionType.ADD, True),
    "one of several actions": (
        EventResource.NODE, NODE_UPDATES, EventResource.NODE, ActionType.UPDATE_NODE_TAINT, True,
    ),
    "another action": (EventResource.NODE, ActionType.ADD, EventResource.NODE, ActionType.DELETE, False),
    "another resource": (EventResource.NODE, ActionType.ADD, EventResource.CSI_NODE, ActionType.ADD, False),
    "pods include assigned pods": (
        EventResource.POD, ActionType.DELETE, EventResource.ASSIGNED_POD, ActionType.DELETE, True,
    ),
    "pods include pods without a node": (
        EventResource.POD, ActionType.UPDATE, EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_LABEL, True,
    ),
    "pods include the waiting pod itself": (
        EventResource.POD, ActionType.UPDATE, EventResource.TARGET_POD, ActionType.UPDATE_POD_SCALE_UP, True,
    ),
    "assigned pods do not include the waiting pod": (
        EventResource.ASSIGNED_POD, ActionType.UPDATE, EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL, False,
    ),
    "assigned pods do not include all pods": (
        EventResource.ASSIGNED_POD, ActionType.ADD, EventResource.POD, ActionType.ADD, False,
    ),
    "the wildcard matches everything": (
        EventResource.ANY, ActionType.ALL, EventResource.STORAGE_CLASS, ActionType.ADD, True,
    ),
    "any resource with one action": (EventResource.ANY, ActionType.ADD, EventResource.NODE, ActionType.DELETE, False),
    "an event with more actions than registered": (
        EventResource.NODE, ActionType.UPDATE_NODE_LABEL, EventResource.NODE, NODE_UPDATES, False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "action", "event_resource", "event_action", "want"), MATCHES.values(), ids=MATCHES
)
def test_a_registered_event_matches(
    resource: EventResource, action: ActionType, event_resource: EventResource, event_action: ActionType, want: bool
) -> None:
    """Source: pkg/scheduler/framework/types.go, MatchClusterEvents (1.36)."""
    assert ClusterEventWithHint(resource, action).matches(ClusterEvent(event_resource, event_action)) is want


@pytest.mark.parametrize(
    ("release", "labels"),
    [
        (RELEASE_1_36, ["UnschedulablePodAdd", "UnschedulablePodUpdatePodLabel", "AssignedPodDelete"]),
        (RELEASE_1_37, ["UnscheduledPodAdd", "TargetPodUpdatePodLabel", "AssignedPodDelete"]),
    ],
    ids=["1.36", "1.37"],
)
def test_events_of_pods_have_the_labels_of_the_release(release: Release, labels: list[str]) -> None:
    """Source: pkg/scheduler/framework/events.go, EventUnscheduledPodAdd (1.36, 1.37)."""
    events = (
        (EventResource.UNSCHEDULED_POD, ActionType.ADD),
        (EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL),
        (EventResource.ASSIGNED_POD, ActionType.DELETE),
    )
    assert [make_pod_event(release, resource, action).label for resource, action in events] == labels


def skip(_pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
    return QueueingHint.SKIP


def test_registrations_for_pods_are_split_since_1_37() -> None:
    """Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, InterPodAffinity.EventsToRegister (1.37)."""
    actions: dict[str, Any] = {"assigned": ActionType.DELETE, "target": ActionType.UPDATE_POD_LABEL}

    assert register_pod_events(RELEASE_1_36, skip, **actions) == (
        ClusterEventWithHint(EventResource.POD, ActionType.DELETE | ActionType.UPDATE_POD_LABEL, skip),
    )
    assert register_pod_events(RELEASE_1_37, skip, **actions) == (
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, skip),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL, skip),
    )


def test_a_plugin_without_interest_in_assigned_pods_has_one_registration() -> None:
    assert register_pod_events(RELEASE_1_37, skip, target=ActionType.UPDATE_POD_TOLERATION) == (
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE_POD_TOLERATION, skip),
    )
