"""Whether a pod may evict others. Source: E004 to E006."""

from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.feasible import Feasibility
from extender.framework.verdict import Code

_NEVER = "not eligible due to preemptionPolicy=Never."
_ON_ITS_WAY = "not eligible due to a terminating pod on the nominated node."


def may_be_evicted(other: PlacedPod, pod: PodQuery) -> bool:
    """Whether *other* may go for the sake of *pod*. Source: E014."""
    return other.priority < pod.priority


def objection(pod: PodQuery, cluster: Snapshot, feasibility: Feasibility) -> str:
    """Why *pod* may not evict others now; empty if it may.

    Args:
        pod: fits nowhere.
        cluster: as it is.
        feasibility: what was refused.
    """
    if pod.spec.preemption_policy == "Never":
        return _NEVER
    nominated = pod.pod.status.nominated_node_name
    if not nominated or feasibility.code(cluster.row(nominated)) is Code.UNRESOLVABLE:
        return ""
    if cluster.row(nominated) is None:
        return ""
    there = cluster.pods_on(nominated).values()
    return _ON_ITS_WAY if any(may_be_evicted(other, pod) and _is_being_preempted(other) for other in there) else ""


def _is_being_preempted(pod: PlacedPod) -> bool:
    """Whether *pod* is being deleted because a scheduler evicted it."""
    if pod.pod.metadata.deletion_timestamp is None:
        return False
    for condition in pod.pod.status.conditions:
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False
