"""Run filters as if nominated pods were on their nominated nodes.

A nominated pod counts for pods of equal or lower priority.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPluginsWithNominatedPods,
addGENominatedPods (1.36).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray
from extender.cycle.filter import FilterResults, run_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.tables.filter_table import make_error_column
from extender.framework.extension_points import PreFilterExtensions
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.result_cache import FilterColumn


def select_nominated_pods(nominated_pods: Iterable[PodInfo], pod: PodInfo) -> list[PodInfo]:
    """Return those of the pods nominated for a node that count for *pod*: other pods of at least its priority."""
    return [
        nominated for nominated in nominated_pods if nominated.priority >= pod.priority and nominated.uid != pod.uid
    ]


def run_filters_with_nominated_pods(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    pre_filter_run: PreFilterRun,
    *,
    all_filters: bool = False,
) -> FilterResults:
    """Return the results of `run_filters` plus the rejections of nodes that fit only without their nominated pods.

    A node must pass with and without its nominated pods: a nominated pod may satisfy the affinity of *pod*, but may be
    bound to another node later. Nominated pods of lower priority and *pod* itself are ignored.
    """
    filter_results = run_filters(pod, snapshot, profile, runtime, pre_filter_run, all_filters=all_filters)
    if not snapshot.nominated_pods_by_node:
        return filter_results
    hypothesis = Hypothesis(snapshot)
    nominated_by_row = _assume_nominated_pods(pod, snapshot, hypothesis, filter_results.evaluated_mask)
    if not nominated_by_row:
        return filter_results
    columns = {
        name: FilterColumn(
            column.rejected.copy(), {reason: mask.copy() for reason, mask in column.masks_by_reason.items()}
        )
        for name, column in filter_results.columns.items()
    }
    plugins = list_plugins_with_extensions(profile, pre_filter_run.skipped_plugins)
    snapshot, call = hypothesis.snapshot(), runtime.runner.call
    for row, assumed_pods in nominated_by_row.items():
        state = dict(pre_filter_run.cycle_state)
        try:
            for plugin in plugins:
                arguments = plugin, state.get(plugin.name), pod, assumed_pods, row, snapshot
                state[plugin.name] = call(plugin, "AddPod", _add_pods_to_copy, *arguments)
        except PluginError as error:
            row_columns = {error.plugin: make_error_column(error, 1)}
        else:
            row_run = replace(pre_filter_run, cycle_state=state)
            row_columns = run_filters_on_row(row, pod, snapshot, profile, runtime, row_run)
        if any(column.rejected[0] for column in row_columns.values()):
            for name, row_column in row_columns.items():
                if name not in columns:  # the plugin did not run before, because earlier plugins rejected all nodes
                    columns[name] = FilterColumn(np.zeros(len(snapshot), dtype=np.bool_))
                _overwrite_row(columns[name], row, row_column)
    return FilterResults(filter_results.evaluated_mask, columns)


def _assume_nominated_pods(
    pod: PodInfo, snapshot: Snapshot, hypothesis: Hypothesis, evaluated_mask: BoolArray
) -> dict[int, list[AssignedPodInfo]]:
    """Assume the nominated pods that count for *pod* on the evaluated nodes of *hypothesis*; return them by row."""
    nominated_by_row: dict[int, list[AssignedPodInfo]] = {}
    for name, pod_infos in snapshot.nominated_pods_by_node.items():
        row = snapshot.row(name)
        if row is None or not evaluated_mask[row]:
            continue
        nominated_pods = select_nominated_pods(pod_infos, pod)
        if nominated_pods:
            nominated_by_row[row] = [hypothesis.assume_pod(pod_info, name) for pod_info in nominated_pods]
    return nominated_by_row


def list_plugins_with_extensions(profile: Profile, skipped: frozenset[str]) -> list[Any]:
    """Return the PreFilter plugins with `PreFilterExtensions`, except those named in *skipped*."""
    return [plugin for plugin in profile.pre_filter_extensions if plugin.name not in skipped]


def _add_pods_to_copy(
    plugin: PreFilterExtensions,
    state: Any,
    pod: PodInfo,
    added_pods: Sequence[AssignedPodInfo],
    row: int,
    snapshot: Snapshot,
) -> Any:
    """Return a copy of the PreFilter *state* of *plugin* for *pod*, as if *added_pods* were on the node in *row*.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreFilterExtensionAddPod (1.36).
    """
    copied_state = plugin.clone(state)
    for added_pod in added_pods:
        plugin.add_pod(pod, added_pod, row, snapshot, copied_state)
    return copied_state


def run_filters_on_row(
    row: int, pod: PodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, pre_filter_run: PreFilterRun
) -> dict[str, FilterColumn]:
    """Run all Filter plugins on the node in *row*; return a column with one entry for each plugin, by name."""
    view = snapshot.view(np.array([row], dtype=np.int64))
    columns: dict[str, FilterColumn] = {}
    for plugin in profile.filter_plugins:
        if plugin.name in pre_filter_run.skipped_plugins:
            continue
        try:
            column = FilterColumn(np.zeros(1, dtype=np.bool_))
            state = pre_filter_run.cycle_state.get(plugin.name)
            column.write(slice(None), runtime.runner.filter(plugin, pod, view, state))
        except PluginError as error:
            column = make_error_column(error, 1)
        columns[plugin.name] = column
    return columns


def _overwrite_row(column: FilterColumn, row: int, row_column: FilterColumn) -> None:
    column.rejected[row] = row_column.rejected[0]
    for mask in column.masks_by_reason.values():
        mask[row] = False
    for reason, mask in row_column.masks_by_reason.items():
        if mask[0]:
            column.masks_by_reason.setdefault(reason, np.zeros(column.node_count, dtype=np.bool_))[row] = True
