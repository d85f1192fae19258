"""Check whether a pod may preempt others.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
DefaultPreemption.PodEligibleToPreemptOthers, podTerminatingByPreemption (1.36).
"""

from extender.api.kinds.meta import find_condition
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.diagnosis import Diagnosis
from extender.framework.status import Code
from extender.preemption.preemption_units import get_victim_priority

PREEMPTION_POLICY_NEVER = "not eligible due to preemptionPolicy=Never."
_TERMINATING_VICTIM = "not eligible due to a terminating pod on the nominated node."


def get_ineligibility_reason(
    pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis, *, has_group_victims: bool = False
) -> str:
    """Return the reason why *pod* may not preempt others now; empty if it may.

    *diagnosis* is that of the failed attempt. With *has_group_victims*, a victim has the priority of its pod group.
    """
    if pod.spec.preemption_policy == "Never":
        return PREEMPTION_POLICY_NEVER
    nominated_node_name = pod.pod.status.nominated_node_name
    row = snapshot.row(nominated_node_name)
    if row is None or diagnosis.get_rejection_code(row) is Code.UNRESOLVABLE:
        return ""
    for victim in filter(is_being_preempted, snapshot.pods_on(nominated_node_name).values()):
        priority = get_victim_priority(victim, snapshot) if has_group_victims else victim.priority
        if priority < pod.priority:
            return _TERMINATING_VICTIM
    return ""


def is_being_preempted(pod: AssignedPodInfo) -> bool:
    """Return whether *pod* is terminating because a scheduler preempted it."""
    if pod.pod.metadata.deletion_timestamp is None:
        return False
    condition = find_condition(pod.pod.status.conditions, "DisruptionTarget")
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"
