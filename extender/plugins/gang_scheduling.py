"""GangScheduling binds the pods of a gang together: at least `minCount` of them, or none.

**Rejects** no node. PreEnqueue rejects a pod until its PodGroup exists. If the group has the gang policy, PreEnqueue
also rejects the pod until the cluster has `minCount` pods of the group. Permit lets an assumed pod wait at most five
minutes. When `minCount` pods of the group are assumed or bound, Permit allows all waiting pods of the group. Pods
without a group, and pods of groups with the basic policy, pass.

**Scores** no node.

Since 1.37 PlacementFeasible decides after each member of a group whether `minCount` members can still be scheduled.

With the feature gate `CompositePodGroup` (alpha, 1.37) pod groups form trees with composite pod groups. PreEnqueue and
Permit then count in the whole tree: a pod group needs `minCount` pods, and a composite pod group `minGroupCount` child
groups that have what they need, or one with the basic policy. PlacementFeasible also decides after each child group of
a composite pod group.

**Requeued on** a new pod of the group or tree, the creation of a group of the tree, or since 1.37 a lower `minCount`.

**Options** none. It is on by default only with the feature gate `GangScheduling`, in 1.37 `GenericWorkload`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from extender.api.kinds.pod_group import PodGroup
from extender.cache.group_hierarchy import Group, GroupKey, get_group_key, list_pod_group_keys, make_group_key
from extender.cache.pod_groups import PodGroupMembers, get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.framework.binding_points import ALLOW, PermitResult
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.plugin_args import PluginArgs
from extender.framework.pod_group_points import PlacementProgress
from extender.framework.status import Code, Status, error_status, unresolvable_status, unschedulable_status
from extender.plugin_parts.group_quorum import find_hierarchy_root, get_min_count, is_tree_ready

_TIMEOUT: Final = 300.0
_TOO_FEW_PODS: Final = unresolvable_status("waiting for minCount pods from a gang to appear in scheduling queue")
_WAIT_FOR_GANG: Final = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))


class GangScheduling:
    """Compares the number of pods in the pod's group with `minCount`."""

    name: ClassVar[str] = "GangScheduling"

    def __init__(self, args: PluginArgs[None]) -> None:
        self._min_count_may_change = args.gates.release.uses_placement_feasible
        self._composite_groups = "CompositePodGroup" in args.gates

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Reject a pod without its PodGroup, or with fewer than `minCount` pods in the group.

        Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.PreEnqueue (1.36).
        """
        key = get_pod_group_key(pod.pod)
        if key is None:
            return None
        if self._composite_groups:
            return _check_tree(make_group_key(key), snapshot)
        group = snapshot.get_object(PodGroup, key)
        if group is None:
            name = key.partition("/")[2]
            return unresolvable_status(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
        gang = group.spec.scheduling_policy.gang
        has_min_count = gang is None or snapshot.pod_group(key).count >= gang.min_count
        return None if has_min_count else _TOO_FEW_PODS

    def permit(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: Any) -> PermitResult:  # noqa: ARG002
        """Let the pod wait until `minCount` pods are assigned, then allow all waiting pods of the group.

        Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.Permit (1.36).
        """
        key = get_pod_group_key(pod.pod)
        if key is None:
            return ALLOW
        if self._composite_groups:
            return _permit_in_tree(make_group_key(key), snapshot)
        group = snapshot.get_object(PodGroup, key)
        if group is None:
            name = key.partition("/")[2]
            return PermitResult(
                error_status(f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{name}" not found')
            )
        return _permit_in_group(group, snapshot)

    def placement_feasible(self, pod_group: Group, progress: PlacementProgress) -> Status | None:
        """Return WAIT while fewer than `minCount` pods are scheduled, and UNSCHEDULABLE if too few pods remain.

        `minCount` is 1 for a group with the basic policy. A composite group counts child groups, by `minGroupCount`.

        Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.PlacementFeasible,
        getMinCount (1.37).
        """
        min_count = get_min_count(pod_group)
        counts = f"{progress.scheduled} scheduled, {progress.remaining} remaining"
        if progress.remaining + progress.scheduled < min_count:
            return unschedulable_status(f"minCount ({min_count}) cannot be satisfied: {counts}")
        if progress.scheduled < min_count:
            return Status(Code.WAIT, (f"minCount ({min_count}) is not yet satisfied: {counts}",))
        return None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of new pods and new pod groups, and since 1.37 of changed pod groups.

        Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.EventsToRegister
        (1.36).
        """
        events = (
            ClusterEventWithHint(EventResource.POD, ActionType.ADD, _is_schedulable_after_pod_added),
            ClusterEventWithHint(EventResource.POD_GROUP, ActionType.ADD, _is_schedulable_after_pod_group_added),
        )
        if not self._min_count_may_change:
            return events
        update = ClusterEventWithHint(
            EventResource.POD_GROUP, ActionType.UPDATE, _is_schedulable_after_pod_group_updated
        )
        if not self._composite_groups:
            return (*events, update)
        composite = ClusterEventWithHint(
            EventResource.COMPOSITE_POD_GROUP, ActionType.ADD, _is_schedulable_after_pod_group_added
        )
        return (*events, update, composite)


