"""The trees of pod groups: composite pod groups are inner nodes, and pod groups are leaves.

A group names its parent, which need not exist. Without the feature gate CompositePodGroup the cache has no composite
pod groups, so that every pod group is the root of its tree.

Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.GetRootKeyForGroup, cacheImpl.BuildHierarchySnapshotFromPod;
pkg/scheduler/backend/queue/workload_forest.go, workloadForest (1.37).
"""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple, Protocol, TypeAlias

from extender.api.kinds.pod_group import CompositePodGroup, PodGroup

MAX_DEPTH: Final = 4
"""The number of groups from a root to a leaf that kube-scheduler allows.

Source: k8s.io/api/scheduling/v1alpha3/types.go, WorkloadMaxTreeDepth (1.37).
"""

Group: TypeAlias = PodGroup | CompositePodGroup


class GroupKey(NamedTuple):
    """The key of a pod group or composite pod group."""

    namespace: str
    name: str
    is_composite: bool = False

    @property
    def object_key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def __str__(self) -> str:
        """Return the key in messages. Source: kube-scheduler/framework/types.go, EntityKey.String (1.37)."""
        return f"{'composite' if self.is_composite else ''}podgroup/{self.namespace}/{self.name}"


def make_group_key(object_key: str) -> GroupKey:
    """Return the key of the pod group *object_key* (`namespace/name`)."""
    namespace, _, name = object_key.partition("/")
    return GroupKey(namespace, name)


def get_group_key(group: Group) -> GroupKey:
    """Return the key of *group*."""
    return GroupKey(group.metadata.namespace, group.metadata.name, isinstance(group, CompositePodGroup))


def get_parent_key(group: Group) -> GroupKey | None:
    """Return the key of the composite pod group that *group* names as its parent; None if it names none."""
    name = group.spec.parent_composite_pod_group_name
    return None if name is None else GroupKey(group.metadata.namespace, name, is_composite=True)


class GroupSource(Protocol):
    """The groups of a cluster."""

    def get_group(self, key: GroupKey) -> Group | None:
        """Return the group *key*; None if it does not exist."""

    def child_groups(self, key: GroupKey) -> Collection[GroupKey]:
        """Return the keys of the groups that exist and name *key* as their parent."""


def iterate_ancestors(groups: GroupSource, key: GroupKey) -> Iterator[tuple[GroupKey, Group]]:
    """Yield the group *key* and its ancestors, up to the root or to a group that does not exist or was yielded."""
    visited: set[GroupKey] = set()
    next_key: GroupKey | None = key
    while next_key is not None and next_key not in visited:
        visited.add(next_key)
        group = groups.get_group(next_key)
        if group is None:
            return
        yield next_key, group
        next_key = get_parent_key(group)


def find_root(groups: GroupSource, key: GroupKey) -> GroupKey | None:
    """Return the root above *key*; None if a group on the way does not exist, or if the groups form a cycle.

    Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.GetRootKeyForGroup (1.37).
    """
    for ancestor_key, group in iterate_ancestors(groups, key):
        if get_parent_key(group) is None:
            return ancestor_key
    return None


def list_pod_group_keys(groups: GroupSource, root: GroupKey) -> list[GroupKey]:
    """Return the keys of the pod groups that exist below *root*, or *root* itself if it is an existing pod group."""
    if not root.is_composite:
        return [root] if groups.get_group(root) is not None else []
    keys: list[GroupKey] = []
    visited, unvisited = {root}, [root]
    while unvisited:
        for child in groups.child_groups(unvisited.pop()):
            if child in visited or groups.get_group(child) is None:
                continue
            visited.add(child)
            (unvisited if child.is_composite else keys).append(child)
    return keys
