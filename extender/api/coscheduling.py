"""Convert the pods and groups of the coscheduling plugin, which uses a label and a kind PodGroup, to pod groups.

Source: pkg/util/podgroup.go, GetPodGroupLabel; pkg/coscheduling/core/core.go, PodGroupManager.Permit
(kubernetes-sigs/scheduler-plugins 0.35).
"""

from typing import Final

from msgspec.structs import replace

from extender.api.kinds.pod import Pod, PodSchedulingGroup
from extender.api.kinds.pod_group import (
    CoschedulingPodGroup,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)

POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""The label of a pod whose value is the name of its pod group."""


def set_scheduling_group(pod: Pod) -> Pod:
    """Return *pod* with the group that its label names in `spec.schedulingGroup`; without the label, no group."""
    name = pod.metadata.labels.get(POD_GROUP_LABEL)
    group = PodSchedulingGroup(pod_group_name=name) if name else None
    return pod if pod.spec.scheduling_group == group else replace(pod, spec=replace(pod.spec, scheduling_group=group))


def make_pod_group(group: CoschedulingPodGroup, priority: int | None) -> PodGroup:
    """Return *group* as a gang whose `minCount` is `spec.minMember`, at least 1.

    *group* has no priority of its own; *priority* is that of its pods, or None.
    """
    gang = GangSchedulingPolicy(min_count=max(1, group.spec.min_member))
    spec = PodGroupSpec(scheduling_policy=PodGroupSchedulingPolicy(gang=gang), priority=priority)
    return PodGroup(metadata=group.metadata, spec=spec)
