"""The PreFilter state of PodTopologySpread, and its updates when a dry run adds or removes pods.

A dry run either updates the state pod by pod, or checks a batch of nodes in one call, each with its own changes.

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
from extender.plugins.pod_topology_spread.domain_match_nums import DomainMatchNums
from extender.plugins.pod_topology_spread.eligible_nodes import EligibleNodes
from extender.plugins.pod_topology_spread.pod_counts import pad_to_label_values


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
    """Return the nodes whose domain would exceed the maximum skew with the pod."""
    min_match_num = 0 if domain_match_nums.domain_count < constraint.min_domains else domain_match_nums.min_match_num
    limit = constraint.max_skew + min_match_num - constraint.self_match_num
    value_ids = nodes.label_value_ids(constraint.topology_key)
    exceeds_limit = domain_match_nums.match_nums > limit
    return pad_to_label_values(exceeds_limit, nodes, constraint.topology_key, limit < 0)[value_ids]


def exceeds_max_skew_with_deltas(
    nodes: NodeView, constraint: SpreadConstraint, domain_match_nums: DomainMatchNums, deltas: IntArray
) -> BoolArray:
    """Return the nodes whose domain would exceed the maximum skew, each with its own change of matching pods.

    Nodes without the label are False.

    Args:
        nodes: the nodes to check.
        constraint: the constraint.
        domain_match_nums: the constraint's numbers of matching pods without changes.
        deltas: the number of matching pods added on each node, minus those removed from it.
    """
    value_ids = nodes.label_value_ids(constraint.topology_key)
    padded_match_nums = widen(
        domain_match_nums.match_nums, len(nodes.snapshot.symbols.get_label_values(constraint.topology_key))
    )
    match_nums_by_node: IntArray = (
        np.where(value_ids == ABSENT, 0, padded_match_nums[value_ids]) + deltas if len(padded_match_nums) else deltas
    )
    min_match_num = (
        0
        if domain_match_nums.domain_count < constraint.min_domains
        else domain_match_nums.compute_min_match_nums_after_changes(value_ids, match_nums_by_node, deltas)
    )
    exceeds_skew: BoolArray = (match_nums_by_node > constraint.max_skew + min_match_num - constraint.self_match_num) & (
        value_ids != ABSENT
    )
    return exceeds_skew
