"""Compute and cache the normalized and weighted scores of a set of nodes, and their totals.

The scores are cached between pods, and only the scores of changed nodes are updated.

Cached and fresh scores are equal; a property test compares them.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins, getValidScoreWeights;
pkg/scheduler/schedule_one.go, Scheduler.schedulePod (1.36).
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.framework.plugin_runner import PluginRunner, find_first_out_of_range
from extender.framework.profiles import WeightedScore
from extender.framework.result_cache import CachedColumn, NodeSet, ResultCache

_MAX_CACHED_TOTALS = 16
"""The maximum number of cached totals, each 8 bytes per node."""


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores of the feasible nodes, int64, in the order of `Ranking.rows`, valid until the next cycle.

    Attributes:
        raw: the scores that the plugin returned.
        normalized: the scores after NormalizeScore. A score outside 0 to 100 is an error of the plugin.
        weight: the weight of the plugin in the profile.
        weighted: `normalized * weight`.
        out_of_range_position: the position of the first score in `normalized` outside 0 to 100; None if there is none.
    """

    raw: IntArray
    normalized: IntArray
    weight: int
    weighted: IntArray
    out_of_range_position: int | None = None


@dataclass(slots=True, eq=False)
class NodeSetScores:
    """One plugin's scores of a node set.

    Attributes:
        scores: the scores of every node in `node_set`.
        node_set: the scored nodes.
        version: the version of the cached column from which the scores were computed; None if the column is not cached.
        changed_positions: the positions of the scores that changed since the previous version, int64.
    """

    scores: PluginScores
    node_set: NodeSet
    version: int | None = None
    changed_positions: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def get_scores_of_row(self, row: int) -> tuple[int, int]:
        """Return the raw and the normalized score of a row of `node_set`."""
        position = row if self.node_set.is_all_nodes else self.node_set.rows.searchsorted(row)
        return self.scores.raw.item(position), self.scores.normalized.item(position)

    def update_to(self, column: CachedColumn, plugin: Any) -> bool:
        """Update the scores to the current version of *column*; return False if they must be recomputed.

        Normalized scores must be recomputed, because a raw score may change the normalized scores
        of other nodes.
        """
        return self.version == column.version or (
            not hasattr(plugin, "normalize_score") and self._apply_last_write(column)
        )

    def _apply_last_write(self, column: CachedColumn) -> bool:
        """Apply the last write of *column*; return False if an earlier write is missing or a score is out of range."""
        if self.version is None or column.version != self.version + 1 or not column.in_range:
            return False
        rows = self.node_set.intersect(column.last_written_rows)
        raw_scores: IntArray = column.value[rows]
        positions, scores = self.node_set.find_positions(rows), self.scores
        scores.raw[positions] = raw_scores
        if scores.weighted is not scores.raw:
            scores.weighted[positions] = raw_scores * scores.weight
        self.version, self.changed_positions = column.version, positions
        return True


class ScoreTotals:
    """The sums of the plugins' weighted scores. Read-only for callers, valid until the next cycle.

    Attributes:
        sums: the sum for each node of the node set, int64.
        best_positions: the positions with the highest sum, ascending; None if not tracked. Tracking starts when a
            single position changes and stops when several change at once.
    """

    __slots__ = ("_best_total", "_versions", "best_positions", "sums")

    def __init__(self, node_set_scores: Sequence[NodeSetScores], node_count: int) -> None:
        self.sums: IntArray = (
            node_set_scores[0].scores.weighted.copy() if node_set_scores else np.zeros(node_count, dtype=np.int64)
        )
        self.best_positions: list[int] | None = None
        self._best_total = 0
        self._versions = [entry.version for entry in node_set_scores]
        for entry in node_set_scores[1:]:
            self.sums += entry.scores.weighted

    def with_added_scores(self, node_set_scores: Sequence[NodeSetScores]) -> "ScoreTotals":
        """Return new totals with *node_set_scores* added."""
        totals = ScoreTotals(node_set_scores, len(self.sums))
        totals.sums += self.sums
        return totals

    def update_to(self, node_set_scores: Sequence[NodeSetScores]) -> bool:
        """Update the sums to the current versions of *node_set_scores*; return False if that is impossible.

        *node_set_scores* must have the same objects as before, in the same order. After False, discard the totals.
        """
        changed_positions: IntArray | None = None
        for index, entry in enumerate(node_set_scores):
            summed_version = self._versions[index]
            if entry.version == summed_version:
                continue
            if summed_version is None or entry.version != summed_version + 1:
                return False
            self._versions[index] = entry.version
            if entry.changed_positions is not changed_positions:  # usually the same array for all plugins
                changed_positions = entry.changed_positions
                self._update_sums(changed_positions, node_set_scores)
        return True

    def _update_sums(self, positions: IntArray, node_set_scores: Sequence[NodeSetScores]) -> None:
        if len(positions) == 1:  # usual after a pod is assumed
            position = positions.item()
            total = sum([entry.scores.weighted.item(position) for entry in node_set_scores])
            self.sums[position] = total
            self._update_best_positions(position, total)
        elif len(positions):
            self.sums[positions] = sum(entry.scores.weighted[positions] for entry in node_set_scores)
            self.best_positions = None

    def _update_best_positions(self, position: int, total: int) -> None:
        """Update the best positions after the sum at *position* changed to *total*."""
        best_positions = self.best_positions
        if best_positions is None or total > self._best_total:
            self._best_total = best_total = self.sums.item(self.sums.argmax())
            self.best_positions = (self.sums == best_total).nonzero()[0].tolist()
            return
        index = bisect_left(best_positions, position)
        was_best = index < len(best_positions) and best_positions[index] == position
        if total == self._best_total:
            if not was_best:
                best_positions.insert(index, position)
        elif was_best:
            del best_positions[index]
            if not best_positions:
                self.best_positions = None
                self._update_best_positions(position, total)


