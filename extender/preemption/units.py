"""What is evicted as a whole when a pod group makes room: single pods, and groups that are disrupted together.

Source: E051, E053.
"""

from dataclasses import dataclass, field

from extender.cluster.groups import group_key
from extender.cluster.pods import PlacedPod
from extender.cluster.snapshot import Snapshot
from extender.objects.groups import PodGroup
from extender.objects.pod import Pod
from extender.preemption.importance import started

_AS_A_WHOLE = "PodGroup"


@dataclass(slots=True)
class Unit:
    """Pods that are evicted together, on any number of nodes.

    Attributes:
        priority: of the pod, or of the group.
        pods: in the order of the nodes.
    """

    priority: int
    pods: list[PlacedPod] = field(default_factory=list)

    @property
    def importance(self) -> tuple[float, ...]:
        """Sorts the most important first.

        Any member of a group stands above pods of the same priority, also where its group is not disrupted as a whole.
        As in kube-scheduler the first pod of a unit says when it started.
        """
        in_group = self.pods[0].pod.spec.scheduling_group is not None
        return (-self.priority, not in_group, -len(self.pods) if in_group else 0, started(self.pods[0]))


def priority_of(group: PodGroup) -> int:
    """The priority of *group*; 0 if it has none."""
    return group.spec.priority or 0


def units(cluster: Snapshot) -> list[Unit]:
    """All pods on nodes, in units."""
    found: dict[str, Unit] = {}
    for name in cluster.names:
        for pod in cluster.pods_on(name).values():
            group = _disrupted_with(pod.pod, cluster)
            key, priority = (pod.uid, pod.priority) if group is None else (group.metadata.uid, priority_of(group))
            found.setdefault(key, Unit(priority)).pods.append(pod)
    return list(found.values())


def _disrupted_with(pod: Pod, cluster: Snapshot) -> PodGroup | None:
    """The group that *pod* is evicted with; None if it may go alone."""
    key = group_key(pod)
    group = None if key is None else cluster.find(PodGroup, key)
    return group if group is not None and group.spec.disruption_mode == _AS_A_WHOLE else None
