"""Count matching pods by topology domain and by node.

Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector (1.36).
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.node_table import ABSENT
from extender.plugins.pod_topology_spread.constraints import SpreadConstraint
from extender.plugins.pod_topology_spread.eligible_nodes import EligibleNodes

ScalarT = TypeVar("ScalarT", bound=np.generic)


def count_pods_by_domain(snapshot: Snapshot, constraint: SpreadConstraint, eligible_nodes: EligibleNodes) -> IntArray:
    """Return the numbers of matching pods on eligible nodes by domain."""
    if constraint.pod_matcher is None:
        return np.zeros(len(snapshot.symbols.get_label_values(constraint.topology_key)) + 1, dtype=np.int64)
    return eligible_nodes.sum_by_domain(snapshot, constraint.topology_key, snapshot.pod_counts(constraint.pod_matcher))


def count_pods_by_row(snapshot: Snapshot, constraint: SpreadConstraint) -> IntArray:
    """Return the number of matching pods on each node, eligible or not."""
    if constraint.pod_matcher is None:
        return np.zeros(len(snapshot), dtype=np.int64)
    return snapshot.counts_by_row(snapshot.pod_counts(constraint.pod_matcher))


def add_pods_on_unlabelled_nodes(
    snapshot: Snapshot, constraint: SpreadConstraint, eligible_nodes: EligibleNodes, totals: IntArray
) -> IntArray:
    """Return *totals* with the matching pods on eligible nodes without the label.

    They are added to the domain of the empty label value. If that value does not exist, *totals* is unchanged.
    """
    key = constraint.topology_key
    empty_value_id = snapshot.symbols.get_label_values(key).get("")
    if empty_value_id is None or constraint.pod_matcher is None:
        return totals
    is_unlabelled = eligible_nodes.mask & (snapshot.view().label_value_ids(key) == ABSENT)
    extended_totals = totals.copy()
    extended_totals[empty_value_id] += count_pods_by_row(snapshot, constraint)[is_unlabelled].sum()
    return extended_totals


def pad_to_label_values(values: NDArray[ScalarT], nodes: NodeView, key: str, fill_value: Any) -> NDArray[ScalarT]:
    """Return *values* with one entry for each value of label *key*, and a last entry of 0 for ABSENT.

    Args:
        values: one entry for each label value that existed when *values* was computed. Further entries are cut off.
        nodes: the view with the symbol table.
        key: the label key.
        fill_value: the entry for label values that were added later.
    """
    size = len(nodes.snapshot.symbols.get_label_values(key))
    padded_values = np.full(size + 1, fill_value, dtype=values.dtype)
    copied_size = min(size, len(values))
    padded_values[:copied_size] = values[:copied_size]
    padded_values[ABSENT] = 0
    return padded_values
