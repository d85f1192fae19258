"""The tree of a pod group that is being scheduled, and the order of its members.

Source: pkg/scheduler/framework/types.go, PodGroupInfo.GetChildGroups; pkg/scheduler/schedule_one_podgroup.go,
Scheduler.reconcilePodGroupWithSnapshot (1.37).
"""

import math
from collections.abc import Iterable

from extender.cache.group_hierarchy import GroupKey, find_root, make_group_key
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.framework.pod_group_points import PodGroupInfo


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
    visited: set[GroupKey] = set()

    def get_sort_key(child: GroupKey) -> tuple[float, str, bool]:
        group = snapshot.get_group(child)
        created = None if group is None else group.metadata.creation_timestamp
        return (-math.inf if created is None else created.timestamp(), child.name, child.is_composite)

    def make_info(key: GroupKey) -> PodGroupInfo:
        visited.add(key)
        children = sorted(snapshot.child_groups(key), key=get_sort_key) if key.is_composite else ()
        infos = tuple(make_info(child) for child in children if child not in visited)
        return PodGroupInfo(key.namespace, key.name, key.is_composite, infos)

    return make_info(key)


def sort_members(pods: Iterable[PodInfo], group: PodGroupInfo) -> tuple[PodInfo, ...]:
    """Return *pods* in the order of their pod groups in *group*. The order within a pod group stays."""
    if not group.is_composite:
        return tuple(pods)
    position_by_key = {info.key: position for position, info in enumerate(group.iterate_pod_groups())}
    return tuple(sorted(pods, key=lambda pod: position_by_key.get(get_pod_group_key(pod.pod) or "", -1)))
