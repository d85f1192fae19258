"""Lists of nodes and claims that kube-scheduler 1.36 does not update within the cycle of a pod group.

In 1.36 the snapshot has a list of the nodes with pods that have affinity terms, a list of the nodes with pods that have
required anti-affinity terms, and the claims that pods use. They are made when the snapshot is. A pod that is assumed in
the cycle changes its node, but none of these lists.

Source: pkg/scheduler/backend/cache/snapshot.go, Snapshot.AssumePod, Snapshot.BackupSnapshot (1.36).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from extender.cache.tables.affinity_terms import AffinityTerm, AffinityTermTable, TermKind
from extender.cache.tables.arrays import BoolArray
from extender.cache.tables.node_counts import NodeCounts, OwnerToken
from extender.cache.tables.node_table import NodeTable
from extender.cache.tables.volume_uses import VolumeUseTable


@dataclass(frozen=True, slots=True)
class NodeLists:
    """The lists of a snapshot.

    Attributes:
        has_affinity: the rows of nodes with pods that have affinity terms, bool, shape (number of nodes,).
        has_required_anti_affinity: the rows of nodes with pods that have required anti-affinity terms, likewise.
        volume_uses: the claims that pods use.
    """

    has_affinity: BoolArray
    has_required_anti_affinity: BoolArray
    volume_uses: VolumeUseTable

    def select(self, term: AffinityTerm, counts: NodeCounts, nodes: NodeTable) -> NodeCounts:
        """Return the counts of *term* on the nodes of its list."""
        is_required_anti = term.kind is TermKind.REQUIRED_ANTI_AFFINITY
        mask = self.has_required_anti_affinity if is_required_anti else self.has_affinity
        row_counts = counts.get_by_row(nodes) * mask
        return NodeCounts(row_counts, OwnerToken(), total=int(row_counts.sum()))


def make_node_lists(terms: AffinityTermTable, volume_uses: VolumeUseTable, nodes: NodeTable) -> NodeLists:
    """Return the lists for the present state of the tables, which must not change any more."""
    return NodeLists(
        _find_rows((counts for _, counts in terms.items()), nodes),
        _find_rows((counts for term, counts in terms.items() if term.kind is TermKind.REQUIRED_ANTI_AFFINITY), nodes),
        volume_uses,
    )


def _find_rows(all_counts: Iterable[NodeCounts], nodes: NodeTable) -> BoolArray:
    has_term = np.zeros(len(nodes), dtype=np.bool_)
    for counts in all_counts:
        has_term |= counts.get_by_row(nodes) > 0
    return has_term
