"""The trees of pod groups that the scheduling queue knows. The queue changes with them, and reads no cache.

Source: pkg/scheduler/backend/queue/workload_forest.go, workloadForest (1.37).
"""

from collections.abc import Collection

from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup, PodGroup
from extender.cache.group_hierarchy import (
    Group,
    GroupKey,
    find_root,
    get_group_key,
    get_parent_key,
    list_pod_group_keys,
    make_group_key,
)
from extender.cache.pod_groups import get_pod_group_key
from extender.framework.events import ClusterEvent


class WorkloadForest:
    """Pod groups and composite pod groups, with the children of each composite pod group.

    Without composite pod groups every pod group is a root, whatever parent it names.
    """

    def __init__(self, *, composite_groups: bool) -> None:
        """Create an empty forest; *composite_groups* is the gate CompositePodGroup."""
        self.composite_groups = composite_groups
        self._groups: dict[GroupKey, Group] = {}
        self._children: dict[GroupKey, dict[GroupKey, None]] = {}

    def get_group(self, key: GroupKey) -> Group | None:
        """Return the group *key*; None if it does not exist."""
        return self._groups.get(key)

    def child_groups(self, key: GroupKey) -> Collection[GroupKey]:
        """Return the keys of the groups that name *key* as their parent."""
        return self._children.get(key, ())

    def put(self, group: Group) -> None:
        """Add or replace a group."""
        key = get_group_key(group)
        self.remove(key)
        self._groups[key] = group
        parent_key = self._find_parent_key(group)
        if parent_key is not None:
            self._children.setdefault(parent_key, {})[key] = None

    def remove(self, key: GroupKey) -> None:
        """Remove the group *key* if it exists. Its children stay, for a new group with the same key."""
        group = self._groups.pop(key, None)
        parent_key = None if group is None else self._find_parent_key(group)
        if parent_key is not None:
            children = self._children[parent_key]
            del children[key]
            if not children:
                del self._children[parent_key]

    def find_root(self, key: GroupKey) -> GroupKey | None:
        """Return the root above *key*; None if a group on the way does not exist.

        Source: pkg/scheduler/backend/queue/workload_forest.go, workloadForest.getRootLookupInfoForPodGroup (1.37).
        """
        if self.composite_groups:
            return find_root(self, key)
        return key if key in self._groups else None

    def find_hierarchy(self, event: ClusterEvent) -> frozenset[str]:
        """Return the keys of the pod groups with the root of the object of *event*."""
        obj, group_key = event.old if event.new is None else event.new, None
        if isinstance(obj, Pod) and (pod_group_key := get_pod_group_key(obj)) is not None:
            group_key = make_group_key(pod_group_key)
        elif isinstance(obj, PodGroup | CompositePodGroup):
            group_key = get_group_key(obj)
        root_key = None if group_key is None else self.find_root(group_key)
        keys = [] if root_key is None else list_pod_group_keys(self, root_key)
        return frozenset(key.object_key for key in keys)

    def _find_parent_key(self, group: Group) -> GroupKey | None:
        return get_parent_key(group) if self.composite_groups else None
