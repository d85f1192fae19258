"""The entities of the scheduling queue: pods with their attempts and rejections, and pod groups with queued members.

Source: pkg/scheduler/framework/types.go, QueueingParams, QueuedPodInfo, QueuedPodGroupInfo,
PodGroupMemberPodsOrderingFunc (1.37).
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from extender.api.kinds.pod import Pod
from extender.cache.group_hierarchy import GroupKey
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.framework.events import ClusterEventWithHint
from extender.framework.extension_points import QueueSortEntry


@dataclass(slots=True, kw_only=True)
class QueueingParams:
    """The state of a queued pod or pod group: attempts, rejections, times and gates.

    Attributes:
        timestamp: the time at which the entity was last added to the queue, in seconds.
        attempts: the number of times the entity was popped.
        initial_attempt_timestamp: the time at which the entity first entered the active queue, in seconds, or None.
        unschedulable_count: the number of attempts that ended with a rejection.
        consecutive_error_count: the number of attempts that ended with an error since the last rejection.
        unschedulable_plugins: the plugins that rejected the pod in the last attempt.
        pending_plugins: the plugins that rejected the pod in the last attempt with the code PENDING.
        gating_plugin: the PreEnqueue plugin that gates the entity; empty if the entity is not gated.
        gating_plugin_events: the events for which the gating plugin registered.
        event_while_gated: the label of the last event that would have requeued the entity if it were not gated; empty
            if there was none since the entity was gated.
        flush_timestamp: the time at which the entity was last unschedulable for too long, in seconds; always 0 in a
            release that does not evaluate gated pods again.
        was_flushed_from_unschedulable: whether the entity was requeued because it was unschedulable for too long.
        backoff_size: the number of pods from which the maximum backoff is computed.
    """

    timestamp: float
    attempts: int = 0
    initial_attempt_timestamp: float | None = None
    unschedulable_count: int = 0
    consecutive_error_count: int = 0
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    gating_plugin: str = ""
    gating_plugin_events: tuple[ClusterEventWithHint, ...] = field(default=())
    event_while_gated: str = ""
    flush_timestamp: float = 0.0
    was_flushed_from_unschedulable: bool = False
    backoff_size: int = 1

    @property
    def backoff_count(self) -> int:
        """The number of failures from which the backoff is computed.

        Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.calculateBackoffDuration,
        backoffQueue.getBackoffTime (1.36).
        """
        return self.consecutive_error_count or self.unschedulable_count

    @property
    def rejector_plugins(self) -> frozenset[str]:
        """All plugins that rejected the pod in the last attempt; empty after an error, and for a pod group."""
        return self.unschedulable_plugins | self.pending_plugins

    def count_failure(self, *, is_rejected: bool) -> None:
        """Count an attempt that ended with a rejection or an error."""
        if is_rejected:
            self.unschedulable_count, self.consecutive_error_count = self.unschedulable_count + 1, 0
        else:
            self.consecutive_error_count += 1

    def set_gate(self, plugin: str, events: tuple[ClusterEventWithHint, ...]) -> None:
        """Set the gating plugin and its events."""
        self.gating_plugin, self.gating_plugin_events = plugin, events
        if not plugin:
            self.event_while_gated = ""


@dataclass(slots=True)
class QueuedPodInfo(QueueingParams):
    """A queued pod.

    Attributes:
        pod_info: the pod.
        sent_status: the values that the scheduler last sent for each field of the status. The pod may be older.
    """

    pod_info: PodInfo
    sent_status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`namespace/name`, the key of the pod in the queue.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue (1.36).
        """
        return self.pod_info.key

    @property
    def uid(self) -> str:
        """The uid, which identifies the pod while it is in flight."""
        return self.pod_info.uid

    @property
    def pods(self) -> "tuple[QueuedPodInfo, ...]":
        """The pod itself; a queued pod group has several."""
        return (self,)

    @property
    def queue_sort_entry(self) -> QueueSortEntry:
        """The argument of the QueueSort plugin."""
        return QueueSortEntry(self.pod_info, self.timestamp, self.pod_info.priority)


@dataclass(slots=True)
class QueuedPodGroupInfo(QueueingParams):
    """A queued pod group, or a queued composite pod group with the members of all pod groups below it.

    Attributes:
        group_key: the key of the group, which is the root of its tree.
        priority: the priority of the group.
        members: the queued members: by priority, attempts, time and name, which is the scheduling order in a pod group.
    """

    group_key: GroupKey
    priority: int
    members: list[QueuedPodInfo] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The key of the group in the queue, which is the key of no pod."""
        return make_queue_key(self.group_key)

    @property
    def pods(self) -> Sequence[QueuedPodInfo]:
        """The members."""
        return self.members

    @property
    def queue_sort_entry(self) -> QueueSortEntry:
        """The argument of the QueueSort plugin."""
        return QueueSortEntry(self.members[0].pod_info, self.timestamp, self.priority)

    def add(self, member: QueuedPodInfo) -> None:
        """Add a member at its place in the order."""
        self.members.insert(bisect_left(self.members, get_member_order(member), key=get_member_order), member)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Remove and return the member with *key* (`namespace/name`); None if there is none."""
        member = next((member for member in self.members if member.key == key), None)
        if member is not None:
            self.members.remove(member)
        return member


QueuedEntity: TypeAlias = QueuedPodInfo | QueuedPodGroupInfo
"""An entity that the queue orders and pops."""


def get_entity_type(entity: QueuedEntity) -> str:
    """Return the type of *entity* in metrics: pod or podgroup, also for a composite pod group.

    Source: pkg/scheduler/metrics/metric_recorder.go, EntityToLabel (1.37).
    """
    return "pod" if isinstance(entity, QueuedPodInfo) else "podgroup"


def get_queued_group_key(pod: Pod) -> str | None:
    """Return the key of the pod group with which *pod* is queued; None if it is queued alone.

    A queued pod that is on a node waits for its own resize.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodGroupMember (1.37).
    """
    return None if pod.spec.node_name else get_pod_group_key(pod)


def make_queue_key(group_key: GroupKey) -> str:
    """Return the key in the queue of the group *group_key*."""
    return str(group_key)


def get_member_order(member: QueuedPodInfo) -> tuple[int, int, float, str]:
    """Return the sort key of a member: the highest priority, the most attempts, and the earliest time first."""
    return -member.pod_info.priority, -member.attempts, member.timestamp, member.pod_info.pod.metadata.name