def _check_tree(key: GroupKey, snapshot: Snapshot) -> Status | None:
    """Return the rejection of a pod of the pod group *key* by PreEnqueue, with composite pod groups.

    Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.preEnqueueWithHierarchies
    (1.37).
    """
    root = find_hierarchy_root(key, snapshot)
    if isinstance(root, str):
        return unresolvable_status(f"failed to build hierarchy snapshot: {root}")
    if is_tree_ready(root, snapshot, lambda members: members.count):
        return None
    return unresolvable_status(_describe_missing_quorum(root)) if root.is_composite else _TOO_FEW_PODS


def _describe_missing_quorum(root: GroupKey) -> str:
    return f'waiting for composite pod group "{root.name}" tree to meet quorum'


def _permit_in_tree(key: GroupKey, snapshot: Snapshot) -> PermitResult:
    """Return the result of Permit for a pod of the pod group *key*, with composite pod groups.

    Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.permitPodForHierarchy
    (1.37).
    """
    root = find_hierarchy_root(key, snapshot)
    if isinstance(root, str):
        return PermitResult(error_status(f"failed to build hierarchy snapshot: {root}"))
    group = snapshot.get_group(root)
    if isinstance(group, PodGroup):
        return _permit_in_group(group, snapshot)
    groups = [snapshot.pod_group(group_key.object_key) for group_key in list_pod_group_keys(snapshot, root)]
    if not is_tree_ready(root, snapshot, lambda members: len(members.assigned)):
        pending_pods = tuple(pod for members in groups for pod in members.pending.values())
        return PermitResult(
            Status(Code.WAIT, (_describe_missing_quorum(root),)), _TIMEOUT, pods_to_activate=pending_pods
        )
    return PermitResult(uids_to_allow=tuple(uid for members in groups for uid in _list_assumed_uids(members)))


def _permit_in_group(group: PodGroup, snapshot: Snapshot) -> PermitResult:
    gang = group.spec.scheduling_policy.gang
    if gang is None:
        return ALLOW
    members = snapshot.pod_group(get_group_key(group).object_key)
    if len(members.assigned) < gang.min_count:
        return PermitResult(_WAIT_FOR_GANG, _TIMEOUT, pods_to_activate=tuple(members.pending.values()))
    return PermitResult(uids_to_allow=_list_assumed_uids(members))


def _list_assumed_uids(members: PodGroupMembers) -> tuple[str, ...]:
    return tuple(uid for uid, assigned_pod in members.assigned.items() if assigned_pod.assumed)


def _is_schedulable_after_pod_added(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    return _queue_same_tree(pod, event, get_pod_group_key(event.new))


def _is_schedulable_after_pod_group_updated(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue the members of a gang whose `minCount` is lower than before."""
    old_gang, new_gang = event.old.spec.scheduling_policy.gang, event.new.spec.scheduling_policy.gang
    if old_gang is None or new_gang is None or new_gang.min_count >= old_gang.min_count:
        return QueueingHint.SKIP
    return _is_schedulable_after_pod_group_added(pod, event)


def _is_schedulable_after_pod_group_added(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    return _queue_same_tree(pod, event, get_group_key(event.new).object_key)


def _queue_same_tree(pod: PodInfo, event: ClusterEvent, group_key: str | None) -> QueueingHint:
    """Queue the members of the group *group_key*; with composite pod groups, those of all groups with its root.

    Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.areSameHierarchy (1.37).
    """
    key = get_pod_group_key(pod.pod)
    is_same = key == group_key if event.hierarchy is None else key in event.hierarchy
    return QueueingHint.queue_if(key is not None and is_same)
