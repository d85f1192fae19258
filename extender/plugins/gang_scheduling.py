"""GangScheduling: the pods of a gang are bound together, at least as many as the gang needs, or not at all.

**Refuses** no node. Keeps a pod of a pod group out of the queue until its PodGroup exists and, where that has the gang
policy, until as many of its pods are known as `minCount` says. A pod that has its node waits, five minutes at most,
until as many pods of the gang have theirs; the one that completes the number lets all others go. Pods without a group,
and groups with the basic policy, pass.

**Scores** none.

**Undone by** a new pod of the group, or the creation of the group.

**Options** none. Alpha: on by default only with the feature gate `GangScheduling`.

Source: B130 to B132.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from extender.cluster.groups import group_key
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import ALLOW, Permission
from extender.framework.verdict import Code, Status, error, unresolvable
from extender.objects.groups import PodGroup

_TIMEOUT: Final = 300.0
_TOO_FEW_KNOWN: Final = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
_TOO_FEW_PLACED: Final = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))


class GangScheduling:
    """Counts the members of the pod's group."""

    name: ClassVar[str] = "GangScheduling"

    def pre_enqueue(self, pod: PodQuery, cluster: Snapshot) -> Status | None:
        """Source: B130."""
        key = group_key(pod.pod)
        if key is None:
            return None
        group = cluster.find(PodGroup, key)
        if group is None:
            name = key.partition("/")[2]
            return unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
        gang = group.spec.scheduling_policy.gang
        enough = gang is None or cluster.group(key).known >= gang.min_count
        return None if enough else _TOO_FEW_KNOWN

    def permit(self, pod: PodQuery, node: str, cluster: Snapshot, notes: Any) -> Permission:  # noqa: ARG002
        """Source: B131."""
        key = group_key(pod.pod)
        if key is None:
            return ALLOW
        group = cluster.find(PodGroup, key)
        if group is None:
            name = key.partition("/")[2]
            return Permission(error(f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{name}" not found'))
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return ALLOW
        members = cluster.group(key)
        if len(members.placed) < gang.min_count:
            return Permission(_TOO_FEW_PLACED, _TIMEOUT, activates=tuple(members.waiting.values()))
        return Permission(allows=tuple(uid for uid, placed in members.placed.items() if placed.assumed))

    def events(self) -> Sequence[Registration]:
        """Source: B132."""
        return (
            Registration(Resource.POD, Action.ADD, _after_pod_added),
            Registration(Resource.POD_GROUP, Action.ADD, _after_group_added),
        )


def _after_pod_added(pod: PodQuery, change: Change) -> Hint:
    key = group_key(pod.pod)
    return Hint.QUEUE if key is not None and group_key(change.new) == key else Hint.SKIP


def _after_group_added(pod: PodQuery, change: Change) -> Hint:
    added: PodGroup = change.new
    return Hint.QUEUE if group_key(pod.pod) == f"{added.metadata.namespace}/{added.metadata.name}" else Hint.SKIP
