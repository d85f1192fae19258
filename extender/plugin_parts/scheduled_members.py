"""The scheduled pods of a pod group, or of all pod groups below a composite pod group.

Source: pkg/scheduler/framework/plugins/helper/podgroup.go, GetPodGroupStates (1.37).
"""

from extender.cache.group_hierarchy import MAX_DEPTH
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.framework.pod_group_points import PodGroupInfo
from extender.framework.status import Status, error_status


def list_scheduled_members(
    pod_group: PodGroupInfo, snapshot: Snapshot, depth: int = 0
) -> list[AssignedPodInfo] | Status:
    """Return the scheduled pods of *pod_group*, or an error if the tree is too deep.

    *depth* is the number of groups above *pod_group* in the tree.
    """
    if depth >= MAX_DEPTH:
        return error_status(f"exceeded maximum hierarchy depth at {pod_group.group_key}")
    if not pod_group.is_composite:
        return list(snapshot.pod_group(pod_group.key).assigned.values())
    pods: list[AssignedPodInfo] = []
    for child in pod_group.children:
        child_pods = list_scheduled_members(child, snapshot, depth + 1)
        if isinstance(child_pods, Status):
            return child_pods
        pods += child_pods
    return pods
