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
from extender.cache.tables.arrays import BoolArray, IntArray
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
