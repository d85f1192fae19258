"""Score the feasible nodes, and select one with the highest score.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreScorePlugins, frameworkImpl.RunScorePlugins,
getValidScoreWeights; pkg/scheduler/schedule_one.go, Scheduler.schedulePod, prioritizeNodes (1.36).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_result_cache import get_pod_result_cache
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.tables.score_table import PluginScores, ScoreTable
from extender.framework.plugin_runner import (
    PluginError,
    PluginRunner,
    find_first_out_of_range,
    make_out_of_range_error,
)
from extender.framework.profiles import Profile, WeightedScore
from extender.framework.result_cache import NodeSet
from extender.framework.status import Status


@dataclass(frozen=True, slots=True, eq=False)
class NodeScores:
    """The scores of a node set by each plugin, in tables and outside of them. Valid until the next cycle.

    Attributes:
        plugins: the plugins, without skipped ones, in the order of the profile.
        node_set: the scored nodes.
        tables: the tables with cached scores.
        uncached: the scores by the other plugins, by plugin name.
    """

    plugins: Sequence[WeightedScore]
    node_set: NodeSet
    tables: tuple[ScoreTable, ...]
    uncached: Mapping[str, PluginScores]

    def collect(self) -> dict[str, PluginScores]:
        """Return copies of the scores of all nodes of the set by plugin name, in the order of the profile."""
        scores = {
            name: PluginScores(np.array(entry.raw), np.array(entry.normalized), entry.weight)
            for name, entry in self.uncached.items()
        }
        copy = self.node_set.copy
        for table in self.tables:
            for entry, raw, normalized in zip(table.plugins, copy(table.raw), copy(table.normalized), strict=True):
                scores[entry.plugin.name] = PluginScores(raw, normalized, entry.weight)
        return {entry.plugin.name: scores[entry.plugin.name] for entry in self.plugins}

    def get_row(self, row: int) -> dict[str, tuple[int, int, int]]:
        """Return the raw score, the normalized score and the weight of the node in *row* by plugin name."""
        position = int(self.node_set.rows.searchsorted(row))
        scores = {
            name: (entry.raw.item(position), entry.normalized.item(position), entry.weight)
            for name, entry in self.uncached.items()
        }
        for table in self.tables:
            for number, entry in enumerate(table.plugins):
                values = table.raw.item(number, row), table.normalized.item(number, row)
                scores[entry.plugin.name] = *values, entry.weight
        return {entry.plugin.name: scores[entry.plugin.name] for entry in self.plugins}


@dataclass(frozen=True, slots=True)
class Ranking:
    """The feasible nodes with their total scores. Read-only; the rows and totals are valid until the next cycle.

    Attributes:
        rows: the feasible rows, int64, ascending.
        totals: the sum of the weighted scores of each row, int64.
        node_scores: the scores from which the totals were computed; None if there are none.
        error: the error of PreScore or Score, or None. If there is an error, all other fields are empty.
        best_rows: the rows with the highest total, ascending; None if they are not known yet.
    """

    rows: IntArray
    totals: IntArray
    node_scores: NodeScores | None = None
    error: Status | None = None
    best_rows: Sequence[int] | IntArray | None = None

    @property
    def scores_by_plugin(self) -> Mapping[str, PluginScores]:
        """Copies of the scores by plugin name, without skipped plugins. They are collected each time."""
        return self.node_scores.collect() if self.node_scores is not None else {}

    def find_best_rows(self) -> IntArray:
        """Return the rows with the highest total, int64, ascending."""
        if self.best_rows is not None:
            return np.asarray(self.best_rows, dtype=np.int64)
        if not len(self.rows):
            return self.rows
        best_rows: IntArray = self.rows[(self.totals == self.totals[self.totals.argmax()]).nonzero()[0]]
        return best_rows


def prioritize_nodes(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    feasible: BoolArray,
    pre_filter_run: PreFilterRun,
) -> Ranking:
    """Score the feasible nodes.

    *feasible* is bool, shape (number of nodes,). The state of *pre_filter_run* is passed to Score plugins without
    PreScore, and to those with the attribute `scores_from_pre_filter`.
    """
    node_set = runtime.result_cache.get_node_set(feasible)
    view = node_set.view(snapshot)
    if not profile.score_plugins:  # PreScore is skipped too
        return Ranking(node_set.rows, np.ones(len(node_set.rows), dtype=np.int64))
    runner = runtime.runner
    point, start_time = "PreScore", runner.start_timer()
    try:
        pre_score_run = _run_pre_score_plugins(pod, view, profile, runtime)
        _add_pre_filter_states(pre_score_run, profile, pre_filter_run)
        runner.observe_extension_point(profile.scheduler_name, point, None, start_time)
        point, start_time = "Score", runner.start_timer()
        node_scores = _run_score_plugins(profile.score_plugins, pod, view, runtime, pre_score_run, node_set)
    except PluginError as error:
        runner.observe_extension_point(profile.scheduler_name, point, error.status, start_time)
        no_scores = np.empty(0, dtype=np.int64)
        return Ranking(no_scores, no_scores, error=error.status)
    runner.observe_extension_point(profile.scheduler_name, point, None, start_time)
    return _rank(node_scores, runtime)


def _rank(node_scores: NodeScores, runtime: PluginRuntime) -> Ranking:
    """Sum the scores of each node."""
    node_set, rows = node_scores.node_set, node_scores.node_set.rows
    if not node_scores.tables:
        totals = np.zeros(len(rows), dtype=np.int64)
    else:
        cached_totals = runtime.score_tables.get_totals(node_scores.tables)
        totals = node_set.take(cached_totals.sums)
        if not node_scores.uncached:
            return Ranking(rows, totals, node_scores, best_rows=cached_totals.find_best_rows(node_set, totals))
        if node_set.is_all_nodes:
            totals = totals.copy()
    for scores in node_scores.uncached.values():
        totals += scores.normalized if scores.weight == 1 else scores.normalized * scores.weight
    return Ranking(rows, totals, node_scores)


class _PreScoreRun(NamedTuple):
    """The names of the plugins whose Score is skipped, and the state of each plugin by name."""

    skipped_plugins: frozenset[str]
    states: dict[str, Any]


def _run_score_plugins(
    entries: tuple[WeightedScore, ...],
    pod: PodInfo,
    view: NodeView,
    runtime: PluginRuntime,
    pre_score_run: _PreScoreRun,
    node_set: NodeSet,
) -> NodeScores:
    """Return the scores of *node_set*, whose nodes *view* has, by each plugin of *entries*.

    Raises:
        PluginError: a plugin raised or returned invalid scores, or a final score is out of range.
    """
    runner, (skipped, states), tables = runtime.runner, pre_score_run, tuple[ScoreTable, ...]()
    if runtime.result_cache.enabled:
        try:
            tables, plan = runtime.score_tables.get_tables(entries, skipped, pod, view, states, node_set)
        except PluginError as error:
            raise _find_first_error(error, entries, pod, view, runner, pre_score_run) from error
        entries, uncached_entries = plan.entries, plan.uncached
    else:
        entries = uncached_entries = tuple(entry for entry in entries if entry.plugin.name not in skipped)
    uncached: dict[str, PluginScores] = {}
    for entry in uncached_entries:
        plugin, name = entry.plugin, entry.plugin.name
        raw = normalized = runner.score(plugin, pod, view, states.get(name))
        if hasattr(plugin, "normalize_score"):
            normalized = runner.normalize_score(plugin, pod, raw, view, states.get(name))
        uncached[name] = PluginScores(raw, normalized, entry.weight)
    node_scores = NodeScores(entries, node_set, tables, uncached)
    for table in tables:
        if not table.in_range:
            _check_score_range(entries, node_scores.collect())
            return node_scores
    if uncached:
        _check_score_range(entries, uncached)
    return node_scores


def _find_first_error(
    error: PluginError,
    entries: tuple[WeightedScore, ...],
    pod: PodInfo,
    view: NodeView,
    runner: PluginRunner,
    pre_score_run: _PreScoreRun,
) -> PluginError:
    """Return the error of the first of *entries* whose Score fails; *error* is of a plugin that may have run earlier.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins (1.36).
    """
    skipped, states = pre_score_run
    for name, plugin in ((entry.plugin.name, entry.plugin) for entry in entries):
        if name == error.plugin and error.extension_point == "Score":
            break
        if name not in skipped:
            try:
                runner.score(plugin, pod, view, states.get(name))
            except PluginError as earlier_error:
                return earlier_error
    return error


def _check_score_range(entries: Sequence[WeightedScore], scores: Mapping[str, PluginScores]) -> None:
    """Check that all final *scores*, by plugin name, are in range. *entries* are the plugins in order.

    Raises:
        PluginError: a score is out of range. If there are several such scores, the error is about the first node, and
            there about the first plugin.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins (1.36).
    """
    violations = []
    for entry in entries:
        name = entry.plugin.name
        position = find_first_out_of_range(scores[name].normalized) if name in scores else None
        if position is not None:
            violations.append((position, entry.plugin))
    if violations:
        position, plugin = min(violations, key=lambda violation: violation[0])
        raise make_out_of_range_error(plugin, scores[plugin.name].normalized.item(position))


def _run_pre_score_plugins(pod: PodInfo, view: NodeView, profile: Profile, runtime: PluginRuntime) -> _PreScoreRun:
    runner = runtime.runner
    cache = get_pod_result_cache(pod, "PreScore", profile.pre_score_plugins, enabled=runtime.result_cache.enabled)
    cycle_state, skipped_plugins = dict(cache.cycle_state), set(cache.skipped_plugins)
    for plugin in cache.plugins_to_run:
        result = runner.pre_score(plugin, pod, view)
        cache.record(runner, plugin, pod, "PreScore", result)
        if result.status is not None and not result.status.is_success:
            raise PluginError(plugin.name, "PreScore", result.status.message)
        if result.skip:
            skipped_plugins.add(plugin.name)
        else:
            cycle_state[plugin.name] = result.state
    cache.finish_run()
    return _PreScoreRun(frozenset(skipped_plugins), cycle_state)


def _add_pre_filter_states(run: _PreScoreRun, profile: Profile, pre_filter_run: PreFilterRun) -> None:
    """Add the states of PreFilter that Score plugins read.

    Raises:
        PluginError: PreScore of a plugin reads the state, but PreFilter of the plugin is disabled.
    """
    for name, has_pre_score in profile.pre_filter_state_readers:
        state = run.states[name] = pre_filter_run.cycle_state.get(name)
        if has_pre_score and state is None and name not in run.skipped_plugins:
            raise PluginError(name, "PreScore", "not found")


def select_host(ranking: Ranking, rng: Random) -> int:
    """Return one of the best rows of *ranking*, which is not empty. Each is equally likely, as before 1.35.

    Source: pkg/scheduler/schedule_one.go, nodeScoreHeap.Less (1.36).
    """
    best_rows = ranking.best_rows
    if best_rows is None:
        best_rows = ranking.find_best_rows()
    return int(best_rows[select_index(len(best_rows), rng)])


def select_index(count: int, rng: Random) -> int:
    """Return an index below *count*, each with the same probability."""
    return 0 if count == 1 else rng.randrange(count)
