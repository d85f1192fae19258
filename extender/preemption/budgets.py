"""Disruption budgets: which pods they protect from being evicted together. Source: E020."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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


class Budgets:
    """The budgets of a cluster, found by the pods they protect.

    Attributes:
        all: the budgets.
        allowed: `Budget.allowed` of each, int64.
    """

    __slots__ = ("_of_shape", "_places", "all", "allowed")

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self.all = tuple(budgets)
        self.allowed: IntArray = np.array([budget.allowed for budget in self.all], dtype=np.int64)
        self._places: dict[_Place, list[int]] = {}
        for number, budget in enumerate(self.all):
            for place in _places(budget):
                self._places.setdefault(place, []).append(number)
        self._of_shape: dict[Shape, tuple[int, ...]] = {}

    def protecting(self, shape: Shape) -> tuple[int, ...]:
        """The numbers of the budgets that mean pods of *shape*, ascending; pods without labels are never meant."""
        known = self._of_shape.get(shape)
        if known is None:
            known = self._of_shape[shape] = tuple(self._find(shape)) if shape.labels else ()
        return known

    def _find(self, shape: Shape) -> Iterator[int]:
        places: list[_Place] = [(shape.namespace, None), *((shape.namespace, label) for label in shape.labels.items())]
        for number in sorted(number for place in places for number in self._places.get(place, ())):
            if self.all[number].selector.matches(shape.labels):
                yield number


_Place: TypeAlias = tuple[str, tuple[str, str] | None]
"""A namespace, and a label with its value that every pod has that is meant; None: no label is sure to be there."""


def _places(budget: Budget) -> Iterator[_Place]:
    """Where *budget* is found; a pod is in one of the places at most."""
    for rule in budget.selector.requirements:
        if rule.operator == "In":
            return ((budget.namespace, (rule.key, value)) for value in rule.values)
    return iter([(budget.namespace, None)])


def budgets_of(cluster: Snapshot) -> Budgets:
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
    return Budgets(found)


def first_violations(budgets: Budgets, units: Sequence[Sequence[PlacedPod]]) -> list[bool]:
    """Which *units* break a budget if they are evicted in this order, each as a whole.

    What a unit breaks first ends its count: the rest of it spends nothing. Source: E052.
    """
    left = budgets.allowed.tolist()

    def breaks(pod: PlacedPod) -> bool:
        for number in budgets.protecting(pod.shape):
            if pod.pod.metadata.name not in budgets.all[number].disrupted:
                left[number] -= 1
                if left[number] < 0:
                    return True
        return False

    return [any(map(breaks, unit)) for unit in units]


def violating(budgets: Budgets, batch: PodBatch, nodes: IntArray) -> BoolArray:
    """Which pods' eviction breaks a budget if, node by node, they are evicted in this order: bool, shape (len(batch),).

    Args:
        budgets: each is spent anew on every node.
        batch: pods, those of one node side by side.
        nodes: a number for each pod's node, ascending.
    """
    broken = np.zeros(len(batch), dtype=np.bool_)
    pods, spent = _spending(budgets, batch)
    purses = nodes[pods] * len(budgets.all) + spent  # one a node and budget
    order = np.argsort(purses, kind="stable")
    pods, spent, purses = pods[order], spent[order], purses[order]
    before = np.arange(len(purses)) - np.searchsorted(purses, purses)  # pods that took from the purse already
    broken[pods[before >= budgets.allowed[spent]]] = True
    return broken


def _spending(budgets: Budgets, batch: PodBatch) -> tuple[IntArray, IntArray]:
    """The pods of *batch* with each budget they spend: indices of pods, ascending, and of budgets, int64."""
    protecting = [budgets.protecting(shape) for shape in batch.shapes]
    of_shape: IntArray = np.array([len(numbers) for numbers in protecting], dtype=np.int64)
    numbers: IntArray = np.array([number for numbers in protecting for number in numbers], dtype=np.int64)
    counts = of_shape[batch.shape_of]
    pods: IntArray = np.repeat(np.arange(len(batch)), counts)
    nth = np.arange(len(pods)) - np.repeat(np.cumsum(counts) - counts, counts)
    spent = numbers[(np.cumsum(of_shape) - of_shape)[batch.shape_of[pods]] + nth]
    stays = np.ones(len(pods), dtype=np.bool_)
    for number in [number for number, budget in enumerate(budgets.all) if budget.disrupted]:
        disrupted = budgets.all[number].disrupted
        for at in np.flatnonzero(spent == number).tolist():
            stays[at] = batch.pods[pods[at]].pod.metadata.name not in disrupted
    return pods[stays], spent[stays]
