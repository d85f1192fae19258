"""Run Filter plugins on nodes to which pods are hypothetically added or removed. Each node is tried independently.

One hypothesis covers thousands of nodes, because most filters depend only on a node and its pods. Filters that depend
on other nodes use PreFilter state, which must be updated for each node. `BatchPreFilterExtensions` do this for all
nodes in one call; for other plugins with `PreFilterExtensions`, each node gets a copy of the state.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo, make_assigned_pod_info
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, make_mask
from extender.cycle.filter import FilterResults
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.result_cache import FilterColumn
from extender.framework.status import Code


def select_nominated_pods(nominated_pods: Iterable[PodInfo], pod: PodInfo) -> list[PodInfo]:
    """Return those of the pods nominated for a node that count for *pod*: other pods of at least its priority."""
    return [
        nominated for nominated in nominated_pods if nominated.priority >= pod.priority and nominated.uid != pod.uid
    ]


def list_plugins_with_extensions(profile: Profile, skipped: frozenset[str]) -> list[Any]:
    """Return the PreFilter plugins with `PreFilterExtensions`, except those named in *skipped*."""
    return [plugin for plugin in profile.pre_filter_extensions if plugin.name not in skipped]


@dataclass(frozen=True, slots=True)
class DryRunInputs:
    """The pod and plugins of a dry run.

    Attributes:
        pod: the pod to schedule, such as a preemptor.
        snapshot: the cluster.
        profile: the profile with the Filter plugins.
        runtime: the runtime that calls the plugins.
        pre_filter_run: the outcome of PreFilter on *snapshot*.
    """

    pod: PodInfo
    snapshot: Snapshot
    profile: Profile
    runtime: PluginRuntime
    pre_filter_run: PreFilterRun


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The result of filtering several nodes.

    Attributes:
        fits: whether each node fits the pod: bool, one entry per node.
        filter_runs: pairs of node positions in `fits` and the filter results of these nodes.
    """

    fits: BoolArray
    filter_runs: tuple[tuple[IntArray, FilterResults], ...]

    def count_reasons(self) -> Counter[str]:
        """Return the number of nodes by reason, counting only the first plugin that rejects a node."""
        counts: Counter[str] = Counter()
        for _, filter_results in self.filter_runs:
            for plugin, rows in filter_results.find_first_rejections().items():
                for reason, mask in filter_results.columns[plugin].masks_by_reason.items():
                    counts[reason.text] += int(np.count_nonzero(mask & rows))
        return +counts

    def get_errors(self) -> list[str]:
        """Return the error messages of plugins that failed on a node."""
        messages: list[str] = []
        for _, filter_results in self.filter_runs:
            columns = filter_results.columns.values()
            if any(reason.code is Code.ERROR for column in columns for reason in column.masks_by_reason):
                statuses = map(filter_results.get_first_rejection_status, range(len(filter_results.evaluated_mask)))
                messages += [status.message for status in statuses if status is not None and status.code is Code.ERROR]
        return messages


