"""Answers kept between cycles: what a plugin said about each node for a key of pods, brought up to date row by row.

Kept and fresh answers are equal; a property test says so. Only plugins that declare `KeptFilter` or `KeptScore` are
kept.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.points import Reads
from extender.framework.runner import Runner, first_outlier
from extender.framework.verdict import Reason, Rejection

_BYTES = 96 << 20
"""About what all kept columns may take, in bytes."""

_MOST_CROWDS = 4
"""Sets of feasible nodes that are told apart without a copy."""

_NO_ROWS: IntArray = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class FilterColumn:
    """One plugin's refusals for one key of pods.

    Attributes:
        refused: whether each node is refused, bool, shape (number of nodes,).
        groups: the refused nodes of each reason.
    """

    refused: BoolArray
    groups: dict[Reason, BoolArray] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.refused)

    def write(self, rows: IntArray | slice, rejections: tuple[Rejection, ...]) -> None:
        """What was said about *rows* is now *rejections*."""
        if isinstance(rows, slice):
            self.groups.clear()
        self.refused[rows] = False
        for mask in self.groups.values():
            mask[rows] = False
        for nodes, reason in rejections:
            group = self.groups.get(reason)
            if group is None:
                if not nodes.any():
                    continue
                group = self.groups[reason] = np.zeros(self.size, dtype=np.bool_)
            group[rows] |= nodes
            self.refused[rows] |= nodes


@dataclass(slots=True)
class KeptColumn:
    """A column with the moment it is true for.

    Attributes:
        value: a `FilterColumn`, or raw scores.
        lineage, size, node_position, pod_position: of the snapshot it was last brought up to.
        version: grows whenever an entry is written.
        written: the rows that were written last, which made it this version.
        in_range: all raw scores that were ever written are from 0 to 100.
        derived: what was last worked out of it by its reader, who notes for which version.
    """

    value: Any
    lineage: object
    size: int
    node_position: int
    pod_position: int
    version: int = 0
    written: IntArray = field(default_factory=lambda: _NO_ROWS)
    in_range: bool = False
    derived: Any = None

    def caught_up(self, cluster: Snapshot) -> None:
        """The column is true for *cluster* now."""
        self.node_position, self.pod_position = cluster.node_position, cluster.pod_position


def _fresh(plugin: Any, pod: Any, cluster: Snapshot, notes: Any, run: Runner) -> FilterColumn:
    column = FilterColumn(np.zeros(len(cluster), dtype=np.bool_))
    column.write(slice(None), run.filter(plugin, pod, cluster.view(), notes))
    return column


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """Some of the nodes; the same object for the same nodes.

    Attributes:
        nodes: who belongs to it, bool, shape (number of nodes,).
        rows: the rows of those, int64, ascending.
        everybody: whether all nodes belong to it.
    """

    nodes: BoolArray
    rows: IntArray
    everybody: bool

    @classmethod
    def of(cls, nodes: BoolArray) -> "Crowd":
        """The crowd of *nodes*, of which it keeps a copy if somebody might write to them."""
        everybody = bool(np.count_nonzero(nodes) == len(nodes))
        rows = np.arange(len(nodes), dtype=np.int64) if everybody else nodes.nonzero()[0]
        return cls(nodes.copy() if nodes.flags.writeable else nodes, rows, everybody)

    def are(self, nodes: BoolArray) -> bool:
        """Whether these are the *nodes* that belong to it."""
        if nodes is self.nodes:
            return True
        return len(nodes) == len(self.nodes) and not np.count_nonzero(self.nodes != nodes)

    def view(self, cluster: Snapshot) -> NodeView:
        """These nodes of *cluster*."""
        return cluster.view(None if self.everybody else self.rows)

    def among(self, rows: IntArray) -> IntArray:
        """Those of *rows* (int64) that belong to it."""
        return rows if self.everybody else rows[self.nodes[rows]]

    def places(self, rows: IntArray) -> IntArray:
        """Where in `self.rows` these rows of it are (int64)."""
        return rows if self.everybody else self.rows.searchsorted(rows)


class ColumnCache:
    """Kept columns of one engine. Not thread-safe: each thread that decides has its own."""

    __slots__ = ("_chance", "_crowds", "_filters", "_scores", "enabled")

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self._filters: dict[Hashable, KeptColumn] = {}
        self._scores: dict[Hashable, KeptColumn] = {}
        self._crowds: list[Crowd] = []
        self._chance = Random(0).random  # noqa: S311  what is thrown out changes no answer

    def filter(self, plugin: Any, pod: Any, cluster: Snapshot, notes: Any, run: Runner) -> FilterColumn:
        """What *plugin* says about every node. Read it before the next cycle and never write to it.

        Raises:
            PluginError: the plugin is at fault.
        """
        keyed = getattr(plugin, "filter_key", None) if self.enabled else None
        key = run.key(plugin, "Filter", keyed, pod) if keyed else None
        if key is None:
            return _fresh(plugin, pod, cluster, notes, run)
        kept, stale = self._lookup(self._filters, (plugin, key), cluster, plugin.filter_reads)
        if kept is None:
            fresh = _fresh(plugin, pod, cluster, notes, run)
            self._keep(self._filters, (plugin, key), fresh, cluster, 3 * len(cluster))
            return fresh
        column: FilterColumn = kept.value
        if stale is not None:
            if len(stale):
                column.write(stale, run.filter(plugin, pod, cluster.view(stale), notes))
            kept.caught_up(cluster)
        return column

    def score(self, plugin: Any, pod: Any, cluster: Snapshot, notes: Any, run: Runner) -> KeptColumn | None:
        """The raw scores of every node (int64) if *plugin* lets them be kept, else None.

        Read them before the next cycle and never write to them.

        Raises:
            PluginError: the plugin is at fault.
        """
        keyed = getattr(plugin, "score_key", None) if self.enabled else None
        key = run.key(plugin, "Score", keyed, pod) if keyed else None
        if key is None:
            return None
        kept, stale = self._lookup(self._scores, (plugin, key), cluster, plugin.score_reads)
        if kept is None:
            fresh = run.score(plugin, pod, cluster.view(), notes).copy()
            made = self._keep(self._scores, (plugin, key), fresh, cluster, 8 * len(cluster))
            made.in_range = first_outlier(fresh) is None
            return made
        if stale is not None:
            if len(stale):
                kept.value[stale] = scores = run.score(plugin, pod, cluster.view(stale), notes)
                kept.in_range = kept.in_range and first_outlier(scores) is None
                kept.version += 1
                kept.written = stale
            kept.caught_up(cluster)
        return kept

    def crowd(self, feasible: BoolArray) -> Crowd:
        """*feasible* (bool, shape (number of nodes,)) as a crowd: the last one, if it is asked for now and then."""
        for known in self._crowds:
            if known.are(feasible):
                return known
        del self._crowds[_MOST_CROWDS - 1 :]
        self._crowds.insert(0, Crowd.of(feasible))
        return self._crowds[0]

    def _lookup(
        self, table: dict[Hashable, KeptColumn], key: Hashable, cluster: Snapshot, reads: Reads
    ) -> tuple[KeptColumn | None, IntArray | None]:
        """The kept column with the rows to write again, None if it is true as it is; no column: it must be made."""
        kept = table.get(key)
        if kept is None or kept.lineage is not cluster.lineage:
            return None, None
        with_pods = reads is Reads.PODS
        if kept.node_position == cluster.node_position:  # no node came or went either
            if not with_pods or kept.pod_position == cluster.pod_position:
                return kept, None
        elif reads is Reads.NODES or kept.size != len(cluster):
            return None, None
        if kept.node_position > cluster.node_position or kept.pod_position > cluster.pod_position:
            return None, None  # the snapshot is older than what is kept
        stale = cluster.changed_rows(
            node_position=kept.node_position, pod_position=kept.pod_position if with_pods else None
        )
        if stale is None or len(stale) * 2 > kept.size + 2:
            return None, None
        return kept, stale

    def _keep(
        self, table: dict[Hashable, KeptColumn], key: Hashable, value: Any, cluster: Snapshot, size: int
    ) -> KeptColumn:
        most = max(16, _BYTES // 2 // max(size, 1))
        table.pop(key, None)
        while len(table) >= most:
            # Not the oldest: shapes that come round and round, and are one too many, would all be gone each time.
            del table[next(islice(table, int(self._chance() * len(table)), None))]
        kept = KeptColumn(value, cluster.lineage, len(cluster), cluster.node_position, cluster.pod_position)
        table[key] = kept
        return kept
