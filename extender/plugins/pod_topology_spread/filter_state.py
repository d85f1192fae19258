"""The PreFilter state of PodTopologySpread, and its updates when a dry run adds or removes pods.

A dry run either updates the state pod by pod, or updates one state for many nodes, each with its own changes.

Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector;
pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, preFilterState.minMatchNum (1.36).
"""

from dataclasses import dataclass

import numpy as np

from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, widen
from extender.cache.tables.node_table import ABSENT
from extender.plugins.pod_topology_spread.constraints import SpreadConstraint
from extender.plugins.pod_topology_spread.eligible_nodes import EligibleNodes, pad_to_label_values

_NO_DOMAIN_MATCH_NUM = 2**31 - 1
"""The minimum if there are no domains."""

_CriticalPath = tuple[int | None, int]
"""The id of a domain's label value (None without a domain), and the domain's number of matching pods."""


class DomainMatchNums:
    """The numbers of matching pods in the domains of one constraint.

    As upstream, updates track the minimum by two critical paths only. The minimum is correct after changes in one
    domain. After changes in several domains it may be wrong, in the same way as upstream.

    In a dry run of many nodes, each node has its own change in its own domain.

    Attributes:
        match_nums: matching pods by the id of the label value, int64. May be shared with the cache: read only.
        domain_count: the number of domains.
        deltas_by_row: the change of matching pods on the node in each row: int64; None if no node has its own change.
    """

    __slots__ = (
        "_critical_paths",
        "_min_match_num",
        "_owns_match_nums",
        "_value_ids",
        "deltas_by_row",
        "domain_count",
        "match_nums",
    )

    def __init__(self, match_nums: IntArray, value_ids: IntArray) -> None:
        """Start with *match_nums*; `update` copies them before it writes.

        *match_nums* has the matching pods by the id of the label value. *value_ids* are the ids that are domains,
        ascending.
        """
        self.match_nums = match_nums
        self.domain_count = len(value_ids)
        self.deltas_by_row: IntArray | None = None
        self._value_ids = value_ids
        self._owns_match_nums = False
        self._critical_paths: tuple[_CriticalPath, _CriticalPath] | None = None
        self._min_match_num: int | None = None

    @property
    def min_match_num(self) -> int:
        """The lowest number of matching pods of any domain; 2147483647 without domains."""
        if self._critical_paths is not None:
            return self._critical_paths[0][1]
        if self._min_match_num is None:
            self._min_match_num = (
                int(self._get_domain_match_nums().min()) if self.domain_count else _NO_DOMAIN_MATCH_NUM
            )
        return self._min_match_num

    def _get_domain_match_nums(self) -> IntArray:
        is_dense = self.domain_count == int(self._value_ids[-1]) + 1
        return self.match_nums[: self.domain_count] if is_dense else self.match_nums[self._value_ids]

    def clone(self) -> "DomainMatchNums":
        """Return a copy that can be updated independently."""
        clone = DomainMatchNums(self.match_nums, self._value_ids)
        clone._critical_paths, clone._min_match_num = self._critical_paths, self._min_match_num
        clone.deltas_by_row = self.deltas_by_row
        self._owns_match_nums = False  # both objects now share the array and copy it before writing
        return clone

    def update(self, value_id: int, delta: int) -> None:
        """Add *delta* to the number of matching pods in domain *value_id*."""
        critical_paths = self._critical_paths or self._find_critical_paths()
        if not self._owns_match_nums:
            self.match_nums = widen(self.match_nums.copy(), value_id + 1)
            self._owns_match_nums = True
        self.match_nums[value_id] += delta
        self._critical_paths = _update_critical_paths(critical_paths, value_id, int(self.match_nums[value_id]))

    def compute_min_match_nums_after_changes(
        self, value_ids: IntArray, match_nums: IntArray, deltas: IntArray
    ) -> IntArray:
        """Return the minimum after each of several alternative changes, each in one domain: int64.

        *value_ids* are the changed domains, and *match_nums* their numbers of matching pods after the change. Where
        *deltas*, the change of this number, is 0, the other two arguments are ignored.
        """
        (first, min_match_num), (_, second_min) = self._critical_paths or self._find_critical_paths()
        min_of_other_domains = np.where(value_ids == (ABSENT if first is None else first), second_min, min_match_num)
        min_match_nums: IntArray = np.where(deltas == 0, min_match_num, np.minimum(min_of_other_domains, match_nums))
        return min_match_nums

    def _find_critical_paths(self) -> tuple[_CriticalPath, _CriticalPath]:
        critical_paths: list[_CriticalPath] = [(None, _NO_DOMAIN_MATCH_NUM), (None, _NO_DOMAIN_MATCH_NUM)]
        if self.domain_count:
            remaining = self._get_domain_match_nums().copy()
            for index in range(min(2, self.domain_count)):
                position = int(remaining.argmin())
                critical_paths[index] = (int(self._value_ids[position]), int(remaining[position]))
                remaining[position] = np.iinfo(np.int64).max
        return critical_paths[0], critical_paths[1]


