"""GangScheduling binds the pods of a gang together: at least `minCount` of them, or none.

**Rejects** no node. PreEnqueue rejects a pod until its PodGroup exists. If the group has the gang policy, PreEnqueue
also rejects the pod until the cluster has `minCount` pods of the group. Permit lets an assumed pod wait at most five
minutes. When `minCount` pods of the group are assumed or bound, Permit allows all waiting pods of the group. Pods
without a group, and pods of groups with the basic policy, pass.

**Scores** no node.

Since 1.37 PlacementFeasible decides after each member of a group whether `minCount` members can still be scheduled.

**Requeued on** a new pod of the group, the creation of the group, or since 1.37 a lower `minCount`.

**Options** none. It is on by default only with the feature gate `GangScheduling`, in 1.37 `GenericWorkload`.

Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.PreEnqueue,
GangScheduling.Permit, GangScheduling.EventsToRegister (1.36).
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from extender.api.kinds.pod_group import PodGroup
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import ALLOW, PermitResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.pod_group_points import PlacementProgress
from extender.framework.status import Code, Status, error_status, unresolvable_status, unschedulable_status

_TIMEOUT: Final = 300.0
_TOO_FEW_PODS: Final = unresolvable_status("waiting for minCount pods from a gang to appear in scheduling queue")
_WAIT_FOR_GANG: Final = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))


class GangScheduling:
    """Compares the number of pods in the pod's group with `minCount`."""

    name: ClassVar[str] = "GangScheduling"

    def __init__(self, args: PluginArgs[None]) -> None:
        self._min_count_may_change = args.gates.release.uses_placement_feasible

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        """Reject a pod without its PodGroup, or with fewer than `minCount` pods in the group.

        Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.PreEnqueue (1.36).
        """
        key = get_pod_group_key(pod.pod)
        if key is None:
            return None
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
        group = snapshot.get_object(PodGroup, key)
        if group is None:
            name = key.partition("/")[2]
            return PermitResult(
                error_status(f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{name}" not found')
            )
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return ALLOW
        members = snapshot.pod_group(key)
        if len(members.assigned) < gang.min_count:
            return PermitResult(_WAIT_FOR_GANG, _TIMEOUT, pods_to_activate=tuple(members.pending.values()))
        return PermitResult(
            uids_to_allow=tuple(uid for uid, assigned_pod in members.assigned.items() if assigned_pod.assumed)
        )

    def placement_feasible(self, pod_group: PodGroup, progress: PlacementProgress) -> Status | None:
        """Return WAIT while fewer than `minCount` pods are scheduled, and UNSCHEDULABLE if too few pods remain.

        `minCount` is 1 for a group with the basic policy.

        Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.PlacementFeasible,
        getMinCount (1.37).
        """
        gang = pod_group.spec.scheduling_policy.gang
        min_count = 1 if gang is None else gang.min_count
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
        return (*events, update)


def _is_schedulable_after_pod_added(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    key = get_pod_group_key(pod.pod)
    return QueueingHint.QUEUE if key is not None and get_pod_group_key(event.new) == key else QueueingHint.SKIP


def _is_schedulable_after_pod_group_updated(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue the members of a gang whose `minCount` is lower than before."""
    old_gang, new_gang = event.old.spec.scheduling_policy.gang, event.new.spec.scheduling_policy.gang
    if old_gang is None or new_gang is None or new_gang.min_count >= old_gang.min_count:
        return QueueingHint.SKIP
    return _is_schedulable_after_pod_group_added(pod, event)


def _is_schedulable_after_pod_group_added(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    pod_group: PodGroup = event.new
    return (
        QueueingHint.QUEUE
        if get_pod_group_key(pod.pod) == f"{pod_group.metadata.namespace}/{pod_group.metadata.name}"
        else QueueingHint.SKIP
    )
