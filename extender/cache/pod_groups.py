"""The pending and assigned members of each pod group.

Source: pkg/scheduler/schedule_one.go, Scheduler.ScheduleOne;
pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.PreEnqueue (1.36).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from extender.api.kinds.pod import Pod
from extender.basics.copy_on_write import CopyOnWriteDict
from extender.cache.group_hierarchy import GroupKey
from extender.cache.pod_info import AssignedPodInfo


def get_pod_group_key(pod: Pod) -> str | None:
    """Return `namespace/name` of the pod group of *pod*; None if it has no group."""
    group = pod.spec.scheduling_group
    return None if group is None else f"{pod.metadata.namespace}/{group.pod_group_name or ''}"


@dataclass(slots=True)
class PodGroupMembers:
    """The pods of one group, by uid. Only `PodGroupTable` may modify them.

    Attributes:
        pending: pods without a node.
        assigned: pods on a node, assumed pods included.
    """

    pending: dict[str, Pod] = field(default_factory=dict)
    assigned: dict[str, AssignedPodInfo] = field(default_factory=dict)

    def copy(self) -> "PodGroupMembers":
        """Return a copy that can be modified."""
        return PodGroupMembers(dict(self.pending), dict(self.assigned))

    @property
    def count(self) -> int:
        """The number of members."""
        return len(self.pending) + len(self.assigned)


NO_MEMBERS = PodGroupMembers()


class PodGroupTable:
    """Pod groups that have members, by `namespace/name`, and the children of composite pod groups."""

    def __init__(self) -> None:
        self._groups: CopyOnWriteDict[str, PodGroupMembers] = CopyOnWriteDict(PodGroupMembers.copy)
        self._children: CopyOnWriteDict[GroupKey, dict[GroupKey, None]] = CopyOnWriteDict(dict)

    def fork(self) -> "PodGroupTable":
        """Return a copy-on-write copy of the table."""
        child = object.__new__(PodGroupTable)
        child._groups, child._children = self._groups.fork(), self._children.fork()
        return child

    def set_parent(self, child: GroupKey, old_parent: GroupKey | None, parent: GroupKey | None) -> None:
        """Move the group *child* from *old_parent* to *parent*; None stands for no parent."""
        if old_parent == parent:
            return
        if old_parent is not None:
            children = self._children.get_writable(old_parent, dict)
            children.pop(child, None)
            if not children:
                self._children.remove(old_parent)
        if parent is not None:
            self._children.get_writable(parent, dict)[child] = None

    def get_children(self, parent: GroupKey) -> Collection[GroupKey]:
        """Return the groups that name *parent* as their parent; *parent* need not exist."""
        return self._children.get(parent) or ()

    def assigned_members(self) -> Iterator[AssignedPodInfo]:
        """Return the assigned members of all groups."""
        return (pod for _, members in self._groups.items() for pod in members.assigned.values())

    def get(self, key: str) -> PodGroupMembers:
        """Return the members of the group *key*; `NO_MEMBERS` if it has none."""
        return self._groups.get(key) or NO_MEMBERS

    def add_pending(self, pod: Pod) -> None:
        """Add the pending *pod* to its group, if it has one."""
        key = get_pod_group_key(pod)
        if key is not None:
            self._groups.get_writable(key, PodGroupMembers).pending[pod.uid_or_key] = pod

    def add_assigned(self, pod: AssignedPodInfo) -> None:
        """Add the assigned *pod* to its group, if it has one. The group no longer has the pod as pending."""
        key = get_pod_group_key(pod.pod)
        if key is not None:
            members = self._groups.get_writable(key, PodGroupMembers)
            members.pending.pop(pod.uid, None)
            members.assigned[pod.uid] = pod

    def remove(self, pod: Pod) -> None:
        """Remove *pod* from its group, if it has one."""
        key = get_pod_group_key(pod)
        if key is None:
            return
        uid = pod.uid_or_key
        members = self._groups.get_writable(key, PodGroupMembers)
        members.pending.pop(uid, None)
        members.assigned.pop(uid, None)
        if not members.count:
            self._groups.remove(key)
