"""Score the feasible nodes, and select one with the highest score.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreScorePlugins, frameworkImpl.RunScorePlugins,
getValidScoreWeights; pkg/scheduler/schedule_one.go, Scheduler.schedulePod, prioritizeNodes (1.36).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cycle.filter import make_full_mask
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_result_cache import get_pre_score_cache
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.score_table import NodeSetScores, PluginScores
from extender.framework.plugin_runner import PluginError, make_out_of_range_error
from extender.framework.profiles import Profile, WeightedScore
from extender.framework.result_cache import NodeSet
from extender.framework.status import Status


@dataclass(frozen=True, slots=True)
class Ranking:
    """The feasible nodes with their total scores. Read-only, valid until the next cycle.

    Attributes:
        rows: the feasible rows, int64, ascending.
        totals: the sum of the weighted scores of each row, int64.
        scores_by_plugin: the scores by plugin name, without skipped plugins.
        error: the error of PreScore or Score, or None. If there is an error, all other fields are empty.
        best_positions: the positions in `rows` with the highest total, ascending; None if not tracked.
    """

    rows: IntArray
    totals: IntArray
    scores_by_plugin: Mapping[str, PluginScores] = field(default_factory=dict)
    error: Status | None = None
    best_positions: Sequence[int] | None = None

    def find_best_rows(self) -> IntArray:
        """Return the rows with the highest total, int64, ascending."""
        if not len(self.rows):
            return self.rows
        if self.best_positions is not None:
            return self.rows[self.best_positions]
        best_total = self.totals[self.totals.argmax()]
        best_positions: IntArray = (self.totals == best_total).nonzero()[0]
        covers_all_nodes = self.rows.item(-1) == len(self.rows) - 1  # then positions equal rows
        return best_positions if covers_all_nodes else self.rows[best_positions]


def prioritize_nodes(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    feasible: BoolArray,
    pre_filter_run: PreFilterRun,
) -> Ranking:
    """Score the feasible nodes.

    Args:
        pod: the pod to schedule.
        snapshot: the cluster.
        profile: the profile with the plugins.
        runtime: the runtime that calls the plugins.
        feasible: the nodes to score, bool, shape (number of nodes,).
        pre_filter_run: the outcome of PreFilter; its state is passed to Score plugins without PreScore.
    """
    node_set = runtime.result_cache.get_node_set(feasible)
    rows, view = node_set.rows, node_set.view(snapshot)
    if not profile.score_plugins:  # PreScore is skipped too
        return Ranking(rows, np.ones(len(rows), dtype=np.int64))

    def get_scores(weighted_plugin: WeightedScore, plugin_state: Any) -> NodeSetScores:
        return runtime.score_table.get_plugin_scores(weighted_plugin, pod, view, plugin_state, node_set)

    node_set_scores = _run_score_plugins(pod, view, profile, runtime, pre_filter_run, get_scores)
    if isinstance(node_set_scores, Status):
        return _make_error_ranking(node_set_scores)
    totals = runtime.score_table.sum_scores(tuple(node_set_scores.values()), len(rows))
    scores_by_plugin = {name: entry.scores for name, entry in node_set_scores.items()}
    return Ranking(rows, totals.sums, scores_by_plugin, best_positions=totals.best_positions)


def prioritize_changing_nodes(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    feasible: BoolArray,
    pre_filter_run: PreFilterRun,
) -> tuple[Ranking, Mapping[str, NodeSetScores]]:
    """Score the feasible nodes like `prioritize_nodes`, if they are other nodes for each pod.

    A score that does not depend on the other feasible nodes is cached for all nodes, so that a pod with other feasible
    nodes needs only a part of the sums.

    Returns:
        The ranking, without `scores_by_plugin`; and the scores by plugin name, of all or only of the feasible nodes.
    """
    rows = feasible.nonzero()[0]
    if not profile.score_plugins:  # PreScore is skipped too
        return Ranking(rows, np.ones(len(rows), dtype=np.int64)), {}
    all_nodes = runtime.result_cache.get_node_set(make_full_mask(len(snapshot)))
    node_set = NodeSet(feasible, rows, is_all_nodes=False)
    view = node_set.view(snapshot)

    def get_scores(weighted_plugin: WeightedScore, plugin_state: Any) -> NodeSetScores:
        return runtime.score_table.get_plugin_scores(weighted_plugin, pod, view, plugin_state, node_set, all_nodes)

    node_set_scores = _run_score_plugins(pod, view, profile, runtime, pre_filter_run, get_scores)
    if isinstance(node_set_scores, Status):
        return _make_error_ranking(node_set_scores), {}
    of_all_nodes = [entry for entry in node_set_scores.values() if entry.node_set is all_nodes]
    totals = runtime.score_table.sum_scores(of_all_nodes, len(snapshot)).sums.take(rows)
    for entry in node_set_scores.values():
        if entry.node_set is not all_nodes:
            totals += entry.scores.weighted
    return Ranking(rows, totals), node_set_scores


def _make_error_ranking(error: Status) -> Ranking:
    no_scores = np.empty(0, dtype=np.int64)
    return Ranking(no_scores, no_scores, error=error)


def _run_score_plugins(
    pod: PodInfo,
    view: NodeView,
    profile: Profile,
    runtime: PluginRuntime,
    pre_filter_run: PreFilterRun,
    get_scores: Callable[[WeightedScore, Any], NodeSetScores],
) -> dict[str, NodeSetScores] | Status:
    """Run PreScore, and return the scores of each plugin that it did not skip, by name; or the status of an error.

    *get_scores* returns the scores of a plugin with the state of its PreScore or PreFilter.
    """
    node_set_scores: dict[str, NodeSetScores] = {}
    runner = runtime.runner
    point, start_time = "PreScore", runner.start_timer()
    try:
        skipped_plugins, cycle_state = _run_pre_score_plugins(pod, view, profile, runtime)
        runner.observe_extension_point(profile.scheduler_name, point, None, start_time)
        point, start_time = "Score", runner.start_timer()
        for weighted_plugin in profile.score_plugins:
            name = weighted_plugin.plugin.name
            if name not in skipped_plugins:
                plugin_states = (
                    cycle_state if hasattr(weighted_plugin.plugin, "pre_score") else pre_filter_run.cycle_state
                )
                node_set_scores[name] = get_scores(weighted_plugin, plugin_states.get(name))
        _check_score_range(profile, node_set_scores)
    except PluginError as error:
        runner.observe_extension_point(profile.scheduler_name, point, error.status, start_time)
        return error.status
    runner.observe_extension_point(profile.scheduler_name, point, None, start_time)
    return node_set_scores


def _check_score_range(profile: Profile, node_set_scores: Mapping[str, NodeSetScores]) -> None:
    """Check that all final scores are in range.

    Raises:
        PluginError: a score is out of range. If there are several such scores, the error is about the first node, and
            there about the first plugin.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins (1.36).
    """
    violations = [
        (entry.scores.out_of_range_position, name)
        for name, entry in node_set_scores.items()
        if entry.scores.out_of_range_position is not None
    ]
    if violations:
        position, name = min(violations, key=lambda violation: violation[0])
        plugin = next(
            weighted_plugin.plugin for weighted_plugin in profile.score_plugins if weighted_plugin.plugin.name == name
        )
        raise make_out_of_range_error(plugin, int(node_set_scores[name].scores.normalized[position]))


def _run_pre_score_plugins(
    pod: PodInfo, view: NodeView, profile: Profile, runtime: PluginRuntime
) -> tuple[set[str], dict[str, Any]]:
    runner = runtime.runner
    cache = get_pre_score_cache(pod, profile.pre_score_plugins, enabled=runtime.result_cache.enabled)
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
    return skipped_plugins, cycle_state


def select_host(ranking: Ranking, rng: Random) -> int:
    """Return one of the best rows of *ranking*, which is not empty. Each is equally likely, as before 1.35.

    Source: pkg/scheduler/schedule_one.go, nodeScoreHeap.Less (1.36).
    """
    positions = ranking.best_positions
    if positions is None:
        rows = ranking.find_best_rows()
        return rows.item(select_index(len(rows), rng))
    return ranking.rows.item(positions[select_index(len(positions), rng)])


def select_index(count: int, rng: Random) -> int:
    """Return an index below *count*, each with the same probability."""
    return 0 if count == 1 else rng.randrange(count)