def _update_critical_paths(
    critical_paths: tuple[_CriticalPath, _CriticalPath], value_id: int, match_num: int
) -> tuple[_CriticalPath, _CriticalPath]:
    first, second = critical_paths
    if value_id in {first[0], second[0]}:
        if value_id == first[0]:
            first = (value_id, match_num)
        else:
            second = (value_id, match_num)
        return (second, first) if first[1] > second[1] else (first, second)
    if match_num < first[1]:
        return (value_id, match_num), first
    if match_num < second[1]:
        return first, (value_id, match_num)
    return critical_paths


@dataclass(slots=True)
class PreFilterState:
    """The `DoNotSchedule` constraints, and the eligible nodes and numbers of matching pods of each constraint."""

    constraints: tuple[SpreadConstraint, ...]
    eligible_nodes: tuple[EligibleNodes, ...]
    domain_match_nums: tuple[DomainMatchNums, ...]


def update_with_pod(
    pod: PodInfo, assigned_pod: AssignedPodInfo, row: int, snapshot: Snapshot, state: PreFilterState, *, multiplier: int
) -> None:
    """Add *multiplier* to the counts of the domains of *assigned_pod*; *row* is the row of its node."""
    if assigned_pod.namespace != pod.namespace:
        return
    nodes = snapshot.view()
    for constraint, eligible_nodes, match_nums in zip(
        state.constraints, state.eligible_nodes, state.domain_match_nums, strict=True
    ):
        if eligible_nodes.mask[row] and constraint.selector.matches(assigned_pod.labels):
            match_nums.update(int(nodes.label_value_ids(constraint.topology_key)[row]), multiplier)


def compute_batch_match_nums(
    namespace: str, constraint: SpreadConstraint, eligible_nodes: EligibleNodes, batch: PodBatch
) -> IntArray:
    """Return 1 for each pod of *batch* that matches *constraint* on an eligible node, else 0.

    Terminating pods count too. The result is int64, shape (len(batch),).
    """
    matches = batch.map_signatures(
        lambda signature: int(signature.namespace == namespace and constraint.selector.matches(signature.labels))
    )
    return matches * eligible_nodes.mask[batch.rows]


def exceeds_max_skew(nodes: NodeView, constraint: SpreadConstraint, domain_match_nums: DomainMatchNums) -> BoolArray:
    """Return the nodes whose domain would exceed the maximum skew with the pod; nodes without the label are False."""
    key, match_nums = constraint.topology_key, domain_match_nums.match_nums
    value_ids, max_skew = nodes.label_value_ids(key), constraint.max_skew - constraint.self_match_num
    has_min_domains = domain_match_nums.domain_count >= constraint.min_domains
    if domain_match_nums.deltas_by_row is None:
        limit = max_skew + (domain_match_nums.min_match_num if has_min_domains else 0)
        return pad_to_label_values(match_nums > limit, nodes, key, limit < 0)[value_ids]
    deltas = nodes.take(domain_match_nums.deltas_by_row)
    node_match_nums = pad_to_label_values(match_nums, nodes, key, 0)[value_ids] + deltas
    limits: IntArray = np.full(len(nodes), max_skew, dtype=np.int64)
    if has_min_domains:
        limits += domain_match_nums.compute_min_match_nums_after_changes(value_ids, node_match_nums, deltas)
    exceeds_skew: BoolArray = (node_match_nums > limits) & (value_ids != ABSENT)
    return exceeds_skew
