"""Cache the scores of Score plugins in tables, and the totals: one row per plugin, one column per node.

Only the scores and totals of changed nodes are computed again. Cached and fresh scores are equal; a property test
compares them.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins, getValidScoreWeights;
pkg/scheduler/schedule_one.go, Scheduler.schedulePod (1.36).
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.framework.plugin_runner import PluginRunner, find_first_out_of_range
from extender.framework.profiles import WeightedScore
from extender.framework.result_cache import NodeSet, ResultTable, TablePlan, TableStore

_MAX_SINGLE_ROWS = 4
"""The maximum number of changed rows that are summed one by one. Above it, arrays are faster than plain integers."""

_MAX_CACHED_TOTALS = 16
"""The maximum number of cached totals, each 8 bytes per node."""


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores of the feasible nodes, int64, in the order of `Ranking.rows`.

    Attributes:
        raw: the scores that the plugin returned.
        normalized: the scores after NormalizeScore. A score outside 0 to 100 is an error of the plugin.
        weight: the weight of the plugin in the profile.
    """

    raw: IntArray
    normalized: IntArray
    weight: int


class ScoreTable(ResultTable):
    """The scores by some plugins for the pods with equal cache keys.

    The normalized scores of a plugin with NormalizeScore are those of a node set, because a raw score may change the
    normalized scores of other nodes. There is one exception: if the raw scores of all nodes are equal, and the plugin
    has `normalizes_only_by_scores`, the normalized scores are the same in each node set. *plugins* has at least one.
    *states* are the states of PreScore or PreFilter by plugin name.

    Attributes:
        plugins: the plugins with their weights, by row.
        raw: the raw scores, int64, shape (number of plugins, number of nodes).
        normalized: the normalized scores, like `raw`; the same array if no plugin has NormalizeScore.
        in_range: whether all normalized scores written so far are from 0 to 100.
        version: the number of changes of `normalized`.
        changed_rows: the nodes with changed scores in the last change, int64; None: all nodes.

    Raises:
        PluginError: a plugin failed.
    """

    __slots__ = (
        "_node_set",
        "_relative_rows",
        "_sums",
        "_weights",
        "changed_rows",
        "in_range",
        "normalized",
        "plugins",
        "raw",
        "version",
    )

    def __init__(
        self,
        plugins: Sequence[WeightedScore],
        pod: PodInfo,
        snapshot: Snapshot,
        states: Mapping[str, Any],
        runner: PluginRunner,
    ) -> None:
        self.plugins, size, view = plugins, len(snapshot), snapshot.view()
        self.raw: IntArray = np.empty((len(plugins), size), dtype=np.int64)
        for raw, entry in zip(self.raw, plugins, strict=True):
            raw[:] = runner.score(entry.plugin, pod, view, states.get(entry.plugin.name))
        self.normalized = self.raw
        self._relative_rows: dict[int, bool] = {}  # by row with NormalizeScore: whether it depends on the node set
        for number, entry in enumerate(plugins):
            plugin: Any = entry.plugin
            if hasattr(plugin, "normalize_score"):
                if self.normalized is self.raw:
                    self.normalized = self.raw.copy()
                raw = self.raw[number]
                is_relative = not getattr(plugin, "normalizes_only_by_scores", False) or bool((raw != raw[:1]).any())
                self._relative_rows[number] = is_relative
                self.normalized[number] = (
                    0 if is_relative else runner.normalize_score(plugin, pod, raw, view, states.get(plugin.name))
                )
        self.in_range = find_first_out_of_range(self.normalized.ravel()) is None
        self.version = 0
        self.changed_rows: IntArray | None = None
        self._node_set: NodeSet | None = None
        self._weights = [entry.weight for entry in plugins]
        self._sums: IntArray | None = None  # the weighted sums of the rows that do not depend on the node set
        depends_on = (entry.plugin.score_depends_on for entry in plugins)  # type: ignore[attr-defined]
        super().__init__(depends_on, snapshot, self.raw.nbytes * (1 if self.normalized is self.raw else 2))

    def _evaluate(
        self, rows: IntArray, pod: PodInfo, view: NodeView, states: Mapping[str, Any], runner: PluginRunner
    ) -> None:
        """Score the nodes of *rows*, which are those of *view*."""
        scores = [runner.score(entry.plugin, pod, view, states.get(entry.plugin.name)) for entry in self.plugins]
        for number, raw in enumerate(scores):
            self._write(number, rows, raw)
        self._finish_write(rows)

    def _write(self, number: int, rows: IntArray, raw: IntArray) -> None:
        """Write the *raw* scores of *rows* by the plugin with this *number*."""
        if number in self._relative_rows:
            if self._relative_rows[number] or (raw != self.raw[number, 0]).any():
                self._relative_rows[number] = True
                self._node_set = None
        else:
            self.in_range = self.in_range and find_first_out_of_range(raw) is None
            if self.normalized is not self.raw:
                self.normalized[number, rows] = raw
        self.raw[number, rows] = raw

    def _finish_write(self, rows: IntArray) -> None:
        """Record that the scores of *rows* changed."""
        self.version += 1
        self.changed_rows, self._sums = rows, None

    def normalize(
        self, pod: PodInfo, view: NodeView, states: Mapping[str, Any], runner: PluginRunner, node_set: NodeSet
    ) -> None:
        """Make the normalized scores those of *node_set*. *view* has its nodes.

        Raises:
            PluginError: a plugin failed. The table is unchanged.
        """
        if node_set is self._node_set:
            return
        numbers = [number for number, is_relative in self._relative_rows.items() if is_relative]
        scores: list[IntArray] = []
        for number in numbers:
            plugin = self.plugins[number].plugin
            raw = view.take(self.raw[number])
            scores.append(runner.normalize_score(plugin, pod, raw, view, states.get(plugin.name)))
        for number, normalized in zip(numbers, scores, strict=True):
            self.normalized[number, node_set.selection] = normalized
            self.in_range = self.in_range and find_first_out_of_range(normalized) is None
            self.changed_rows = None
        self._node_set = node_set
        self.version += bool(numbers)

    def add_to(self, sums: IntArray) -> None:
        """Add the weighted sum of the normalized scores of each node to *sums*."""
        numbers: Iterable[int] = range(len(self.plugins))
        if not self.depends_on_pods:  # otherwise the sum would be used once
            if self._sums is None:
                weights = [
                    0 if self._relative_rows.get(number) else weight for number, weight in enumerate(self._weights)
                ]
                self._sums = np.array(weights, dtype=np.int64) @ self.normalized
            sums += self._sums
            numbers = [number for number, is_relative in self._relative_rows.items() if is_relative]
        for number in numbers:
            scores, weight = self.normalized[number], self._weights[number]
            sums += scores if weight == 1 else scores * weight

    def sum_row(self, row: int) -> int:
        """Return the weighted sum of the normalized scores of the node in *row*."""
        item = self.normalized.item  # plain integers are faster than arrays here
        return sum([weight * item(number, row) for number, weight in enumerate(self._weights)])

    def sum_rows(self, rows: IntArray) -> IntArray:
        """Return the weighted sums of the normalized scores of the nodes in *rows*."""
        return np.array(self._weights, dtype=np.int64) @ self.normalized[:, rows]


