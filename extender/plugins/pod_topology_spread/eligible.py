"""Which nodes count when pods are spread, and the sums over their domains. Kept while no node changes. Source: B069.

Every sum is taken from the kept totals where all nodes with the label count, which is the everyday case.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray, widened
from extender.cluster.node_matching import required_affinity, required_affinity_mask, untolerated_mask
from extender.cluster.nodes import ABSENT
from extender.cluster.pods import PodQuery
from extender.cluster.rowcounts import RowCounts
from extender.cluster.snapshot import Snapshot

_MOST = 512
"""Answers kept for one state of the nodes."""


@dataclass(frozen=True, slots=True)
class Domains:
    """The domains of one topology key among the eligible nodes.

    Attributes:
        ids: ids of the label's values that an eligible node has, ascending, int64.
        rows: the eligible nodes that have the label, int64.
        values: their values of it.
        whole: every node that has the label is eligible, so that kept totals are the sums wanted.
    """

    ids: IntArray
    rows: IntArray
    values: IntArray
    whole: bool


class Eligible:
    """The nodes that count for one constraint of one pod.

    Attributes:
        rows: by row, bool, shape (number of nodes,).
        every: whether all nodes do.
    """

    __slots__ = ("_domains", "every", "rows")

    def __init__(self, rows: BoolArray) -> None:
        self.rows = rows
        self.every = bool(rows.all())
        self._domains: dict[str, Domains] = {}

    def domains(self, cluster: Snapshot, key: str) -> Domains:
        """The domains of *key* among these nodes."""
        found = self._domains.get(key)
        if found is None:
            labels = cluster.view().label(key)
            present = labels != ABSENT
            picked = self.rows & present
            rows = np.flatnonzero(picked)
            values = labels[rows]
            whole = len(rows) == int(np.count_nonzero(present))
            found = self._domains[key] = Domains(np.unique(values), rows, values, whole)
        return found

    def totals(self, cluster: Snapshot, key: str, counts: RowCounts) -> IntArray:
        """*counts* summed over these nodes: int64 by the id of the value of *key*, one entry a value; read only."""
        domains = self.domains(cluster, key)
        if domains.whole:
            return cluster.count_domains(counts, key)
        size = max(1, len(cluster.vocabulary.label_values(key)))
        sums = np.bincount(domains.values, weights=cluster.count_rows(counts)[domains.rows], minlength=size)
        return widened(sums.astype(np.int64), size)


class EligibleNodes:
    """Answers who counts, and remembers it until a node is written."""

    __slots__ = ("_comparison", "_kept", "_moment")

    def __init__(self, *, comparison_operators: bool = False) -> None:
        """Nothing is known yet.

        Args:
            comparison_operators: whether tolerations may compare (gate TaintTolerationComparisonOperators).
        """
        self._comparison = comparison_operators
        self._moment: tuple[object, int] = (None, -1)
        self._kept: dict[Hashable, Eligible] = {}

    def of(
        self, cluster: Snapshot, pod: PodQuery, keys: tuple[str, ...], *, honors_affinity: bool, honors_taints: bool
    ) -> Eligible:
        """The nodes that have every label of *keys* and, where asked, suit the pod's node affinity and tolerations."""
        moment = (cluster.lineage, cluster.node_position)
        if moment != self._moment or len(self._kept) >= _MOST:
            self._moment, self._kept = moment, {}
        required = required_affinity(pod) if honors_affinity else None
        if required is not None and required.terms is None and required.selector.is_empty:
            required = None
        question = (keys, required, pod.shape.tolerations if honors_taints else None)
        kept = self._kept.get(question)
        if kept is None:
            rows = self._asked(cluster, pod, keys, honors_affinity=required is not None, honors_taints=honors_taints)
            kept = self._kept[question] = Eligible(rows)
        return kept

    def _asked(
        self, cluster: Snapshot, pod: PodQuery, keys: tuple[str, ...], *, honors_affinity: bool, honors_taints: bool
    ) -> BoolArray:
        nodes = cluster.view()
        rows = required_affinity_mask(nodes, pod) if honors_affinity else np.ones(len(nodes), dtype=np.bool_)
        for key in keys:
            rows &= nodes.label(key) != ABSENT
        if honors_taints:
            rows &= ~untolerated_mask(nodes, pod.shape.tolerations, comparison_operators=self._comparison)
        return rows
