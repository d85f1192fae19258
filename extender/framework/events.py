"""Cluster events, and the queueing hints with which plugins register for them.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.movePodsToActiveOrBackoffQueue;
pkg/scheduler/framework/types.go, UnrollWildCardResource (1.36).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any, Final

from msgspec import structs

from extender.api.kinds.pod import Pod
from extender.cache.pod_info import PodInfo
from extender.config.releases import Release


class ActionType(IntFlag):
    """The kind of change of an object. Updates have one member for each property that may change.

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
    UPDATE_NODE_PREEMPTION_POLICY = 1 << 8
    UPDATE_POD_LABEL = 1 << 9
    UPDATE_POD_SCALE_DOWN = 1 << 10
    UPDATE_POD_SCALE_UP = 1 << 11
    UPDATE_POD_TOLERATION = 1 << 12
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 13
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 14
    UPDATE = (1 << 15) - (1 << 2)
    ALL = (1 << 15) - 1


_NO_ACTION: Final = ActionType(0)

_ACTION_TYPE_LABELS = {
    action: "".join(map(str.capitalize, (action.name or "").split("_"))) for action in ActionType
} | {ActionType.UPDATE: "Update", ActionType.ALL: "All"}


class EventResource(Enum):
    """The kind of object of an event.

    POD stands for ASSIGNED_POD, UNSCHEDULED_POD and TARGET_POD in the registration of a plugin. TARGET_POD is a waiting
    pod in the events of its own updates. UNSCHEDULED_POD is any other pod without a node.

    Source: kube-scheduler/framework/types.go, EventResource (1.37).
    """

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    TARGET_POD = "TargetPod"
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
    COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
    ANY = "*"


class QueueingHint(Enum):
    """The result of a queueing hint: QUEUE if an event may make a rejected pod schedulable, else SKIP."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"

    @staticmethod
    def queue_if(condition: object) -> "QueueingHint":
        """Return QUEUE if *condition* is true, else SKIP."""
        return QueueingHint.QUEUE if condition else QueueingHint.SKIP


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event in the cluster.

    Attributes:
        resource: the kind of object.
        action: the kind of change.
        old: the object before the event; None if it was added.
        new: the object after the event; None if it was deleted.
        label_override: the label, if the event does not come from the API server, such as `BackoffComplete`, or has
            another label in the emulated release; else empty.
        hierarchy: for an event of a pod group, a composite pod group or a member, the keys (`namespace/name`) of the
            pod groups with the same root; empty if the root does not exist. None without composite pod groups.
        device_resources: for an added or updated node, the extended resources that device classes serve; None if they
            are unknown.
    """

    resource: EventResource
    action: ActionType
    old: Any = None
    new: Any = None
    label_override: str = ""
    hierarchy: frozenset[str] | None = None
    device_resources: frozenset[str] | None = None

    @property
    def label(self) -> str:
        """The label in metrics and logs, such as `NodeAdd` or `AssignedPodDelete`.

        Source: kube-scheduler/framework/types.go, ActionType.String, ClusterEvent.Label (1.36).
        """
        return self.label_override or f"{self.resource.value}{_ACTION_TYPE_LABELS.get(self.action, '')}"


QueueingHintFunction = Callable[[PodInfo, ClusterEvent], QueueingHint]


def queue_changed_pod(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue *pod* if it is the pod that changed."""
    return QueueingHint.queue_if(event.new.metadata.uid == pod.pod.metadata.uid)


PreQueueingHintFunction = Callable[[ClusterEvent], Callable[[PodInfo], bool] | None]
"""Returns whether an event may concern a pod, as a function of the pod; None if it may concern every pod.

Source: kube-scheduler/framework/types.go, PreQueueingHintFn (1.37).
"""


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """An event that a plugin registers for.

    Without `hint`, every matching event requeues the pod. If the hint raises, the pod is requeued too. With `pre_hint`
    and the gate SchedulerPreQueueingHints, only the pods that the event may concern are considered; if it raises, all
    pods are. `find_concerned` is the same, for this registration only and without the gate: the hint for the other pods
    would be SKIP, so it is not called.

    With `per_signature`, the hint for a node or an assigned pod depends only on the event and on the waiting pod's
    signature. It is then called for one of many waiting pods with equal signatures, and the result counts for all. So
    is the result of `find_concerned`.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodWorthRequeuing (1.36).
    """

    resource: EventResource
    action: ActionType
    hint: QueueingHintFunction | None = None
    pre_hint: PreQueueingHintFunction | None = None
    per_signature: bool = False
    find_concerned: PreQueueingHintFunction | None = None

    def matches(self, event: ClusterEvent) -> bool:
        """Return whether *event* matches. Source: pkg/scheduler/framework/types.go, MatchClusterEvents (1.36)."""
        if self.resource is EventResource.ANY and self.action == ActionType.ALL:
            return True
        matches_resource = self.resource in (EventResource.ANY, event.resource) or (
            self.resource is EventResource.POD
            and event.resource in (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD)
        )
        return matches_resource and bool(self.action & event.action) and event.action.value <= self.action.value


def make_pod_event(
    release: Release, resource: EventResource, action: ActionType, old: Pod | None = None, new: Pod | None = None
) -> ClusterEvent:
    """Return an event of the pod resource *resource* with the label that it has in *release*.

    Source: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange (1.36, 1.37).
    """
    label = release.pod_event_labels.get(resource.value)
    return ClusterEvent(resource, action, old, new, f"{label}{_ACTION_TYPE_LABELS[action]}" if label else "")


def make_lost_nomination_event(pod: Pod, node_name: str) -> ClusterEvent:
    """Return the event that *pod* lost its nomination for *node_name*.

    Pods of at most its priority may use its resources.

    Source: pkg/scheduler/eventhandlers.go, Scheduler.deletePodFromSchedulingQueue, hasNominatedNodeNameChanged (1.36).
    """
    nominated_pod = structs.replace(pod, status=structs.replace(pod.status, nominated_node_name=node_name))
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, nominated_pod, None)


def register_pod_events(
    release: Release,
    hint: QueueingHintFunction,
    *,
    assigned: ActionType = _NO_ACTION,
    target: ActionType = _NO_ACTION,
    per_signature: bool = False,
    find_concerned: PreQueueingHintFunction | None = None,
) -> tuple[ClusterEventWithHint, ...]:
    """Return the registrations for changes of assigned pods and of the waiting pod itself.

    *assigned* are the changes of assigned pods, *target* those of the waiting pod. If *release* does not split pod
    events, there is one registration for all pods. *per_signature*, *find_concerned*: see `ClusterEventWithHint`.

    Source: pkg/scheduler/framework/types.go, UnrollPodEvent (1.37).
    """
    actions = {EventResource.ASSIGNED_POD: assigned, EventResource.TARGET_POD: target}
    if not release.splits_pod_events:
        actions = {EventResource.POD: assigned | target}
    return tuple(
        ClusterEventWithHint(resource, action, hint, per_signature=per_signature, find_concerned=find_concerned)
        for resource, action in actions.items()
        if action
    )
