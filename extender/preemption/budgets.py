"""Disruption budgets: which pods they protect from being evicted together. Source: E020."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.pods import PlacedPod
from extender.cluster.shape import Shape
from extender.cluster.snapshot import Snapshot
from extender.objects.matching import Selector, from_label_selector
from extender.objects.policy import PodDisruptionBudget


@dataclass(frozen=True, slots=True)
class Budget:
    """How many pods of one kind may be evicted now.

    Attributes:
        namespace, selector: of the pods.
        allowed: how many.
        disrupted: names of pods that are on their way out and count no more.
    """

    namespace: str
    selector: Selector
    allowed: int
    disrupted: Mapping[str, object]

    def protects(self, shape: Shape) -> bool:
        """Whether pods of *shape* are meant; pods without labels never are."""
        return bool(shape.labels) and shape.namespace == self.namespace and self.selector.matches(shape.labels)


def budgets_of(cluster: Snapshot) -> tuple[Budget, ...]:
    """The budgets of *cluster*. Selectors that are empty, absent or cannot be read protect nothing."""
    found: list[Budget] = []
    for each in cluster.objects(PodDisruptionBudget).values():
        try:
            selector = from_label_selector(each.spec.selector)
        except ValueError:
            continue
        if not selector.is_empty:
            status = each.status
            found.append(Budget(each.metadata.namespace, selector, status.disruptions_allowed, status.disrupted_pods))
    return tuple(found)


def first_violations(budgets: Sequence[Budget], units: Sequence[Sequence[PlacedPod]]) -> list[bool]:
    """Which *units* break a budget if they are evicted in this order, each as a whole.

    What a unit breaks first ends its count: the rest of it spends nothing. Source: E052.
    """
    left = [budget.allowed for budget in budgets]

    def breaks(pod: PlacedPod) -> bool:
        for at, budget in enumerate(budgets):
            if budget.protects(pod.shape) and pod.pod.metadata.name not in budget.disrupted:
                left[at] -= 1
                if left[at] < 0:
                    return True
        return False

    return [any(map(breaks, unit)) for unit in units]


def violating(budgets: tuple[Budget, ...], batch: PodBatch, nodes: IntArray) -> BoolArray:
    """Which pods' eviction breaks a budget if, node by node, they are evicted in this order: bool, shape (len(nodes),).

    Args:
        budgets: each is spent anew on every node.
        batch: pods, those of one node side by side. Only the first `len(nodes)` count.
        nodes: a number for each pod's node, ascending.
    """
    size = len(nodes)
    broken = np.zeros(size, dtype=np.bool_)
    if not size or not budgets:
        return broken
    first = np.searchsorted(nodes, nodes)  # where each pod's node begins
    shape_of = batch.shape_of[:size]
    for budget in budgets:
        kinds = np.fromiter(map(budget.protects, batch.shapes), dtype=np.bool_, count=len(batch.shapes))
        if not kinds.any():
            continue
        meant = kinds[shape_of]
        if budget.disrupted:
            for index in np.flatnonzero(meant).tolist():
                meant[index] = batch.pods[index].pod.metadata.name not in budget.disrupted
        spent = np.cumsum(meant)
        before: IntArray = (spent - meant)[first]
        broken |= meant & (spent - before > budget.allowed)
    return broken
