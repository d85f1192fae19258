"""GangScheduling binds the pods of a gang together: at least `minCount` of them, or none.

**Rejects** no node. PreEnqueue rejects a pod until its PodGroup exists. If the group has the gang policy, PreEnqueue
also rejects the pod until the cluster has `minCount` pods of the group. Permit lets an assumed pod wait, five minutes
at most, until `minCount` pods of the group are assumed or bound, and then allows all waiting pods of the group. Pods
without a group, and pods of groups with the basic policy, pass.

**Scores** no node.

**Requeued on** a new pod of the group, or the creation of the group.

**Options** none. Alpha: on by default only with the feature gate `GangScheduling`.

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
from extender.framework.status import Code, Status, error, unresolvable

_TIMEOUT: Final = 300.0
_TOO_FEW_PODS: Final = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
_WAIT_FOR_GANG: Final = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))


class GangScheduling:
    """Compares the number of pods in the pod's group with `minCount`."""

    name: ClassVar[str] = "GangScheduling"

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
            return unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
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
            return PermitResult(error(f'failed to get podGroup {key}: podgroup.scheduling.k8s.io "{name}" not found'))
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return ALLOW
        members = snapshot.pod_group(key)
        if len(members.assigned) < gang.min_count:
            return PermitResult(_WAIT_FOR_GANG, _TIMEOUT, pods_to_activate=tuple(members.pending.values()))
        return PermitResult(
            uids_to_allow=tuple(uid for uid, assigned_pod in members.assigned.items() if assigned_pod.assumed)
        )

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of new pods and new pod groups.

        Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.EventsToRegister
        (1.36).
        """
        return (
            ClusterEventWithHint(EventResource.POD, ActionType.ADD, _is_schedulable_after_pod_added),
            ClusterEventWithHint(EventResource.POD_GROUP, ActionType.ADD, _is_schedulable_after_pod_group_added),
        )


def _is_schedulable_after_pod_added(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    key = get_pod_group_key(pod.pod)
    return QueueingHint.QUEUE if key is not None and get_pod_group_key(event.new) == key else QueueingHint.SKIP


def _is_schedulable_after_pod_group_added(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    pod_group: PodGroup = event.new
    return (
        QueueingHint.QUEUE
        if get_pod_group_key(pod.pod) == f"{pod_group.metadata.namespace}/{pod_group.metadata.name}"
        else QueueingHint.SKIP
    )
