"""Cluster events, and the queueing hints with which plugins register for them.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodWorthRequeuing,
PriorityQueue.movePodsToActiveOrBackoffQueue; pkg/scheduler/framework/types.go, MatchClusterEvents,
UnrollWildCardResource; kube-scheduler/framework/types.go, ActionType.String, ClusterEvent.Label (1.36).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any

from extender.cache.pod_info import PodInfo


class ActionType(IntFlag):
    """The kind of change of an object; an update has one member for each changed property.

    The values are in kube-scheduler's order, because `ClusterEventWithHint.matches` compares them.
    """

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE = (1 << 13) - (1 << 2)
    ALL = (1 << 13) - 1


_ACTION_TYPE_LABELS = {
    action: "".join(map(str.capitalize, (action.name or "").split("_"))) for action in ActionType
} | {
    ActionType.UPDATE: "Update",
    ActionType.ALL: "All",
}


class EventResource(Enum):
    """The kind of object of an event."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    ANY = "*"


class QueueingHint(Enum):
    """The result of a queueing hint: QUEUE if an event may make a rejected pod schedulable, else SKIP."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event in the cluster.

    Attributes:
        resource: the kind of object.
        action: the kind of change.
        old: the object before the event; None if it was added.
        new: the object after the event; None if it was deleted.
        label_override: the label of an event that does not come from the API server, such as `BackoffComplete`.
    """

    resource: EventResource
    action: ActionType
    old: Any = None
    new: Any = None
    label_override: str = ""

    @property
    def label(self) -> str:
        """The label in metrics and logs, such as `NodeAdd` or `AssignedPodDelete`.

        Source: kube-scheduler/framework/types.go, ActionType.String, ClusterEvent.Label (1.36).
        """
        return self.label_override or f"{self.resource.value}{_ACTION_TYPE_LABELS.get(self.action, '')}"


QueueingHintFunction = Callable[[PodInfo, ClusterEvent], QueueingHint]


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """An event that a plugin registers for.

    Without `hint`, every matching event requeues the pod. A hint that raises counts as QUEUE.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodWorthRequeuing (1.36).
    """

    resource: EventResource
    action: ActionType
    hint: QueueingHintFunction | None = None

    def matches(self, event: ClusterEvent) -> bool:
        """Return whether *event* matches. Source: pkg/scheduler/framework/types.go, MatchClusterEvents (1.36)."""
        if self.resource is EventResource.ANY and self.action == ActionType.ALL:
            return True
        matches_resource = self.resource in (EventResource.ANY, event.resource) or (
            self.resource is EventResource.POD
            and event.resource in (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD)
        )
        return matches_resource and bool(self.action & event.action) and event.action.value <= self.action.value