class ScoreTotals:
    """The sums of the weighted normalized scores of some tables. Valid until the next cycle.

    Attributes:
        sums: the sum for each node, int64, shape (number of nodes,).
    """

    __slots__ = ("_best_rows", "_best_total", "_last_node_set", "_node_set", "_tables", "_versions", "sums")

    def __init__(self, tables: Sequence[ScoreTable]) -> None:
        self._tables = tables
        self._last_node_set: NodeSet | None = None
        self._best_rows: list[int] = []
        self._best_total = 0
        self._compute()

    def _compute(self) -> None:
        self._versions = [table.version for table in self._tables]
        self.sums: IntArray = np.zeros(self._tables[0].node_count, dtype=np.int64)
        for table in self._tables:
            table.add_to(self.sums)
        self._node_set: NodeSet | None = None  # the node set of the best rows; None if they are not known

    def update(self) -> None:
        """Update the sums to the current versions of the tables."""
        for number, table in enumerate(self._tables):
            old_version = self._versions[number]
            if table.version != old_version:
                if table.version != old_version + 1 or table.changed_rows is None:
                    self._compute()
                    return
                self._versions[number] = table.version
                self._update_sums(table.changed_rows)

    def _update_sums(self, rows: IntArray) -> None:
        if len(rows) > _MAX_SINGLE_ROWS:
            self.sums[rows] = sum([table.sum_rows(rows) for table in self._tables])
            self._node_set = None
            return
        for row in rows.tolist():  # usually one, after a pod is assumed
            total = sum([table.sum_row(row) for table in self._tables])
            self.sums[row] = total
            if self._node_set is not None and self._node_set.mask[row]:
                self._update_best_rows(row, total)

    def _update_best_rows(self, row: int, total: int) -> None:
        """Update the best rows after the sum of *row*, which is in the node set, changed to *total*."""
        best_rows = self._best_rows
        if total > self._best_total:
            best_rows[:], self._best_total = [row], total
            return
        index = bisect_left(best_rows, row)
        was_best = index < len(best_rows) and best_rows[index] == row
        if total == self._best_total:
            if not was_best:
                best_rows.insert(index, row)
        elif was_best:
            del best_rows[index]
            if not best_rows:
                self._node_set = None

    def find_best_rows(self, node_set: NodeSet, sums: IntArray) -> list[int] | IntArray:
        """Return the rows of *node_set*, which is not empty, with the highest of their *sums*, ascending.

        If the node set is the same as in the last call, the rows are updated with the sums from now on.
        """
        if node_set is self._node_set:
            return self._best_rows
        best_total = sums.item(sums.argmax())
        positions = (sums == best_total).nonzero()[0]
        best_rows: IntArray = positions if node_set.is_all_nodes else node_set.rows.take(positions)
        if node_set is not self._last_node_set:
            self._last_node_set, self._node_set = node_set, None
            return best_rows
        self._node_set, self._best_rows, self._best_total = node_set, best_rows.tolist(), best_total
        return self._best_rows