class ScoreTable:
    """Runs Score plugins on a node set and sums the scores. Each `PluginRuntime` has its own table.

    Args:
        runner: the runner that calls plugins.
        result_cache: the cache of raw scores.
    """

    __slots__ = ("_result_cache", "_runner", "_totals")

    def __init__(self, runner: PluginRunner, result_cache: ResultCache) -> None:
        self._runner, self._result_cache = runner, result_cache
        self._totals: dict[tuple[NodeSetScores, ...], ScoreTotals] = {}

    def get_plugin_scores(
        self,
        weighted_plugin: WeightedScore,
        pod: PodInfo,
        view: NodeView,
        plugin_state: Any,
        node_set: NodeSet,
        all_nodes: NodeSet | None = None,
    ) -> NodeSetScores:
        """Return one plugin's scores.

        The scores are cached if the raw scores of the plugin are cached. They are recomputed if the node set changes.

        Args:
            weighted_plugin: the plugin and its weight.
            pod: the pod to schedule.
            view: the nodes of *node_set*.
            plugin_state: the state that the plugin's PreScore or PreFilter returned.
            node_set: the nodes to score.
            all_nodes: the set of all nodes. If it is given, cached scores in range that do not depend on the node set
                are returned for all nodes.

        Raises:
            PluginError: the plugin raised or returned invalid scores.
        """
        plugin = weighted_plugin.plugin
        column = self._result_cache.get_score_column(plugin, pod, view.snapshot, plugin_state, self._runner)
        if column is None:
            raw = self._runner.score(plugin, pod, view, plugin_state)
            scores = self._normalize_and_weight(weighted_plugin, pod, raw, view, plugin_state, in_range=False)
            return NodeSetScores(scores, node_set)
        if all_nodes is not None and column.in_range and _is_same_for_each_node_set(plugin, column):
            node_set, view = all_nodes, view.snapshot.view()
        cached_scores: NodeSetScores | None = column.derived_value
        if (
            cached_scores is not None
            and cached_scores.node_set is node_set
            and cached_scores.scores.weight == weighted_plugin.weight
            and cached_scores.update_to(column, plugin)
        ):
            return cached_scores
        raw = view.take(column.value)
        scores = self._normalize_and_weight(weighted_plugin, pod, raw, view, plugin_state, in_range=column.in_range)
        cached_scores = column.derived_value = NodeSetScores(scores, node_set, column.version)
        return cached_scores

    def sum_scores(self, node_set_scores: Sequence[NodeSetScores], node_count: int) -> ScoreTotals:
        """Return the sums of the weighted scores of *node_count* nodes."""
        cached_entries = tuple([entry for entry in node_set_scores if entry.version is not None])
        totals = self._totals.pop(cached_entries, None)
        if totals is None or not totals.update_to(cached_entries):
            totals = ScoreTotals(cached_entries, node_count)
        if cached_entries:
            while len(self._totals) >= _MAX_CACHED_TOTALS:
                del self._totals[next(iter(self._totals))]
            self._totals[cached_entries] = totals
        if len(cached_entries) == len(node_set_scores):
            return totals
        return totals.with_added_scores([entry for entry in node_set_scores if entry.version is None])

    def _normalize_and_weight(
        self,
        weighted_plugin: WeightedScore,
        pod: PodInfo,
        raw: IntArray,
        view: NodeView,
        plugin_state: Any,
        *,
        in_range: bool,
    ) -> PluginScores:
        """Return the scores computed from *raw*. *in_range* is true if all raw scores are known to be from 0 to 100."""
        normalized = raw
        if hasattr(weighted_plugin.plugin, "normalize_score"):
            normalized = self._runner.normalize_score(weighted_plugin.plugin, pod, raw, view, plugin_state)
            in_range = False
        weight = weighted_plugin.weight
        weighted = normalized if weight == 1 else normalized * weight
        return PluginScores(
            raw, normalized, weight, weighted, None if in_range else find_first_out_of_range(normalized)
        )


def _is_same_for_each_node_set(plugin: Any, column: CachedColumn) -> bool:
    """Return whether the scores of a node do not depend on the node set that contains it."""
    if not hasattr(plugin, "normalize_score"):
        return True
    return column.is_uniform and getattr(plugin, "normalizes_only_by_scores", False)
