"""Preemption units: the pods that are evicted together for a pod group.

Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption;
pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
"""

from dataclasses import dataclass, field

from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.preemption.pod_importance import get_start_time

_DISRUPT_POD_GROUP = "PodGroup"


@dataclass(slots=True)
class PreemptionUnit:
    """A single pod, or all pods of a group that is evicted as a whole.

    Attributes:
        priority: the priority of the pod or of the group.
        pods: the pods in the order of their nodes.
    """

    priority: int
    pods: list[AssignedPodInfo] = field(default_factory=list)

    @property
    def importance_key(self) -> tuple[float, ...]:
        """The sort key: the most important unit is first.

        Group members are more important than other pods of the same priority, even if the group is not evicted as a
        whole. As in kube-scheduler, only the first pod's start time is used.
        """
        in_group = self.pods[0].pod.spec.scheduling_group is not None
        return (-self.priority, not in_group, -len(self.pods) if in_group else 0, get_start_time(self.pods[0]))


def get_group_priority(group: PodGroup) -> int:
    """Return the priority of *group*; 0 if it has none."""
    return group.spec.priority or 0


def list_units(snapshot: Snapshot) -> list[PreemptionUnit]:
    """Return the preemption units of all assigned pods."""
    units_by_key: dict[str, PreemptionUnit] = {}
    for node_name in snapshot.names:
        for pod in snapshot.pods_on(node_name).values():
            group = _find_disruption_group(pod.pod, snapshot)
            key, priority = (
                (pod.uid, pod.priority) if group is None else (group.metadata.uid, get_group_priority(group))
            )
            units_by_key.setdefault(key, PreemptionUnit(priority)).pods.append(pod)
    return list(units_by_key.values())


def _find_disruption_group(pod: Pod, snapshot: Snapshot) -> PodGroup | None:
    """Return the group with which *pod* is evicted; None if it is evicted alone."""
    key = get_pod_group_key(pod)
    group = None if key is None else snapshot.get_object(PodGroup, key)
    return group if group is not None and group.spec.disruption_mode == _DISRUPT_POD_GROUP else None
