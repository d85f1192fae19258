"""Check whether a tree of pod groups has enough pods: a gang `minCount`, a composite gang `minGroupCount`.

Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.isCPGTreeReady (1.37).
"""

from collections import Counter
from collections.abc import Callable

from extender.api.kinds.pod_group import CompositePodGroup
from extender.cache.group_hierarchy import MAX_DEPTH, Group, GroupKey, get_parent_key, iterate_ancestors
from extender.cache.pod_groups import PodGroupMembers
from extender.cache.snapshot import Snapshot

CountMembers = Callable[[PodGroupMembers], int]
"""A function that counts the members of a pod group that matter."""


def get_min_count(group: Group) -> int:
    """Return the number of members of *group* that must be scheduled together; 1 for the basic policy.

    The members of a composite pod group are its child groups.

    Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, getMinCount (1.37).
    """
    if isinstance(group, CompositePodGroup):
        composite_gang = group.spec.scheduling_policy.gang
        return 1 if composite_gang is None else composite_gang.min_group_count
    gang = group.spec.scheduling_policy.gang
    return 1 if gang is None else gang.min_count


def find_hierarchy_root(key: GroupKey, snapshot: Snapshot) -> GroupKey | str:
    """Return the root above the pod group *key*, or why there is none: a group is missing, or the tree is too deep.

    Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.BuildHierarchySnapshotFromPod (1.37).
    """
    ancestors = dict(iterate_ancestors(snapshot, key))
    if key not in ancestors:
        return f"pod group object not found in state for {key}"
    path = list(ancestors)
    parent_key = get_parent_key(ancestors[path[-1]])
    if parent_key is None and len(path) <= MAX_DEPTH + 1:
        return path[-1]
    if parent_key in ancestors:
        cycle = path[path.index(parent_key) :]
        position = MAX_DEPTH - path.index(parent_key)  # of the group at which kube-scheduler ends its way up
        if position >= 0:
            return f"cycle detected in composite pod group hierarchy: {cycle[position % len(cycle)]}"
    missing_key = parent_key if len(path) < MAX_DEPTH else get_parent_key(ancestors[key])
    return f"composite pod group object not found in state for {missing_key}"


def is_tree_ready(key: GroupKey, snapshot: Snapshot, count_members: CountMembers) -> bool:
    """Return whether the group *key* has its minimum of members, by *count_members*, or of child groups that have."""
    keys, ready_counts = [key], Counter[GroupKey | None]()
    for parent in keys:
        keys += snapshot.child_groups(parent) if parent.is_composite else ()
    is_ready = False
    for group_key in reversed(keys):  # child groups are before the group above them
        group = snapshot.get_group(group_key)
        is_leaf = not group_key.is_composite
        count = count_members(snapshot.pod_group(group_key.object_key)) if is_leaf else ready_counts[group_key]
        is_ready = group is not None and count >= get_min_count(group)
        if group is not None and is_ready:
            ready_counts[get_parent_key(group)] += 1
    return is_ready
