"""Which pods must go, anywhere in the cluster, so that a pod group can be scheduled. Source: E051 to E053."""

from collections.abc import Generator, Sequence

from extender.cluster.hypothesis import Hypothesis
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.framework.verdict import Status, unresolvable, unschedulable
from extender.objects.groups import PodGroup
from extender.preemption.budgets import budgets_of, first_violations
from extender.preemption.plan import GroupPreemptionPlan
from extender.preemption.units import Unit, priority_of, units

_NEVER = unschedulable("not eligible due to preemptionPolicy=Never.")
_NO_VICTIMS = unresolvable("No preemption victims found for incoming preemptor")


def room_for(
    group: PodGroup, pods: Sequence[PodQuery], cluster: Snapshot
) -> Generator[Snapshot, Status, GroupPreemptionPlan | Status]:
    """The plan, or why there is none; gives clusters that might be, and is told what the group comes to on each.

    All units of lower priority are imagined gone; then as many as possible are brought back, one at a time, the most
    important first, those before all others whose eviction would break a disruption budget.

    Args:
        group: makes room.
        pods: its members that wait.
        cluster: as it is.
    """
    if any(pod.spec.preemption_policy == "Never" for pod in pods):
        return _NEVER
    priority = priority_of(group)
    evicted = sorted((unit for unit in units(cluster) if unit.priority < priority), key=lambda unit: unit.importance)
    if not evicted:
        return _NO_VICTIMS
    imagined = Hypothesis(cluster)
    for unit in evicted:
        _remove(imagined, unit)
    status = yield imagined.snapshot()
    if not status.ok:
        return status
    protected = first_violations(budgets_of(cluster), [unit.pods for unit in evicted])
    gone: set[int] = set()
    for at in sorted(range(len(evicted)), key=lambda at: not protected[at]):
        for pod in evicted[at].pods:
            imagined.restore(pod)
        status = yield imagined.snapshot()
        if not status.ok:
            _remove(imagined, evicted[at])
            gone.add(at)
    return GroupPreemptionPlan(tuple(pod for at, unit in enumerate(evicted) if at in gone for pod in unit.pods))


def _remove(imagined: Hypothesis, unit: Unit) -> None:
    for pod in unit.pods:
        imagined.remove(pod)
