"""The remaining disruptions of all PodDisruptionBudgets during a scenario.

Source: pkg/registry/core/pod/storage/eviction.go, EvictionREST.Create, EvictionREST.checkAndDecrement;
pkg/controller/disruption/disruption.go, DisruptionController.getExpectedPodCount (1.36).
"""

from dataclasses import replace

from extender.api.kinds.disruption import PodDisruptionBudget, PodDisruptionBudgetStatus
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.pod_signature import PodSignature
from extender.cache.snapshot import Snapshot
from extender.preemption.disruption_budgets import Budget, Budgets, compile_budget


class ClusterBudgets:
    """The budgets of a cluster with their names. All scenarios share them, and count in `RemainingDisruptions`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.names: list[str] = []
        budgets: list[Budget] = []
        for key, budget in snapshot.objects(PodDisruptionBudget).items():
            entry = compile_budget(budget)
            if entry is None:
                continue
            if budget.status == PodDisruptionBudgetStatus():
                entry = replace(entry, disruptions_allowed=_calculate_allowed_disruptions(budget, entry, snapshot))
            self.names.append(key)
            budgets.append(entry)
        self.budgets = Budgets(budgets)


def _calculate_allowed_disruptions(budget: PodDisruptionBudget, entry: Budget, snapshot: Snapshot) -> int:
    """Return the allowed disruptions of a budget without a status, as if all its assigned pods were healthy."""
    count = sum(map(entry.matches, snapshot.assigned_pods()))
    if budget.spec.max_unavailable is not None:
        return max(0, min(count, _scale_to_count(budget.spec.max_unavailable, count)))
    minimum = _scale_to_count(budget.spec.min_available, count) if budget.spec.min_available is not None else 0
    return max(0, count - minimum)


def _scale_to_count(value: int | str, count: int) -> int:
    """Return a number, or a percentage of *count* that is rounded up."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    return -(-int(digits) * count // 100) if digits.isdigit() else 0


class RemainingDisruptions:
    """The remaining disruptions during one scenario."""

    def __init__(self, cluster: ClusterBudgets) -> None:
        self._cluster = cluster
        self._remaining: list[int] = cluster.budgets.disruptions_allowed.tolist()

    def find_blocking_budgets(self, pod: AssignedPodInfo) -> list[str]:
        """Return the names of the budgets that block the eviction of *pod* by the eviction API.

        A pod that several budgets match is never evicted.
        """
        names, matching = self._cluster.names, self._cluster.budgets.find_matching_budgets(pod.signature)
        if len(matching) > 1:
            return [names[index] for index in matching]
        return [names[index] for index in self._find_counted_budgets(pod) if self._remaining[index] <= 0]

    def count_disruption(self, pod: AssignedPodInfo) -> list[str]:
        """Count a pod that leaves its node against its budgets. Return the names of the violated budgets."""
        violated_budgets: list[str] = []
        for index in self._find_counted_budgets(pod):
            self._remaining[index] -= 1
            if self._remaining[index] < 0:
                violated_budgets.append(self._cluster.names[index])
        return violated_budgets

    def list_budgets(self, pod: AssignedPodInfo) -> list[str]:
        """Return the names of the budgets that count the eviction of *pod*."""
        return [self._cluster.names[index] for index in self._find_counted_budgets(pod)]

    def count_replacement(self, signature: PodSignature) -> None:
        """Count a replacement that is placed, so that another pod may be disrupted."""
        for index in self._cluster.budgets.find_matching_budgets(signature):
            self._remaining[index] += 1

    def save(self) -> list[int]:
        """Return the remaining disruptions, for `restore`."""
        return list(self._remaining)

    def restore(self, remaining: list[int]) -> None:
        """Set the remaining disruptions to a result of `save`."""
        self._remaining = list(remaining)

    def _find_counted_budgets(self, pod: AssignedPodInfo) -> list[int]:
        name, budgets = pod.pod.metadata.name, self._cluster.budgets
        return [
            index
            for index in budgets.find_matching_budgets(pod.signature)
            if name not in budgets.budgets[index].disrupted_pods
        ]
