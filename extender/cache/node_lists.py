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
from extender.cache.tables.node_counts import NodeCounts
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

    def select(
        self, terms: Iterable[tuple[AffinityTerm, NodeCounts]], nodes: NodeTable
    ) -> tuple[tuple[AffinityTerm, NodeCounts], ...]:
        """Return *terms* with their counts on the nodes of their lists, without those that have no pod there."""
        required_anti, others = self.has_required_anti_affinity, self.has_affinity
        selected = (
            (term, counts.restrict_to(required_anti if term.kind is TermKind.REQUIRED_ANTI_AFFINITY else others, nodes))
            for term, counts in terms
        )
        return tuple((term, counts) for term, counts in selected if counts.total)


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
        if isinstance(counts.row_counts, dict):
            has_term[list(counts.row_counts)] = True
        else:
            has_term |= counts.get_by_row(nodes) > 0
    return has_term
