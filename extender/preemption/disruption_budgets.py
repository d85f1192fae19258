"""Pod disruption budgets, and the evictions that violate them.

In release 1.36 an eviction uses all budgets that match the pod. Since 1.37 it uses them in order up to the first one
that it violates. kube-scheduler's order of budgets is not fixed; here it is the order of namespace and name.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, filterPodsWithPDBViolation (1.36).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from extender.api.kinds.disruption import PodDisruptionBudget
from extender.api.kinds.meta import LabelSelector
from extender.api.matching import NOTHING, Selector, selector_from_label_selector
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.pod_signature import PodSignature
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.config.releases import Release


@dataclass(frozen=True, slots=True)
class Budget:
    """The remaining disruptions of one PodDisruptionBudget.

    Attributes:
        namespace, selector: select the pods.
        disruptions_allowed: the number of pods that may be evicted now.
        disrupted_pods: the names of pods whose eviction is in progress and already counted.
    """

    namespace: str
    selector: Selector
    disruptions_allowed: int
    disrupted_pods: Mapping[str, object]

    def matches(self, pod: AssignedPodInfo) -> bool:
        """Return whether the budget selects *pod*."""
        return self.namespace == pod.namespace and self.selector.matches(pod.labels)


class Budgets:
    """The budgets of a cluster, indexed by the pods that they match.

    Attributes:
        disruptions_allowed: the allowed disruptions of each budget, int64.
        stops_at_violation: whether the eviction of a pod uses no budget after the first one that it violates.
    """

    def __init__(self, budgets: Iterable[Budget], *, stops_at_violation: bool = False) -> None:
        self.budgets = tuple(budgets)
        self.stops_at_violation = stops_at_violation
        allowed_disruptions = [budget.disruptions_allowed for budget in self.budgets]
        self.disruptions_allowed: IntArray = np.array(allowed_disruptions, dtype=np.int64)
        self._indices_by_key: dict[_IndexKey, list[int]] = {}
        for index, budget in enumerate(self.budgets):
            for key in _make_index_keys(budget):
                self._indices_by_key.setdefault(key, []).append(index)
        self._indices_by_signature: dict[PodSignature, tuple[int, ...]] = {}

    def find_matching_budgets(self, signature: PodSignature) -> tuple[int, ...]:
        """Return the indices of the budgets that match *signature*, ascending; empty for pods without labels."""
        indices = self._indices_by_signature.get(signature)
        if indices is None:
            indices = tuple(self._find_indices(signature)) if signature.labels else ()
            self._indices_by_signature[signature] = indices
        return indices

    def _find_indices(self, signature: PodSignature) -> Iterator[int]:
        namespace = signature.namespace
        keys: list[_IndexKey] = [(namespace, None), *((namespace, label) for label in signature.labels.items())]
        for index in sorted(index for key in keys for index in self._indices_by_key.get(key, ())):
            if self.budgets[index].selector.matches(signature.labels):
                yield index


_IndexKey: TypeAlias = tuple[str, tuple[str, str] | None]
"""A namespace, and a label that all matched pods have; None if no label is required."""


def _make_index_keys(budget: Budget) -> Iterator[_IndexKey]:
    """Return the index keys of *budget*. A pod has at most one of them, so a lookup finds the budget at most once."""
    for requirement in budget.selector.requirements:
        if requirement.operator == "In":
            return ((budget.namespace, (requirement.key, value)) for value in requirement.values)
    return iter([(budget.namespace, None)])


_compiled_selectors: dict[str, tuple[LabelSelector | None, Selector | None]] = {}
"""The selectors of the budgets by `namespace/name`, as written and compiled; None if invalid.