class DryRun:
    """A hypothesis from which pods are removed and to which they are added again.

    At the start, all pods are on their nodes.

    Attributes:
        batch: the removable pods, followed by the pods nominated for the same nodes.
        nominated_rows: those of the filtered rows with nominated pods that count for the pod to schedule, int64.
        errors: by row, the error of a plugin that failed to update its state; such a row does not fit.
    """

    def __init__(self, inputs: DryRunInputs, rows: IntArray, pods: PodBatch) -> None:
        """Start with all pods on their nodes.

        *rows* are filtered. The removable *pods* are all on them.
        """
        self._inputs = inputs
        self._hypothesis = Hypothesis(inputs.snapshot)
        self.batch = pods
        self._nominated_indices: dict[int, list[int]] = {}
        nominated_by_row = _find_nominated_pods_by_row(inputs, rows)
        if nominated_by_row:
            nominated_rows = [row for row, nominated_pods in nominated_by_row.items() for _ in nominated_pods]
            all_pods = [*pods.pods, *(pod for nominated_pods in nominated_by_row.values() for pod in nominated_pods)]
            self.batch = PodBatch(all_pods, np.concatenate((pods.rows, np.array(nominated_rows, dtype=np.int64))))
            for index, row in enumerate(nominated_rows, len(pods)):
                self._nominated_indices.setdefault(row, []).append(index)
        self._count_deltas: IntArray = np.zeros(len(self.batch), dtype=np.int64)
        plugins = list_plugins_with_extensions(inputs.profile, inputs.pre_filter_run.skipped_plugins)
        self._states_by_row: dict[str, dict[int, Any]] = {
            plugin.name: {} for plugin in plugins if plugin.name not in inputs.profile.batch_extension_names
        }
        self.nominated_rows: IntArray = np.array(list(self._nominated_indices), dtype=np.int64)
        self.errors: dict[int, PluginError] = {}

    # -- remove and add pods

    def remove_pods(self, indices: IntArray) -> None:
        """Remove the pods at *indices* of `batch` from their nodes."""
        self._hypothesis.evict_pods(self.batch, indices)
        self._count_deltas[indices] -= 1
        self._update_states(indices, adding=False)

    def restore_pods(self, indices: IntArray) -> None:
        """Add the removed pods at *indices* of `batch` to their nodes."""
        self._hypothesis.restore_pods(self.batch, indices)
        self._count_deltas[indices] += 1
        self._update_states(indices, adding=True)

    def _update_states(self, indices: IntArray, *, adding: bool) -> None:
        """Update the plugins' copies of their PreFilter state."""
        if not self._states_by_row:
            return
        snapshot = self._hypothesis.snapshot()
        for plugin in self._inputs.profile.pre_filter_extensions:
            states_by_row = self._states_by_row.get(plugin.name)
            if states_by_row is None:
                continue
            method, point = (plugin.add_pod, "AddPod") if adding else (plugin.remove_pod, "RemovePod")
            for index in indices.tolist():
                row = int(self.batch.rows[index])
                if row in self.errors:
                    continue
                try:
                    state = states_by_row.get(row)
                    if state is None:
                        original = self._get_plugin_state(plugin.name)
                        state = states_by_row[row] = self._call(plugin, point, plugin.clone, original)
                    self._call(plugin, point, method, self._inputs.pod, self.batch.pods[index], row, snapshot, state)
                except PluginError as error:
                    self.errors[row] = error

    def _call(self, plugin: Any, point: str, method: Callable[..., Any], *args: Any) -> Any:
        return self._inputs.runtime.runner.call(plugin, point, method, *args)

    def _get_plugin_state(self, plugin: str) -> Any:
        return self._inputs.pre_filter_run.cycle_state.get(plugin)

    # -- filter

    def run_filters(self, rows: IntArray) -> DryRunResult:
        """Run the Filter plugins on *rows* with the current pods.

        A node must pass with and without the pods nominated for it.

        Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPluginsWithNominatedPods;
        pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.SelectVictimsOnNode
        (1.36).
        """
        fits = np.ones(len(rows), dtype=np.bool_)
        filter_runs: list[tuple[IntArray, FilterResults]] = []
        nominated_positions = np.flatnonzero(np.isin(rows, self.nominated_rows))
        if len(nominated_positions):
            filter_results = self.run_filters_with_nominated(rows[nominated_positions])
            rejected = ~filter_results.find_feasible_nodes()
            fits[nominated_positions[rejected]] = False
            filter_runs.append((nominated_positions[rejected], _restrict_results(filter_results, rejected)))
        remaining = np.flatnonzero(fits)
        filter_results = self._run_filter_plugins(rows[remaining])
        fits[remaining] = filter_results.find_feasible_nodes()
        filter_runs.append((remaining, filter_results))
        fits &= ~np.isin(rows, list(self.errors))
        return DryRunResult(fits, tuple(filter_runs))

    def run_filters_with_nominated(self, rows: IntArray, *, all_filters: bool = False) -> FilterResults:
        """Run the Filter plugins on *rows*, which are among `nominated_rows`, with the pods nominated for them.

        The results have one entry for each of *rows*. With *all_filters*, every plugin evaluates each of them.
        """
        indices = np.array([index for row in rows.tolist() for index in self._nominated_indices[row]], dtype=np.int64)
        saved_states = {name: dict(states_by_row) for name, states_by_row in self._states_by_row.items()}
        for plugin in self._inputs.profile.pre_filter_extensions:
            states_by_row = self._states_by_row.get(plugin.name, {})
            for row in rows.tolist():
                if row in states_by_row:
                    states_by_row[row] = plugin.clone(states_by_row[row])
        self.restore_pods(indices)
        filter_results = self._run_filter_plugins(rows, all_filters=all_filters)
        self._hypothesis.remove_pods(self.batch, indices)
        self._count_deltas[indices] -= 1
        self._states_by_row = saved_states
        return filter_results

    def _run_filter_plugins(self, rows: IntArray, *, all_filters: bool = False) -> FilterResults:
        """Run the Filter plugins in order, each on the rows that no earlier plugin rejected, or on all rows."""
        snapshot = self._hypothesis.snapshot()
        remaining = np.ones(len(rows), dtype=np.bool_)
        columns: dict[str, FilterColumn] = {}
        for plugin in self._inputs.profile.filter_plugins:
            if plugin.name in self._inputs.pre_filter_run.skipped_plugins:
                continue
            positions = np.flatnonzero(remaining)
            if not len(positions):
                break
            column = columns[plugin.name] = FilterColumn(np.zeros(len(rows), dtype=np.bool_))
            self._fill_column(column, plugin, positions, rows, snapshot)
            if column.masks_by_reason and not all_filters:
                remaining &= ~column.rejected
        return FilterResults(np.ones(len(rows), dtype=np.bool_), columns)

    def _fill_column(
        self, column: FilterColumn, plugin: Any, positions: IntArray, rows: IntArray, snapshot: Snapshot
    ) -> None:
        """Write the rejections of *plugin* for the *rows* at *positions*."""
        state, states_by_row = self._get_plugin_state(plugin.name), self._states_by_row.get(plugin.name)
        if states_by_row is None:
            self._write_rejections(column, plugin, positions, snapshot.view(rows[positions]), state)
            return
        for position in np.split(positions, len(positions)):
            row_state = states_by_row.get(int(rows[position[0]]), state)
            self._write_rejections(column, plugin, position, snapshot.view(rows[position]), row_state)

    def _write_rejections(
        self, column: FilterColumn, plugin: Any, positions: IntArray, view: NodeView, state: Any
    ) -> None:
        """Write the rejections of the nodes of *view*, which are at *positions* of the column."""
        runner, pod = self._inputs.runtime.runner, self._inputs.pod
        try:
            if plugin.name in self._inputs.profile.batch_extension_names:
                point = "RemovePod" if (self._count_deltas < 0).any() else "AddPod"
                changes = self.batch, self._count_deltas
                state = self._call(plugin, point, plugin.apply_pod_changes, pod, *changes, view.snapshot, state)
            rejections = runner.filter(plugin, pod, view, state)
        except PluginError as error:
            rejections = error.reject_all(len(positions))
        column.write(positions, rejections)


