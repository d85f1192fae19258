"""NormalizeScore, weights and totals of the Score plugins for a set of nodes, cached between pods and updated by row.

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
from extender.cache.tables.arrays import IntArray
from extender.framework.plugin_runner import PluginRunner, find_first_out_of_range
from extender.framework.profiles import WeightedScore
from extender.framework.result_cache import CachedColumn, NodeSet, ResultCache

_MAX_CACHED_TOTALS = 16
"""The maximum number of cached totals, each 8 bytes per node."""


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores of the feasible nodes, int64, in the order of `Ranking.rows`. Valid until the next cycle.

    Attributes:
        raw: the scores that the plugin returned.
        normalized: the scores from 0 to 100.
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
class CachedScores:
    """One plugin's scores of a node set.

    Attributes:
        scores: the scores of every node in `node_set`.
        node_set: the scored nodes.
        version: the version of the cached column from which the scores were computed; None if it is not cached.
        changed_positions: the positions of the scores that changed since the previous version, int64.
    """

    scores: PluginScores
    node_set: NodeSet
    version: int | None = None
    changed_positions: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

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
        sums: one per node in the node set, int64.
        best_positions: the positions with the highest sum, ascending; None if not tracked. Tracking starts when a
            single position changes and stops when several change at once.
    """

    __slots__ = ("_best_total", "_versions", "best_positions", "sums")

    def __init__(self, cached_scores: Sequence[CachedScores], node_count: int) -> None:
        self.sums: IntArray = (
            cached_scores[0].scores.weighted.copy() if cached_scores else np.zeros(node_count, dtype=np.int64)
        )
        self.best_positions: list[int] | None = None
        self._best_total = 0
        self._versions = [cached.version for cached in cached_scores]
        for cached in cached_scores[1:]:
            self.sums += cached.scores.weighted

    def with_added_scores(self, cached_scores: Sequence[CachedScores]) -> "ScoreTotals":
        """Return new totals with *cached_scores* added."""
        totals = ScoreTotals(cached_scores, len(self.sums))
        totals.sums += self.sums
        return totals

    def update_to(self, cached_scores: Sequence[CachedScores]) -> bool:
        """Update the sums to the current versions of *cached_scores*; return False if that is impossible.

        The plugins must be the ones of the last call. After False the totals must be discarded.
        """
        changed_positions: IntArray | None = None
        for index, cached in enumerate(cached_scores):
            summed_version = self._versions[index]
            if cached.version == summed_version:
                continue
            if summed_version is None or cached.version != summed_version + 1:
                return False
            self._versions[index] = cached.version
            if cached.changed_positions is not changed_positions:  # usually the same array for all plugins
                changed_positions = cached.changed_positions
                self._update_sums(changed_positions, cached_scores)
        return True

    def _update_sums(self, positions: IntArray, cached_scores: Sequence[CachedScores]) -> None:
        if len(positions) == 1:  # usual after a pod is assumed
            position = positions.item()
            total = sum([cached.scores.weighted.item(position) for cached in cached_scores])
            self.sums[position] = total
            self._update_best_positions(position, total)
        elif len(positions):
            self.sums[positions] = sum(cached.scores.weighted[positions] for cached in cached_scores)
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
    """Runs Score plugins on a node set and sums the scores. One per `PluginRuntime`, not thread-safe.

    Args:
        runner: the runner that calls plugins.
        result_cache: the cache of raw scores.
    """

    __slots__ = ("_result_cache", "_runner", "_totals")

    def __init__(self, runner: PluginRunner, result_cache: ResultCache) -> None:
        self._runner, self._result_cache = runner, result_cache
        self._totals: dict[tuple[CachedScores, ...], ScoreTotals] = {}

    def get_plugin_scores(
        self, weighted_plugin: WeightedScore, pod: PodInfo, view: Any, cycle_state: Any, node_set: NodeSet
    ) -> CachedScores:
        """Return one plugin's scores; they are cached if its raw scores are cached and the node set is unchanged.

        Args:
            weighted_plugin: the plugin and its weight.
            pod: the pod to schedule.
            view: the nodes of *node_set*.
            cycle_state: the plugin's state of PreScore or PreFilter.
            node_set: the nodes to score.

        Raises:
            PluginError: the plugin raised or returned invalid scores.
        """
        plugin = weighted_plugin.plugin
        column = self._result_cache.get_score_column(plugin, pod, view.snapshot, cycle_state, self._runner)
        if column is None:
            raw = self._runner.score(plugin, pod, view, cycle_state)
            scores = self._normalize_and_weight(weighted_plugin, pod, raw, view, cycle_state, in_range=False)
            return CachedScores(scores, node_set)
        cached: CachedScores | None = column.derived_value
        if (
            cached is not None
            and cached.node_set is node_set
            and cached.scores.weight == weighted_plugin.weight
            and cached.update_to(column, plugin)
        ):
            return cached
        raw = view.take(column.value)
        scores = self._normalize_and_weight(weighted_plugin, pod, raw, view, cycle_state, in_range=column.in_range)
        cached = column.derived_value = CachedScores(scores, node_set, column.version)
        return cached

    def sum_scores(self, cached_scores: Sequence[CachedScores], node_count: int) -> ScoreTotals:
        """Return the sums of the weighted scores of *node_count* nodes."""
        cacheable = tuple([cached for cached in cached_scores if cached.version is not None])
        totals = self._totals.pop(cacheable, None)
        if totals is None or not totals.update_to(cacheable):
            totals = ScoreTotals(cacheable, node_count)
        if cacheable:
            while len(self._totals) >= _MAX_CACHED_TOTALS:
                del self._totals[next(iter(self._totals))]
            self._totals[cacheable] = totals
        if len(cacheable) == len(cached_scores):
            return totals
        return totals.with_added_scores([cached for cached in cached_scores if cached.version is None])

    def _normalize_and_weight(
        self,
        weighted_plugin: WeightedScore,
        pod: PodInfo,
        raw: IntArray,
        view: Any,
        cycle_state: Any,
        *,
        in_range: bool,
    ) -> PluginScores:
        """Return the scores computed from *raw*; *in_range*: whether all raw scores are from 0 to 100."""
        normalized = raw
        if hasattr(weighted_plugin.plugin, "normalize_score"):
            normalized = self._runner.normalize_score(weighted_plugin.plugin, pod, raw, view, cycle_state)
            in_range = False
        weight = weighted_plugin.weight
        weighted = normalized if weight == 1 else normalized * weight
        return PluginScores(
            raw, normalized, weight, weighted, None if in_range else find_first_out_of_range(normalized)
        )
