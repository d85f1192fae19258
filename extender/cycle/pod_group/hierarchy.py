"""The tree of a pod group that is being scheduled, the order of its members, and the checks of both.

Source: pkg/scheduler/framework/types.go, PodGroupInfo.GetChildGroups; pkg/scheduler/schedule_one_podgroup.go,
Scheduler.reconcilePodGroupWithSnapshot, Scheduler.validatePodGroup, Scheduler.validateScheduledPods (1.37).
"""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from extender.api.kinds.pod import Pod
from extender.cache.group_hierarchy import Group, GroupKey, find_root, list_pod_group_keys, make_group_key
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.cycle.pod_group_members import check_scheduler_names
from extender.framework.pod_group_points import PodGroupInfo
from extender.framework.profiles import Profile
from extender.framework.status import Status, error_status

MAX_TREE_DEPTH: Final = 100
"""The number of groups from a root to a leaf that can be scheduled.

kube-scheduler has no limit here, but the API allows a Workload no tree of more than `group_hierarchy.MAX_DEPTH` groups.
"""


def find_root_key(object_key: str, snapshot: Snapshot, gates: FeatureGates) -> GroupKey:
    """Return the key of the root above the pod group *object_key* (`namespace/name`).

    This is the pod group itself without composite pod groups, or if its root does not exist.
    """
    key = make_group_key(object_key)
    return (find_root(snapshot, key) or key) if "CompositePodGroup" in gates else key


def list_keys_of_tree(object_key: str, snapshot: Snapshot, gates: FeatureGates) -> tuple[str, ...]:
    """Return the keys of the pod groups that are scheduled with *object_key* (`namespace/name`), in their order."""
    group = make_pod_group_info(find_root_key(object_key, snapshot, gates), snapshot)
    return tuple(info.key for info in group.iterate_pod_groups())


def make_pod_group_info(key: GroupKey, snapshot: Snapshot) -> PodGroupInfo:
    """Return the tree below *key*. Child groups are ordered by the time of their creation, then by name."""
    children_by_key = _map_children(key, snapshot)
    infos: dict[GroupKey, PodGroupInfo] = {}
    for group, children in reversed(children_by_key.items()):
        child_infos = tuple(infos.pop(child) for child in children)
        infos[group] = PodGroupInfo(group.namespace, group.name, group.is_composite, child_infos)
    return infos[key]


def _map_children(root: GroupKey, snapshot: Snapshot) -> dict[GroupKey, list[GroupKey]]:
    """Return the child groups of each group of the tree below *root*. A group is after the group above it."""
    children_by_key: dict[GroupKey, list[GroupKey]] = {}
    visited, unvisited = {root}, [root]
    while unvisited:
        key = unvisited.pop()
        keys = snapshot.child_groups(key) if key.is_composite else ()
        children = sorted((child for child in keys if child not in visited), key=partial(_get_sort_key, snapshot))
        visited.update(children)
        unvisited.extend(children)
        children_by_key[key] = children
    return children_by_key


def _find_too_deep_group(root: GroupKey, snapshot: Snapshot) -> GroupKey | None:
    """Return a group below *root* that has `MAX_TREE_DEPTH` groups above it; None if there is none."""
    depths = {root: 0}
    for key, children in _map_children(root, snapshot).items():
        if depths[key] >= MAX_TREE_DEPTH:
            return key
        depths.update(dict.fromkeys(children, depths[key] + 1))
    return None


def _get_sort_key(snapshot: Snapshot, key: GroupKey) -> tuple[float, str, bool]:
    group = snapshot.get_group(key)
    created = None if group is None else group.metadata.creation_timestamp
    return (-math.inf if created is None else created.timestamp(), key.name, key.is_composite)


def sort_members(pods: Iterable[PodInfo], group: PodGroupInfo) -> tuple[PodInfo, ...]:
    """Return *pods* in the order of their pod groups in *group*. The order within a pod group stays."""
    if not group.is_composite:
        return tuple(pods)
    position_by_key = {info.key: position for position, info in enumerate(group.iterate_pod_groups())}
    return tuple(sorted(pods, key=lambda pod: position_by_key.get(get_pod_group_key(pod.pod) or "", -1)))


_DEFAULT_PREEMPTION_POLICY = "PreemptLowerPriority"


def validate_pod_group(pods: Sequence[PodInfo], snapshot: Snapshot, profile: Profile) -> Status | None:
    """Return an error if the members of a pod group cannot be scheduled together, else None.

    All members must have one scheduler name. Since 1.37 they must also have the priority of their group and one
    preemption policy, and this includes the scheduled members. In a tree of groups the group is the root, and the tree
    may not be deeper than `MAX_TREE_DEPTH`. *pods* are the pending members in scheduling order, at least one, and
    *profile* is that of the first member.
    """
    if not profile.release.checks_member_priorities:
        return check_scheduler_names(pods)
    root_key = find_root_key(get_pod_group_key(pods[0].pod) or "", snapshot, profile.gates)
    group = snapshot.get_group(root_key)
    if group is None:
        return error_status(f'podgroup.scheduling.k8s.io "{root_key.name}" not found')
    too_deep = _find_too_deep_group(root_key, snapshot)
    if too_deep is not None:
        return error_status(f"exceeded maximum hierarchy depth at {too_deep}")
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