def _restrict_results(filter_results: FilterResults, mask: BoolArray) -> FilterResults:
    """Return *filter_results* for the rows in *mask* only."""
    columns = {}
    for name, column in filter_results.columns.items():
        masks = {reason: rows[mask] for reason, rows in column.masks_by_reason.items() if rows[mask].any()}
        columns[name] = FilterColumn(column.rejected[mask], masks)
    return FilterResults(mask[mask], columns)


def _find_nominated_pods_by_row(inputs: DryRunInputs, rows: IntArray) -> dict[int, list[AssignedPodInfo]]:
    """Return, by row, the nominated pods that count for the pod to schedule.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPluginsWithNominatedPods (1.36).
    """
    snapshot, pod = inputs.snapshot, inputs.pod
    nominated_by_row: dict[int, list[AssignedPodInfo]] = {}
    if not snapshot.nominated_pods_by_node:
        return nominated_by_row
    is_filtered = make_mask(rows, len(snapshot))
    for name, pod_infos in snapshot.nominated_pods_by_node.items():
        row = snapshot.row(name)
        if row is not None and is_filtered[row]:
            nominated_pods = [
                make_assigned_pod_info(pod_info.pod, pod_info.signature, name, assumed=True)
                for pod_info in select_nominated_pods(pod_infos, pod)
            ]
            if nominated_pods:
                nominated_by_row[row] = nominated_pods
    return nominated_by_row
