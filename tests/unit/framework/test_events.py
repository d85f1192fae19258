"""Cluster events: their labels, and which registered events match them."""

import pytest

from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource


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
    "pods include unschedulable pods": (
        EventResource.POD, ActionType.UPDATE, EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL, True,
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
