"""A queued pod group and the order of its members."""

from extender.cache.group_hierarchy import GroupKey
from extender.queueing.queued_entities import QueuedPodGroupInfo, QueuedPodInfo
from tests.pod_group_builders import make_group_member
from tests.unit.queueing.builders import make_pod_info


def member(name: str, priority: int = 0, attempts: int = 0, timestamp: float = 0) -> QueuedPodInfo:
    pod_info = make_pod_info(make_group_member(name, priority=priority))
    return QueuedPodInfo(pod_info, timestamp=timestamp, attempts=attempts)


def test_members_are_ordered_by_priority_attempts_time_and_name() -> None:
    """Source: pkg/scheduler/framework/types.go, PodGroupMemberPodsOrderingFunc (1.37)."""
    group = QueuedPodGroupInfo(GroupKey("default", "ring"), 3, timestamp=0)
    for added in (
        member("late", timestamp=9),
        member("b"),
        member("a"),
        member("again", attempts=1, timestamp=9),
        member("high", priority=1, timestamp=9),
    ):
        group.add(added)
    assert [pod.pod_info.pod.metadata.name for pod in group.members] == ["high", "again", "a", "b", "late"]


def test_the_entry_for_queue_sort_has_the_priority_of_the_group() -> None:
    group = QueuedPodGroupInfo(GroupKey("default", "ring"), 3, timestamp=7)
    group.add(member("a", priority=1))
    assert (group.queue_sort_entry.priority, group.queue_sort_entry.timestamp) == (3, 7)


def test_a_member_is_removed_by_its_key() -> None:
    group = QueuedPodGroupInfo(GroupKey("default", "ring"), 3, timestamp=0)
    group.add(member("a"))
    assert group.remove("default/b") is None
    removed = group.remove("default/a")
    assert removed is not None
    assert group.members == []
