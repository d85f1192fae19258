"""Evict the victims of a preemption from the cache of a simulation."""

from collections.abc import Iterable

from msgspec.structs import replace

from extender.api.kinds.disruption import PodDisruptionBudget
from extender.cache.cache import Cache
from extender.cache.pod_info import AssignedPodInfo
from extender.preemption.disruption_budgets import compile_budget


def evict_pods(cache: Cache, victims: Iterable[AssignedPodInfo]) -> None:
    """Remove pods from *cache*, and count each of them as a disruption of the budgets that match it."""
    for victim in victims:
        cache.remove_pod(victim.uid)
        with cache.read() as snapshot:
            budgets = snapshot.objects(PodDisruptionBudget).values()
            matching_budgets = [budget for budget in budgets if _matches(budget, victim)]
        for budget in matching_budgets:
            cache.add_or_update_object(count_disruption(budget))


def count_disruption(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    """Return *budget* with one allowed disruption less."""
    disruptions_allowed = max(0, budget.status.disruptions_allowed - 1)
    return replace(budget, status=replace(budget.status, disruptions_allowed=disruptions_allowed))


def _matches(budget: PodDisruptionBudget, pod: AssignedPodInfo) -> bool:
    """Return whether the eviction of *pod* uses the budget. An eviction in progress is counted already.

    Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, filterPodsWithPDBViolation (1.36).
    """
    compiled = compile_budget(budget) if budget.metadata.namespace == pod.namespace else None
    if compiled is None or compiled.selector.is_empty:
        return False
    return compiled.matches(pod) and pod.pod.metadata.name not in compiled.disrupted_pods
