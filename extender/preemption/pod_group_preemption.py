"""Select victims in the whole cluster for a pod group, as release 1.36 does.

Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption;
pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
"""

from collections.abc import Generator, Sequence

from extender.cache.group_hierarchy import Group
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.config.releases import RELEASE_1_36
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.status import Status, unresolvable_status, unschedulable_status
from extender.preemption.disruption_budgets import find_violating_units, list_budgets
from extender.preemption.plan import GroupPreemptionPlan
from extender.preemption.preemption_units import PreemptionUnit, get_group_priority, list_units

_PREEMPTION_POLICY_NEVER = unschedulable_status("not eligible due to preemptionPolicy=Never.")
_NO_VICTIMS = unresolvable_status("No preemption victims found for incoming preemptor")


def preempt_for_pod_group(
    group: Group, pods: Sequence[PodInfo], snapshot: Snapshot
) -> Generator[Snapshot, GroupDecision, GroupPreemptionPlan | Status]:
    """Yield hypothetical snapshots, receive the decision for the group on each, and return the plan or the failure.

    First, all units of lower priority are removed. Then as many units as possible are reprieved, one at a time. Units
    whose eviction violates a disruption budget are tried before the others. In both classes, more important units are
    tried first.

    Args:
        group: the preempting group.
        pods: the pending members of *group*.
        snapshot: the cluster.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return _PREEMPTION_POLICY_NEVER
    priority = get_group_priority(group)
    lower_priority_units = (unit for unit in list_units(snapshot, RELEASE_1_36) if unit.priority < priority)
    potential_victims = sorted(lower_priority_units, key=lambda unit: unit.get_importance_key(RELEASE_1_36))
    if not potential_victims:
        return _NO_VICTIMS
    hypothesis = Hypothesis(snapshot)
    for unit in potential_victims:
        _remove_unit(hypothesis, unit)
    status = (yield hypothesis.snapshot()).status
    if not status.is_success:
        return status
    is_violating = find_violating_units(list_budgets(snapshot, RELEASE_1_36), [unit.pods for unit in potential_victims])
    evicted_indices: set[int] = set()
    for index in sorted(range(len(potential_victims)), key=lambda index: not is_violating[index]):
        for pod in potential_victims[index].pods:
            hypothesis.restore_pod(pod)
        status = (yield hypothesis.snapshot()).status
        if not status.is_success:
            _remove_unit(hypothesis, potential_victims[index])
            evicted_indices.add(index)
    evicted_units = (unit for index, unit in enumerate(potential_victims) if index in evicted_indices)
    return GroupPreemptionPlan(tuple(pod for unit in evicted_units for pod in unit.pods))


def _remove_unit(hypothesis: Hypothesis, unit: PreemptionUnit) -> None:
    for pod in unit.pods:
        # kube-scheduler changes only the nodes: a removed member still counts in its group.
        hypothesis.remove_pod(pod, keep_in_group=True)
