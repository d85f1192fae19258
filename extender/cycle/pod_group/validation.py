"""Check that the members of a pod group can be scheduled together.

Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.validatePodGroup, Scheduler.validateScheduledPods,
Scheduler.reconcilePodGroupWithSnapshot (1.37).
"""

from collections.abc import Iterable, Sequence

from extender.api.kinds.pod import Pod
from extender.cache.group_hierarchy import Group, list_pod_group_keys
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.cycle.pod_group.hierarchy import find_root_key
from extender.cycle.pod_group_members import check_scheduler_names
from extender.framework.profiles import Profile
from extender.framework.status import Status, error_status

_DEFAULT_PREEMPTION_POLICY = "PreemptLowerPriority"


def validate_pod_group(pods: Sequence[PodInfo], snapshot: Snapshot, profile: Profile) -> Status | None:
    """Return an error if the members of a pod group cannot be scheduled together, else None.

    All members must have one scheduler name. Since 1.37 they must also have the priority of their group and one
    preemption policy, and this includes the scheduled members. In a tree of groups the group is the root. *pods* are
    the pending members in scheduling order, at least one, and *profile* is that of the first member.
    """
    if not profile.release.checks_member_priorities:
        return check_scheduler_names(pods)
    root_key = find_root_key(get_pod_group_key(pods[0].pod) or "", snapshot, profile.gates)
    group = snapshot.get_group(root_key)
    if group is None:
        return error_status(f'podgroup.scheduling.k8s.io "{root_key.name}" not found')
    scheduled_pods = (
        pod.pod
        for key in list_pod_group_keys(snapshot, root_key)
        for pod in snapshot.pod_group(key.object_key).assigned.values()
    )
    message = _find_difference((*(pod.pod for pod in pods), *scheduled_pods), group, profile.gates)
    return error_status(message) if message else None


def _find_difference(pods: Sequence[Pod], group: Group, gates: FeatureGates) -> str:
    """Return the message about the first pod that differs from *group* or the first pod; empty if none differs."""
    scheduler_name, priority = pods[0].spec.scheduler_name, group.spec.priority or 0
    if "PodGroupPreemptionPolicy" in gates:
        policy = group.spec.preemption_policy or _DEFAULT_PREEMPTION_POLICY
        suffix = " as the pod group's preemption policy"
    else:
        policy, suffix = _get_preemption_policy(pods[0]), ""
    prefix = "all pods in a single pod group should have the same"
    for pod in pods:
        if pod.spec.scheduler_name != scheduler_name:
            return f'{prefix} .spec.schedulerName set, got: "{pod.spec.scheduler_name}" and "{scheduler_name}"'
        if (pod.spec.priority or 0) != priority:
            return f"{prefix} priority as the pod group's priority, got {pod.spec.priority or 0} and {priority}"
        if _get_preemption_policy(pod) != policy:
            return f"{prefix} preemption policy{suffix}, got {_get_preemption_policy(pod)} and {policy}"
    return ""


def _get_preemption_policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or _DEFAULT_PREEMPTION_POLICY


def has_preemption_policy_never(group: Group, pods: Iterable[PodInfo], gates: FeatureGates) -> bool:
    """Return whether *group* may not preempt other pods.

    Source: pkg/scheduler/framework/preemption/types.go, resolvePreemptionPolicy,
    resolveCompositePreemptionPolicy (1.37).
    """
    if "PodGroupPreemptionPolicy" in gates:
        return group.spec.preemption_policy == "Never"
    return any(pod.spec.preemption_policy == "Never" for pod in pods)