A selector may have 20,000 requirements, which take 80 ms to compile, and each preemption reads all budgets.
"""


def _compile_selector(key: str, selector: LabelSelector | None) -> Selector | None:
    written, compiled = _compiled_selectors.get(key, (None, NOTHING))
    if written is not selector and written != selector:  # a new status does not change the selector
        try:
            compiled = selector_from_label_selector(selector)
        except ValueError:
            compiled = None
        _compiled_selectors[key] = selector, compiled
    return compiled


def compile_budget(budget: PodDisruptionBudget) -> Budget | None:
    """Return a budget with its compiled selector; None if the selector is invalid, which Kubernetes ignores."""
    selector = _compile_selector(budget.metadata.key, budget.spec.selector)
    if selector is None:
        return None
    return Budget(budget.metadata.namespace, selector, budget.status.disruptions_allowed, budget.status.disrupted_pods)


def list_budgets(snapshot: Snapshot, release: Release) -> Budgets:
    """Return the budgets of *snapshot* by namespace and name, except those whose selector is empty or invalid."""
    objects = snapshot.objects(PodDisruptionBudget)
    for key in _compiled_selectors.keys() - objects.keys():
        _compiled_selectors.pop(key, None)
    budgets = (compile_budget(obj) for _, obj in sorted(objects.items()))
    return Budgets(
        (budget for budget in budgets if budget is not None and not budget.selector.is_empty),
        stops_at_violation=release.stops_at_violated_budget,
    )


def find_violating_units(budgets: Budgets, units: Sequence[Sequence[AssignedPodInfo]]) -> list[bool]:
    """Return, for each of *units*, whether it violates a budget if the units are evicted in this order.

    After the first violation of a unit, the other pods of the unit use no budget.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
    """
    evict_and_check_violation = _make_violation_check(budgets)
    return [any(map(evict_and_check_violation, unit)) for unit in units]


def count_violations(budgets: Budgets, units: Sequence[Sequence[AssignedPodInfo]]) -> list[int]:
    """Return, for each of *units*, how many of its pods violate a budget if the units are evicted in this order.

    Source: pkg/scheduler/framework/preemption/util.go, FilterVictimsWithPDBViolation (1.37).
    """
    evict_and_check_violation = _make_violation_check(budgets)
    return [sum(map(evict_and_check_violation, unit)) for unit in units]


def _make_violation_check(budgets: Budgets) -> Callable[[AssignedPodInfo], bool]:
    """Return a function that evicts a pod and returns whether this violates a budget.

    A pod uses the budgets that match it, up to the first one that it violates.
    """
    remaining_disruptions = budgets.disruptions_allowed.tolist()

    def evict_and_check_violation(pod: AssignedPodInfo) -> bool:
        for index in budgets.find_matching_budgets(pod.signature):
            if pod.pod.metadata.name not in budgets.budgets[index].disrupted_pods:
                remaining_disruptions[index] -= 1
                if remaining_disruptions[index] < 0:
                    return True
        return False

    return evict_and_check_violation


def find_violating_pods(budgets: Budgets, batch: PodBatch, node_numbers: IntArray) -> BoolArray:
    """Return which pods violate a budget if the pods of each node are evicted in order: bool, shape (len(batch),).

    The disruptions on each node are counted separately. *batch* is grouped by node: *node_numbers* has a number for the
    node of each pod, ascending.
    """
    violating = np.zeros(len(batch), dtype=np.bool_)
    pod_indices, budget_indices = _pair_pods_with_budgets(budgets, batch)
    if budgets.stops_at_violation and (pod_indices[1:] == pod_indices[:-1]).any():
        return _evict_in_order(budgets, len(batch), node_numbers, pod_indices, budget_indices)
    budget_keys = node_numbers[pod_indices] * len(budgets.budgets) + budget_indices  # one per node and budget
    order = np.argsort(budget_keys, kind="stable")
    pod_indices, budget_indices, budget_keys = pod_indices[order], budget_indices[order], budget_keys[order]
    num_disrupted_before = np.arange(len(budget_keys)) - np.searchsorted(budget_keys, budget_keys)
    violating[pod_indices[num_disrupted_before >= budgets.disruptions_allowed[budget_indices]]] = True
    return violating


def _evict_in_order(
    budgets: Budgets, pod_count: int, node_numbers: IntArray, pod_indices: IntArray, budget_indices: IntArray
) -> BoolArray:
    """Return which pods violate a budget if a pod uses no budget after the first one that it violates.

    *node_numbers* has a number for the node of each pod, ascending. *budget_indices* has for each of *pod_indices*,
    which are ascending, a budget that its eviction uses.
    """
    violating = np.zeros(pod_count, dtype=np.bool_)
    remaining_by_node: dict[int, list[int]] = {}
    for pod_index, budget_index in zip(pod_indices.tolist(), budget_indices.tolist(), strict=True):
        if violating[pod_index]:
            continue
        node_number = int(node_numbers[pod_index])
        remaining = remaining_by_node.setdefault(node_number, budgets.disruptions_allowed.tolist())
        remaining[budget_index] -= 1
        violating[pod_index] = remaining[budget_index] < 0
    return violating


def _pair_pods_with_budgets(budgets: Budgets, batch: PodBatch) -> tuple[IntArray, IntArray]:
    """Return pairs of a pod of *batch* and a budget that its eviction uses: the pod and budget indices, int64."""
    indices_by_signature = [budgets.find_matching_budgets(signature) for signature in batch.signatures]
    counts_by_signature: IntArray = np.array([len(indices) for indices in indices_by_signature], dtype=np.int64)
    indices: IntArray = np.array([index for indices in indices_by_signature for index in indices], dtype=np.int64)
    counts = counts_by_signature[batch.signature_index]
    pod_indices: IntArray = np.repeat(np.arange(len(batch)), counts)
    offsets = np.arange(len(pod_indices)) - np.repeat(np.cumsum(counts) - counts, counts)
    first_offsets = np.cumsum(counts_by_signature) - counts_by_signature
    budget_indices = indices[first_offsets[batch.signature_index[pod_indices]] + offsets]
    uses_budget = np.ones(len(pod_indices), dtype=np.bool_)
    for index in [index for index, budget in enumerate(budgets.budgets) if budget.disrupted_pods]:
        disrupted_pods = budgets.budgets[index].disrupted_pods
        for position in np.flatnonzero(budget_indices == index).tolist():
            name = batch.pods[pod_indices[position]].pod.metadata.name
            uses_budget[position] = name not in disrupted_pods
    return pod_indices[uses_budget], budget_indices[uses_budget]
