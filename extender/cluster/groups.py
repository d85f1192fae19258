"""The members of pod groups: who waits and who has a node, kept up to date as pods come and go. Source: A144, B130."""

from dataclasses import dataclass, field

from extender.basics.cow import CowDict
from extender.cluster.pods import PlacedPod
from extender.objects.pod import Pod


def group_key(pod: Pod) -> str | None:
    """`namespace/name` of the group that *pod* is a member of; None if it is in none."""
    group = pod.spec.scheduling_group
    return None if group is None else f"{pod.metadata.namespace}/{group.pod_group_name or ''}"


@dataclass(slots=True)
class GroupMembers:
    """The pods of one group, by uid. Read them only.

    Attributes:
        waiting: without a node.
        placed: on a node, or assumed there.
    """

    waiting: dict[str, Pod] = field(default_factory=dict)
    placed: dict[str, PlacedPod] = field(default_factory=dict)

    def copied(self) -> "GroupMembers":
        """The same members, to be written without touching these."""
        return GroupMembers(dict(self.waiting), dict(self.placed))

    @property
    def known(self) -> int:
        """How many there are."""
        return len(self.waiting) + len(self.placed)


NOBODY = GroupMembers()


class GroupTable:
    """Groups with members, by `namespace/name`."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: CowDict[str, GroupMembers] = CowDict(GroupMembers.copied)

    def fork(self) -> "GroupTable":
        """The same groups, to be written without touching these."""
        child = object.__new__(GroupTable)
        child._groups = self._groups.fork()
        return child

    def get(self, key: str) -> GroupMembers:
        """The members of the group *key*; nobody if none is known."""
        return self._groups.get(key) or NOBODY

    def wait(self, pod: Pod) -> None:
        """*pod* waits for a node; nothing happens if it is in no group."""
        key = group_key(pod)
        if key is not None:
            self._groups.writable(key, GroupMembers).waiting[pod.metadata.uid or pod.key] = pod

    def place(self, pod: PlacedPod) -> None:
        """*pod* has a node and waits no more."""
        key = group_key(pod.pod)
        if key is not None:
            members = self._groups.writable(key, GroupMembers)
            members.waiting.pop(pod.uid, None)
            members.placed[pod.uid] = pod

    def drop(self, pod: Pod) -> None:
        """*pod* is gone, or has lost its node."""
        key = group_key(pod)
        if key is None:
            return
        uid = pod.metadata.uid or pod.key
        members = self._groups.writable(key, GroupMembers)
        members.waiting.pop(uid, None)
        members.placed.pop(uid, None)
        if not members.known:
            self._groups.drop(key)
