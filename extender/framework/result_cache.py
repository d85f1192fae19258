"""Cache filter results and raw scores across scheduling cycles.

The cache has one column for each plugin and cache key of a pod. A column has one row for each node. Only the rows of
changed nodes are recomputed. Cached and fresh columns are equal; a property test compares them. Only results of plugins
that implement `CacheableFilter` or `CacheableScore` are cached.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cache.tables.history import HistoryPosition
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_runner import PluginRunner, find_first_out_of_range
from extender.framework.status import Reason, Rejection

_MAX_BYTES = 96 << 20
"""The approximate limit of the size of all cached columns, in bytes."""

_MAX_NODE_SETS = 4
"""The number of cached sets of feasible nodes."""

_NO_ROWS: IntArray = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class FilterColumn:
    """The nodes that one plugin rejects for the pods of one cache key.

    Attributes:
        rejected: whether each node is rejected, bool, shape (number of nodes,).
        masks_by_reason: the nodes rejected for each reason, bool, shape (number of nodes,).
    """

    rejected: BoolArray
    masks_by_reason: dict[Reason, BoolArray] = field(default_factory=dict)

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.rejected)

    def write(self, rows: IntArray | slice, rejections: tuple[Rejection, ...]) -> None:
        """Replace the results of *rows* by *rejections*, whose masks have one entry per row."""
        if isinstance(rows, slice):
            self.masks_by_reason.clear()
        self.rejected[rows] = False
        for mask in self.masks_by_reason.values():
            mask[rows] = False
        for nodes, reason in rejections:
            reason_mask = self.masks_by_reason.get(reason)
            if reason_mask is None:
                if not nodes.any():
                    continue
                reason_mask = self.masks_by_reason[reason] = np.zeros(self.node_count, dtype=np.bool_)
            reason_mask[rows] |= nodes
            self.rejected[rows] |= nodes


@dataclass(slots=True)
class CachedColumn:
    """A column and the snapshot for which it is current.

    Attributes:
        value: a `FilterColumn`, or raw scores.
        position: the position of that snapshot in its history.
        node_count: the number of nodes in that snapshot.
        version: the number of writes after the first one.
        last_written_rows: the rows of the last write.
        in_range: whether all raw scores written so far are from 0 to 100.
        is_uniform: whether all raw scores written so far are equal.
        derived_value: a value that a caller computed from the column and stored here.
    """

    value: Any
    position: HistoryPosition
    node_count: int
    version: int = 0
    last_written_rows: IntArray = field(default_factory=lambda: _NO_ROWS)
    in_range: bool = False
    is_uniform: bool = False
    derived_value: Any = None

    def mark_current(self, snapshot: Snapshot) -> None:
        """Record that the column is current for *snapshot*."""
        self.position = snapshot.position


def _run_filter(plugin: Any, pod: Any, snapshot: Snapshot, state: Any, runner: PluginRunner) -> FilterColumn:
    column = FilterColumn(np.zeros(len(snapshot), dtype=np.bool_))
    column.write(slice(None), runner.filter(plugin, pod, snapshot.view(), state))
    return column


@dataclass(frozen=True, slots=True, eq=False)
class NodeSet:
    """A set of nodes. Equal sets from one `ResultCache` are one object, so that callers can compare by identity.

    Attributes:
        mask: the nodes of the set, bool, shape (number of nodes,).
        rows: their rows, int64, ascending.
        is_all_nodes: whether the set has all nodes.
    """

    mask: BoolArray
    rows: IntArray
    is_all_nodes: bool

    @classmethod
    def from_mask(cls, mask: BoolArray) -> "NodeSet":
        """Create the set of the nodes in *mask*, which is copied if it is writable."""
        is_all_nodes = bool(np.count_nonzero(mask) == len(mask))
        rows = np.arange(len(mask), dtype=np.int64) if is_all_nodes else mask.nonzero()[0]
        return cls(mask.copy() if mask.flags.writeable else mask, rows, is_all_nodes)

    def equals_mask(self, mask: BoolArray) -> bool:
        """Return whether *mask* has the nodes of this set."""
        if mask is self.mask:
            return True
        return len(mask) == len(self.mask) and not np.count_nonzero(self.mask != mask)

    def view(self, snapshot: Snapshot) -> NodeView:
        """Return a view of these nodes in *snapshot*."""
        return snapshot.view(None if self.is_all_nodes else self.rows)

    def intersect(self, rows: IntArray) -> IntArray:
        """Return the rows (int64) that are both in *rows* and in the set."""
        return rows if self.is_all_nodes else rows[self.mask[rows]]

    def find_positions(self, rows: IntArray) -> IntArray:
        """Return the positions (int64) of *rows* in `self.rows`. All of *rows* must be in the set."""
        return rows if self.is_all_nodes else self.rows.searchsorted(rows)


class ResultCache:
    """The cached columns and node sets of one plugin runtime. Not thread-safe: one per scheduling thread."""

    __slots__ = ("_filters", "_node_sets", "_rng", "_scores", "enabled")

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self._filters: dict[Hashable, CachedColumn] = {}
        self._scores: dict[Hashable, CachedColumn] = {}
        self._node_sets: list[NodeSet] = []
        self._rng = Random(0)  # noqa: S311  the choice of evicted columns changes no result

    def get_filter_column(
        self, plugin: Any, pod: Any, snapshot: Snapshot, state: Any, runner: PluginRunner
    ) -> FilterColumn:
        """Return the filter results of *plugin* for all nodes. Do not modify them. They are valid until the next cycle.

        Raises:
            PluginError: the plugin failed.
        """
        get_key = getattr(plugin, "filter_cache_key", None) if self.enabled else None
        key = runner.get_cache_key(plugin, "Filter", get_key, pod) if get_key else None
        if key is None:
            return _run_filter(plugin, pod, snapshot, state, runner)
        cached_column, stale_rows = self._lookup(self._filters, (plugin, key), snapshot, plugin.filter_depends_on)
        if cached_column is None:
            fresh_column = _run_filter(plugin, pod, snapshot, state, runner)
            self._store(self._filters, (plugin, key), fresh_column, snapshot, 3 * len(snapshot))
            return fresh_column
        column: FilterColumn = cached_column.value
        if stale_rows is not None:
            if len(stale_rows):
                column.write(stale_rows, runner.filter(plugin, pod, snapshot.view(stale_rows), state))
            cached_column.mark_current(snapshot)
        return column

    def get_score_column(
        self, plugin: Any, pod: Any, snapshot: Snapshot, state: Any, runner: PluginRunner
    ) -> CachedColumn | None:
        """Return the raw scores of all nodes (int64), or None if *plugin* does not allow caching them.

        Do not modify the scores. They are valid until the next cycle.

        Raises:
            PluginError: the plugin failed.
        """
        get_key = getattr(plugin, "score_cache_key", None) if self.enabled else None
        key = runner.get_cache_key(plugin, "Score", get_key, pod) if get_key else None
        if key is None:
            return None
        cached_column, stale_rows = self._lookup(self._scores, (plugin, key), snapshot, plugin.score_depends_on)
        if cached_column is None:
            scores = runner.score(plugin, pod, snapshot.view(), state).copy()
            cached_column = self._store(self._scores, (plugin, key), scores, snapshot, 8 * len(snapshot))
            cached_column.in_range = find_first_out_of_range(scores) is None
            cached_column.is_uniform = bool((scores == scores[:1]).all())
            return cached_column
        if stale_rows is not None:
            if len(stale_rows):
                _write_scores(cached_column, stale_rows, runner.score(plugin, pod, snapshot.view(stale_rows), state))
            cached_column.mark_current(snapshot)
        return cached_column

    def get_node_set(self, mask: BoolArray) -> NodeSet:
        """Return the set of the nodes in *mask* (bool, shape (number of nodes,)). An equal cached set is reused."""
        for node_set in self._node_sets:
            if node_set.equals_mask(mask):
                return node_set
        del self._node_sets[_MAX_NODE_SETS - 1 :]
        self._node_sets.insert(0, NodeSet.from_mask(mask))
        return self._node_sets[0]

    def _lookup(
        self, table: dict[Hashable, CachedColumn], key: Hashable, snapshot: Snapshot, depends_on: DependsOn
    ) -> tuple[CachedColumn | None, IntArray | None]:
        """Return a cached column and its stale rows.

        The column is None if it must be recomputed. The rows are None if the column is current.
        """
        cached_column = table.get(key)
        if cached_column is None:
            return None, None
        position, depends_on_pods = cached_column.position, depends_on is DependsOn.NODE_AND_PODS
        if position.history_id is not snapshot.history_id:
            stale_rows = _find_rows_stale_since_branch(cached_column, snapshot, depends_on)
        elif position.node_log_position == snapshot.node_log_position and (
            not depends_on_pods or position.pod_log_position == snapshot.pod_log_position
        ):
            return cached_column, None
        else:
            stale_rows = _find_stale_rows(cached_column, snapshot, depends_on)
        if stale_rows is None or len(stale_rows) * 2 > cached_column.node_count + 2:
            return None, None
        return cached_column, stale_rows

    def _store(
        self, table: dict[Hashable, CachedColumn], key: Hashable, value: Any, snapshot: Snapshot, byte_count: int
    ) -> CachedColumn:
        """Cache *value*, which takes *byte_count* bytes, and evict random columns if there are too many."""
        max_columns = max(16, _MAX_BYTES // 2 // max(byte_count, 1))
        table.pop(key, None)
        while len(table) >= max_columns:
            # Evict a random column: if the keys repeat in a cycle, the oldest column is the one that is needed next.
            del table[next(islice(table, int(self._rng.random() * len(table)), None))]
        cached_column = CachedColumn(value, snapshot.position, len(snapshot))
        table[key] = cached_column
        return cached_column


def _write_scores(column: CachedColumn, rows: IntArray, scores: IntArray) -> None:
    """Write the raw *scores* of *rows*."""
    column.in_range = column.in_range and find_first_out_of_range(scores) is None
    column.is_uniform = column.is_uniform and bool((scores == column.value[:1]).all())
    column.value[rows] = scores
    column.version += 1
    column.last_written_rows = rows


def _find_stale_rows(column: CachedColumn, snapshot: Snapshot, depends_on: DependsOn) -> IntArray | None:
    """Return the rows of *column* to compute again for *snapshot*, which has the same history; None: all rows."""
    position = column.position
    if position.node_log_position != snapshot.node_log_position and (
        depends_on is DependsOn.ALL_NODES or column.node_count != len(snapshot)
    ):
        return None
    if position.node_log_position > snapshot.node_log_position or position.pod_log_position > snapshot.pod_log_position:
        return None  # the snapshot is older than the cached column
    return snapshot.changed_rows(
        node_log_position=position.node_log_position,
        pod_log_position=position.pod_log_position if depends_on is DependsOn.NODE_AND_PODS else None,
    )


def _find_rows_stale_since_branch(column: CachedColumn, snapshot: Snapshot, depends_on: DependsOn) -> IntArray | None:
    """Return the rows of *column* to compute again for *snapshot*, which has another history; None: all rows.

    This is the case if one of both is a hypothesis, for example of a pod group with some members on nodes.
    """
    if column.node_count != len(snapshot):
        return None
    changed_rows = snapshot.find_rows_changed_from(column.position)
    if changed_rows is None:
        return None
    if depends_on is DependsOn.ALL_NODES:
        return None if len(changed_rows.with_changed_node) else _NO_ROWS
    return changed_rows.with_any_change if depends_on is DependsOn.NODE_AND_PODS else changed_rows.with_changed_node
