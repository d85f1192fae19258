"""What can happen to a cluster, as plugins register for it, and what they can say about it.

Source: D030 to D034, D050 to D052.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any

from extender.cluster.pods import PodQuery


class Action(IntFlag):
    """What happened to an object; updates say what changed.

    The order is that of kube-scheduler, which compares the values (D032).
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


_ACTION_LABELS = {action: "".join(map(str.capitalize, (action.name or "").split("_"))) for action in Action} | {
    Action.UPDATE: "Update",
    Action.ALL: "All",
}


class Resource(Enum):
    """Which kind of object it happened to."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
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


class Hint(Enum):
    """Whether an event may make a rejected pod schedulable."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


@dataclass(frozen=True, slots=True)
class Change:
    """One event with the objects before and after (None where there is none).

    Attributes:
        resource: the kind of object.
        action: what happened to it.
        old, new: the object before and after.
        name: of an event that is not one of the API server's, such as `BackoffComplete`.
    """

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None
    name: str = ""

    @property
    def label(self) -> str:
        """The event as metrics and logs name it: `NodeAdd`, `AssignedPodDelete`. Source: D050 to D052."""
        return self.name or f"{self.resource.value}{_ACTION_LABELS.get(self.action, '')}"


HintFunction = Callable[[PodQuery, Change], Hint]


@dataclass(frozen=True, slots=True)
class Registration:
    """An event a plugin wants to hear of.

    Without `hint` every such event wakes the pod; a hint that raises counts as QUEUE. Source: B006.
    """

    resource: Resource
    action: Action
    hint: HintFunction | None = None

    def concerns(self, change: Change) -> bool:
        """Whether *change* is such an event. Source: D032."""
        if self.resource is Resource.ANY and self.action == Action.ALL:
            return True
        same = self.resource in (Resource.ANY, change.resource) or (
            self.resource is Resource.POD and change.resource in (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD)
        )
        return same and bool(self.action & change.action) and change.action.value <= self.action.value
