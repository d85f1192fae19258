"""A pod group in the scheduling queue, with the queued members.

Source: pkg/scheduler/framework/types.go, QueuedPodGroupInfo, PodGroupMemberPodsOrderingFunc (1.37).
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from extender.cache.group_hierarchy import GroupKey
from extender.framework.extension_points import QueueSortEntry
from extender.queueing.queued_pod_info import QueuedPodInfo, QueueingParams


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
"""What the queue orders and pops."""


def get_entity_type(entity: QueuedEntity) -> str:
    """Return the type of *entity* in metrics: pod or podgroup, also for a composite pod group.

    Source: pkg/scheduler/metrics/metric_recorder.go, EntityToLabel (1.37).
    """
    return "pod" if isinstance(entity, QueuedPodInfo) else "podgroup"


def make_queue_key(group_key: GroupKey) -> str:
    """Return the key in the queue of the group *group_key*."""
    return str(group_key)


def get_member_order(member: QueuedPodInfo) -> tuple[int, int, float, str]:
    """Return the sort key of a member: the highest priority, the most attempts, and the earliest time first."""
    return -member.pod_info.priority, -member.attempts, member.timestamp, member.pod_info.pod.metadata.name
