"""Preemption units: the pods that are evicted together for a pod group.

Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption;
pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.config.releases import DEFAULT_RELEASE, Release
from extender.preemption.pod_importance import get_start_time


@dataclass(slots=True)
class PreemptionUnit:
    """A single pod, or all pods of a group that is evicted as a whole.

    Attributes:
        priority: the priority of the pod or of the group.
        pods: the pods in the order of their nodes.
        is_group: whether it is a group that is evicted as a whole.
    """

    priority: int
    pods: list[AssignedPodInfo] = field(default_factory=list)
    is_group: bool = False

    def get_importance_key(self, release: Release) -> tuple[float, ...]:
        """Return the sort key, by which the most important unit is first.

        Group members are more important than other pods of the same priority, even if the group is not evicted as a
        whole. The start time of a unit is that of its first pod in 1.36, and that of its oldest pod since 1.37.
        """
        in_group = self.pods[0].pod.spec.scheduling_group is not None
        start_times = map(get_start_time, self.pods if release.has_group_victims else self.pods[:1])
        return (-self.priority, not in_group, -len(self.pods) if in_group else 0, min(start_times))


def get_group_priority(group: PodGroup) -> int:
    """Return the priority of *group*; 0 if it has none."""
    return group.spec.priority or 0


def get_victim_priority(pod: AssignedPodInfo, snapshot: Snapshot) -> int:
    """Return the priority of the group of *pod*; that of the pod if it has no group or the group does not exist.

    Source: pkg/scheduler/framework/preemption/util.go, GetPodPriority (1.37).
    """
    group = _find_group(pod.pod, snapshot)
    return pod.priority if group is None else get_group_priority(group)


def list_units(snapshot: Snapshot, release: Release = DEFAULT_RELEASE) -> list[PreemptionUnit]:
    """Return the preemption units of all assigned pods.

    In 1.36 a pod that is evicted alone has its own priority. Later it has that of its group.
    """
    return _group_pods((pod for name in snapshot.names for pod in snapshot.pods_on(name).values()), snapshot, release)


def list_units_on_node(node_name: str, snapshot: Snapshot, release: Release) -> list[PreemptionUnit]:
    """Return the preemption units with a pod on *node_name*, including their pods on other nodes.

    Source: pkg/scheduler/framework/preemption/types.go, getCrossNodesVictims (1.37).
    """
    pods = {pod.uid: pod for pod in snapshot.pods_on(node_name).values()}
    for pod in list(pods.values()):
        group = _find_group(pod.pod, snapshot)
        if group is not None and group.spec.is_disrupted_as_a_whole:
            members = snapshot.pod_group(get_pod_group_key(pod.pod) or "").assigned
            pods.update({uid: other for uid, other in members.items() if snapshot.row(other.node_name) is not None})
    return _group_pods(pods.values(), snapshot, release)


def _group_pods(pods: Iterable[AssignedPodInfo], snapshot: Snapshot, release: Release) -> list[PreemptionUnit]:
    units_by_key: dict[str, PreemptionUnit] = {}
    for pod in pods:
        group = _find_group(pod.pod, snapshot)
        is_group = group is not None and group.spec.is_disrupted_as_a_whole
        if group is not None and is_group:
            key, priority = group.metadata.uid, get_group_priority(group)
        else:
            key = pod.uid
            priority = get_victim_priority(pod, snapshot) if release.has_group_victims else pod.priority
        units_by_key.setdefault(key, PreemptionUnit(priority, is_group=is_group)).pods.append(pod)
    return list(units_by_key.values())


def _find_group(pod: Pod, snapshot: Snapshot) -> PodGroup | None:
    """Return the group of *pod*; None if it has none or the group does not exist."""
    key = get_pod_group_key(pod)
    return None if key is None else snapshot.get_object(PodGroup, key)
