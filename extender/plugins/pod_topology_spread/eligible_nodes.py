"""The nodes that are eligible for a constraint, their topology domains, and the matching pods on them.

Eligible nodes and domains are cached until a node changes. Usually all nodes with the label are eligible. Then the
snapshot's cached counts by domain are used.

Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go,
topologySpreadConstraint.matchNodeInclusionPolicies, countPodsMatchSelector (1.36).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.cache.node_matching import (
    get_compiled_required_node_affinity,
    match_required_node_affinity,
    match_untolerated_taints,
)
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, widen
from extender.cache.tables.history import HistoryId
from extender.cache.tables.node_counts import NodeCounts
from extender.cache.tables.node_table import ABSENT
from extender.plugins.pod_topology_spread.constraints import SpreadConstraint

_MAX_ENTRIES = 512
"""The maximum number of cached entries for one version of the nodes."""


@dataclass(frozen=True, slots=True)
class TopologyDomains:
    """The domains of one topology key among the eligible nodes.

    Attributes:
        value_ids: the ids of the label values of eligible nodes, ascending, int64.
        rows: the rows of the eligible nodes that have the label, int64.
        row_value_ids: the value id of each row in `rows`.
        covers_all_labelled_nodes: whether all nodes that have the label are eligible.
    """

    value_ids: IntArray
    rows: IntArray
    row_value_ids: IntArray
    covers_all_labelled_nodes: bool


class EligibleNodes:
    """The nodes that are eligible for one constraint of one pod.

    Attributes:
        mask: whether the node of each row is eligible: bool, shape (number of nodes,).
    """

    __slots__ = ("_domains", "mask")

    def __init__(self, mask: BoolArray) -> None:
        self.mask = mask
        self._domains: dict[str, TopologyDomains] = {}

    def get_domains(self, snapshot: Snapshot, key: str) -> TopologyDomains:
        """Return the domains of topology *key* among these nodes."""
        domains = self._domains.get(key)
        if domains is None:
            value_ids = snapshot.view().label_value_ids(key)
            has_label = value_ids != ABSENT
            is_eligible = self.mask & has_label
            rows = np.flatnonzero(is_eligible)
            row_value_ids = value_ids[rows]
            covers_all_nodes = len(rows) == int(np.count_nonzero(has_label))
            domains = TopologyDomains(np.unique(row_value_ids), rows, row_value_ids, covers_all_nodes)
            self._domains[key] = domains
        return domains

    def sum_by_domain(self, snapshot: Snapshot, key: str, counts: NodeCounts) -> IntArray:
        """Return the sums of *counts* over these nodes by domain: int64 by value id of *key*; read only."""
        domains = self.get_domains(snapshot, key)
        if domains.covers_all_labelled_nodes:
            return snapshot.counts_by_domain(counts, key)
        size = max(1, len(snapshot.symbols.get_label_values(key)))
        sums = np.bincount(domains.row_value_ids, weights=snapshot.counts_by_row(counts)[domains.rows], minlength=size)
        return widen(sums.astype(np.int64), size)


class EligibleNodesCache:
    """Computes eligible nodes and caches them until a node changes."""

    def __init__(self, *, comparison_operators: bool = False) -> None:
        """Create an empty cache.

        *comparison_operators* is the gate TaintTolerationComparisonOperators.
        """
        self._comparison_operators = comparison_operators
        self._nodes_version: tuple[HistoryId | None, int] = (None, -1)
        self._cache: dict[Hashable, EligibleNodes] = {}

    def get(
        self, snapshot: Snapshot, pod: PodInfo, keys: tuple[str, ...], constraint: SpreadConstraint
    ) -> EligibleNodes:
        """Return the nodes that have all labels *keys*, match the pod's node affinity and have no untolerated taints.

        Node affinity and taints are checked only if *constraint* honors them.
        """
        nodes_version = (snapshot.position.history_id, snapshot.position.node_log_position)
        if nodes_version != self._nodes_version or len(self._cache) >= _MAX_ENTRIES:
            self._nodes_version, self._cache = nodes_version, {}
        required = get_compiled_required_node_affinity(pod) if constraint.honors_node_affinity else None
        if required is not None and required.node_selector is None and required.label_selector.is_empty:
            required = None
        cache_key = (keys, required, pod.signature.tolerations if constraint.honors_node_taints else None)
        eligible_nodes = self._cache.get(cache_key)
        if eligible_nodes is None:
            mask = self._compute_mask(
                snapshot,
                pod,
                keys,
                checks_node_affinity=required is not None,
                checks_taints=constraint.honors_node_taints,
            )
            eligible_nodes = self._cache[cache_key] = EligibleNodes(mask)
        return eligible_nodes

    def _compute_mask(
        self,
        snapshot: Snapshot,
        pod: PodInfo,
        keys: tuple[str, ...],
        *,
        checks_node_affinity: bool,
        checks_taints: bool,
    ) -> BoolArray:
        nodes = snapshot.view()
        mask = match_required_node_affinity(nodes, pod) if checks_node_affinity else np.ones(len(nodes), dtype=np.bool_)
        for key in keys:
            mask &= nodes.label_value_ids(key) != ABSENT
        if checks_taints:
            mask &= ~match_untolerated_taints(
                nodes, pod.signature.tolerations, comparison_operators=self._comparison_operators
            )
        return mask


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

    *values* has one entry for each label value that existed when it was computed; further entries are cut off.
    *fill_value* is the entry for label values that were added later.
    """
    size = len(nodes.snapshot.symbols.get_label_values(key))
    padded_values = np.full(size + 1, fill_value, dtype=values.dtype)
    copied_size = min(size, len(values))
    padded_values[:copied_size] = values[:copied_size]
    padded_values[ABSENT] = 0
    return padded_values