class ScoreTables:
    """The score tables and totals of one plugin runtime. Not thread-safe: one per scheduling thread."""

    def __init__(self, runner: PluginRunner) -> None:
        self._runner = runner
        self._store = TableStore[ScoreTable]("Score", runner, lambda entry: entry.plugin)
        self._totals: dict[tuple[ScoreTable, ...], ScoreTotals] = {}

    def get_tables(
        self,
        entries: tuple[WeightedScore, ...],
        skipped: frozenset[str],
        pod: PodInfo,
        view: NodeView,
        states: Mapping[str, Any],
        node_set: NodeSet,
    ) -> tuple[tuple[ScoreTable, ...], TablePlan]:
        """Return tables with the scores by those plugins that allow caching them. Do not modify them.

        The plugins of *entries* named in *skipped* do not run. *states* are the states of PreScore or PreFilter by
        plugin name. Scores are normalized for *node_set*, whose nodes *view* has.

        Returns:
            The tables, and the plan, which has the other plugins.

        Raises:
            PluginError: a plugin raised or returned invalid scores.
        """
        runner, snapshot = self._runner, view.snapshot
        plan, found_tables, errors = self._store.find(entries, skipped, pod)
        if errors:
            raise next(iter(errors.values()))
        tables: list[ScoreTable] = []
        for key, table in found_tables:
            if table is None or not (table.is_current(snapshot) or table.update(pod, snapshot, states, runner)):
                table = ScoreTable(key[0].entries, pod, snapshot, states, runner)  # noqa: PLW2901
                self._store.add(key, table, pod.signature.byte_count)
            table.normalize(pod, view, states, runner, node_set)
            tables.append(table)
        return tuple(tables), plan

    def get_totals(self, tables: tuple[ScoreTable, ...]) -> ScoreTotals:
        """Return the totals of *tables*, at least one."""
        totals = self._totals.pop(tables, None)
        if totals is None:
            totals = ScoreTotals(tables)
            while len(self._totals) >= _MAX_CACHED_TOTALS:
                del self._totals[next(iter(self._totals))]
        else:
            totals.update()
        self._totals[tables] = totals
        return totals
