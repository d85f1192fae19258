"""Preemption units: the pods that are evicted together for a pod group.

Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption;
pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from math import inf

from extender.api.kinds.pod import Pod
from extender.basics.go_sort import sort_like_go
from extender.cache.group_hierarchy import (
    MAX_DEPTH,
    Group,
    GroupKey,
    iterate_ancestors,
    list_pod_group_keys,
    make_group_key,
)
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.config.releases import Release
from extender.cycle.node_sampling import order_rows_by_zone


class MissingNodeError(Exception):
    """A member of a group that is evicted as a whole is assigned to a node that does not exist."""

    def __init__(self, node_name: str) -> None:
        super().__init__(
            f'failed to get node info for node "{node_name}" from snapshot: '
            f'nodeinfo not found for node name "{node_name}"'
        )


@dataclass(slots=True)
class PreemptionUnit:
    """A single pod, or all pods of a group that is evicted as a whole.

    Attributes:
        priority: the priority of the pod or of the group.
        pods: the pods in the order of their nodes.
        is_composite: whether it is a composite pod group that is evicted as a whole.
    """

    priority: int
    pods: list[AssignedPodInfo] = field(default_factory=list)
    is_composite: bool = False

    @property
    def in_group(self) -> bool:
        """Whether the pods are members of a group, which may be evicted as a whole or not."""
        return self.pods[0].pod.spec.scheduling_group is not None

    def get_importance_key(self, release: Release) -> tuple[float, ...]:
        """Return the sort key, by which the most important unit is first.

        Composite pod groups are more important than other group members of the same priority, and these are more
        important than other pods, even if the group is not evicted as a whole. The start time of a unit is that of its
        first pod in 1.36, and that of its oldest pod since 1.37.
        """
        pods = self.pods if release.has_group_victims else self.pods[:1]
        return (
            -self.priority,
            not self.is_composite,
            not self.in_group,
            -len(self.pods) if self.in_group else 0,
            min(pod.start_time for pod in pods),
        )


def get_group_priority(group: Group) -> int:
    """Return the priority of *group*; 0 if it has none."""
    return group.spec.priority or 0


def get_victim_priority(pod: AssignedPodInfo, snapshot: Snapshot) -> int:
    """Return the priority of the group of *pod*; that of the pod if it has no group or the group does not exist.

    Of a tree of groups, the priority is that of the root, or of the last group below a group that does not exist.

    Source: pkg/scheduler/framework/preemption/util.go, GetPodPriority (1.37).
    """
    groups = _list_groups(pod.pod, snapshot)
    return get_group_priority(groups[-1][1]) if groups else pod.priority


def select_potential_victims(units: Iterable[PreemptionUnit], priority: int, release: Release) -> list[PreemptionUnit]:
    """Return the *units* of a lower priority than *priority*, the most important first."""
    victims = [unit for unit in units if unit.priority < priority]
    keys = [unit.get_importance_key(release) for unit in victims]
    distinct_keys = [(*key, index if key[-1] == inf else 0) for index, key in enumerate(keys)]
    ranks = {key: 2 * rank for rank, key in enumerate(sorted(set(distinct_keys)))}
    return [victims[index] for index in sort_like_go(tuple(map(ranks.__getitem__, distinct_keys)))]


def list_units(snapshot: Snapshot, release: Release) -> list[PreemptionUnit]:
    """Return the preemption units of all assigned pods, in the order in which kube-scheduler lists their nodes.

    This order decides which of equally important units are evicted. In 1.36 a pod that is evicted alone has its own
    priority. Later it has that of its group.

    Raises:
        MissingNodeError: a group that is evicted as a whole has a member on a node that does not exist (since 1.37).
    """
    rows = order_rows_by_zone(snapshot).tolist()
    pods = [pod for row in rows for pod in snapshot.pods_on(snapshot.names[row]).values()]
    if release.has_group_victims:
        _list_members_of_disrupted_groups(pods, snapshot)
    return _group_pods(pods, snapshot, release)


def list_units_on_node(node_name: str, snapshot: Snapshot, release: Release) -> list[PreemptionUnit]:
    """Return the preemption units with a pod on *node_name*, including their pods on other nodes.

    Raises:
        MissingNodeError: a group that is evicted as a whole has a member on a node that does not exist.

    Source: pkg/scheduler/framework/preemption/types.go, getCrossNodesVictims (1.37).
    """
    pods = {pod.uid: pod for pod in snapshot.pods_on(node_name).values()}
    pods.update(_list_members_of_disrupted_groups(pods.values(), snapshot))
    return _group_pods(pods.values(), snapshot, release)


def _list_members_of_disrupted_groups(
    pods: Iterable[AssignedPodInfo], snapshot: Snapshot
) -> dict[str, AssignedPodInfo]:
    """Return all assigned members, by uid, of the groups of *pods* that are evicted as a whole.

    Raises:
        MissingNodeError: a member is assigned to a node that does not exist.

    Source: pkg/scheduler/framework/preemption/types.go, newDomainVictim (1.37).
    """
    keys = dict.fromkeys(key for pod in pods if (key := _find_disrupted_group(pod.pod, snapshot)) is not None)
    members: dict[str, AssignedPodInfo] = {}
    for key in keys:
        for group_key in list_pod_group_keys(snapshot, key):
            members.update(snapshot.pod_group(group_key.object_key).assigned)
    for member in members.values():
        if snapshot.row(member.node_name) is None:
            raise MissingNodeError(member.node_name)
    return members


def _group_pods(pods: Iterable[AssignedPodInfo], snapshot: Snapshot, release: Release) -> list[PreemptionUnit]:
    units_by_key: dict[str, PreemptionUnit] = {}
    for pod in pods:
        group_key = _find_disrupted_group(pod.pod, snapshot)
        has_group_priority = group_key is not None or release.has_group_victims
        unit = PreemptionUnit(
            get_victim_priority(pod, snapshot) if has_group_priority else pod.priority,
            is_composite=group_key is not None and group_key.is_composite,
        )
        units_by_key.setdefault(pod.uid if group_key is None else str(group_key), unit).pods.append(pod)
    return list(units_by_key.values())


def _list_groups(pod: Pod, snapshot: Snapshot) -> list[tuple[GroupKey, Group]]:
    """Return the existing groups from the group of *pod* to the root, as far as kube-scheduler follows them.

    Source: pkg/scheduler/framework/preemption/util.go, TraverseHierarchyUp (1.37).
    """
    key = get_pod_group_key(pod)
    return [] if key is None else list(islice(iterate_ancestors(snapshot, make_group_key(key)), MAX_DEPTH))


def _find_disrupted_group(pod: Pod, snapshot: Snapshot) -> GroupKey | None:
    """Return the highest group above *pod* that is evicted as a whole; None if there is none.

    Source: pkg/scheduler/framework/preemption/types.go, getHighestAllAncestor (1.37).
    """
    keys = [key for key, group in _list_groups(pod, snapshot) if group.spec.is_disrupted_as_a_whole]
    return keys[-1] if keys else None
