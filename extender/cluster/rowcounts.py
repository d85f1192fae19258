"""A count a node row, with its sums over topology domains, kept up to date by increments."""

from dataclasses import dataclass, field

import numpy as np

from extender.cluster.arrays import IntArray, widened
from extender.cluster.nodes import ABSENT, NodeTable


@dataclass(slots=True)
class RowCounts:
    """How many pods of some kind are on each node and in each domain.

    Attributes:
        rows: pods on each node row, int64, shape (capacity,).
        epoch: the table that may write to these counts; others fork them first.
        domains: for each topology key asked for, pods in each domain: int64 by the id of the label value.
            Nodes without the label count nowhere.
        total: pods on all rows.
        stamp: when these counts were last asked for, in the table's own ticks.
    """

    rows: IntArray
    epoch: object
    domains: dict[str, IntArray] = field(default_factory=dict)
    total: int = 0
    stamp: int = 0

    def forked(self, epoch: object) -> "RowCounts":
        """A copy for another table to write."""
        domains = {key: array.copy() for key, array in self.domains.items()}
        return RowCounts(self.rows.copy(), epoch, domains, self.total, self.stamp)

    def without_domains(self, keys: set[str]) -> "RowCounts":
        """The same counts less the sums over *keys*; shares the rows, so it must be forked before it is written."""
        domains = {key: totals for key, totals in self.domains.items() if key not in keys}
        return RowCounts(self.rows, self.epoch, domains, self.total, self.stamp)

    def bump(self, row: int, by: int, nodes: NodeTable) -> None:
        """*by* pods more (or fewer) on *row*."""
        if row >= len(self.rows):
            self.rows = widened(self.rows, nodes.columns.capacity)
        self.rows[row] += by
        self.total += by
        for key, totals in self.domains.items():
            value = nodes.label(key)[row]
            if value == ABSENT:
                continue
            if value >= len(totals):
                self.domains[key] = widened(totals, int(value) * 2 + 1)
            self.domains[key][value] += by

    def fitted(self, nodes: NodeTable) -> IntArray:
        """The counts of the rows that are in use: int64, shape (number of nodes,)."""
        if len(self.rows) < nodes.columns.capacity:
            self.rows = widened(self.rows, nodes.columns.capacity)
        return self.rows[: len(nodes)]

    def in_domains(self, key: str, nodes: NodeTable) -> IntArray:
        """Pods in each domain of topology *key*: int64 by the id of the value, one entry a value, at least one."""
        totals = self.domains.get(key)
        if totals is None:
            column = nodes.label(key)[: len(nodes)]
            present = column != ABSENT
            size = max(1, len(nodes.vocabulary.label_values(key)))
            sums = np.bincount(column[present], weights=self.fitted(nodes)[present], minlength=size)
            totals = self.domains[key] = sums.astype(np.int64)
            return totals
        size = len(nodes.vocabulary.label_values(key))
        if len(totals) < size:
            totals = self.domains[key] = widened(totals, size)
        return totals
