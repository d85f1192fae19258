"""Run the Filter plugins and find the first plugin that rejects each node.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPlugins (1.36).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, make_mask
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.tables.filter_table import compute_column, make_error_column
from extender.framework.extension_points import Filter
from extender.framework.plugin_runner import PluginError
from extender.framework.profiles import Profile
from extender.framework.result_cache import FilterColumn
from extender.framework.status import Code, Status, find_most_severe_code


@dataclass(frozen=True, slots=True)
class FilterResults:
    """The results of the Filter plugins that ran, in the order of the profile. They are valid until the next cycle.

    Attributes:
        evaluated_mask: whether each node was evaluated, bool, shape (number of nodes,).
        columns: the columns by plugin; entries outside `evaluated_mask` are undefined.
    """

    evaluated_mask: BoolArray
    columns: Mapping[str, FilterColumn]

    def find_feasible_nodes(self) -> BoolArray:
        """Return a read-only mask of the evaluated nodes that no plugin rejected: bool, shape (number of nodes,)."""
        feasible = self.evaluated_mask
        for column in self.columns.values():
            if column.masks_by_reason:
                feasible = feasible & ~column.rejected  # a new array: `evaluated_mask` stays unchanged
        return feasible

    def find_first_rejections(self) -> dict[str, BoolArray]:
        """Return, by plugin, a mask of the nodes that the plugin rejects and that no earlier plugin rejects."""
        remaining = self.evaluated_mask.copy()
        masks_by_plugin: dict[str, BoolArray] = {}
        for name, column in self.columns.items():
            if column.masks_by_reason:
                newly_rejected = remaining & column.rejected
                if newly_rejected.any():
                    masks_by_plugin[name] = newly_rejected
                    remaining &= ~newly_rejected
        return masks_by_plugin

    def find_all_rejections(self) -> dict[str, BoolArray]:
        """Return, by plugin, a mask of all nodes that the plugin rejects."""
        masks_by_plugin = {
            name: self.evaluated_mask & column.rejected
            for name, column in self.columns.items()
            if column.masks_by_reason
        }
        return {name: mask for name, mask in masks_by_plugin.items() if mask.any()}

    def get_status(self, plugin: str, row: int) -> Status | None:
        """Return the status of *plugin* for the node in *row*; None if the node passes."""
        column = self.columns[plugin]
        if not column.rejected[row]:
            return None
        reasons = sorted(
            (reason for reason, mask in column.masks_by_reason.items() if mask[row]), key=lambda reason: reason.order
        )
        return Status(
            find_most_severe_code([reason.code for reason in reasons]), tuple(reason.text for reason in reasons), plugin
        )

    def get_first_rejection_status(self, row: int) -> Status | None:
        """Return the status of the first plugin that rejects the node in *row*; None for a feasible node."""
        for name, column in self.columns.items():
            if column.rejected[row]:
                status = self.get_status(name, row)
                if status is not None and status.code is Code.ERROR:
                    return PluginError(name, "Filter", status.message).status
                return status
        return None

    def find_first_error(self, row: int) -> Status | None:
        """Return the ERROR status of the first plugin that failed on the node in *row*; None if none failed.

        The message has kube-scheduler's prefix for a failed Filter plugin.
        """
        for name in self.columns:
            status = self.get_status(name, row)
            if status is not None and status.code is Code.ERROR:
                return PluginError(name, "Filter", status.message).status
        return None


def run_filters(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    pre_filter_run: PreFilterRun,
    *,
    all_filters: bool = False,
) -> FilterResults:
    """Run the Filter plugins on the nodes that PreFilter did not exclude.

    Nominated pods are ignored; `nominator` handles them. The status of *pre_filter_run* is None. With *all_filters*,
    every plugin runs on every node, even if an earlier plugin rejected the node.
    """
    evaluated_mask = make_allowed_mask(pre_filter_run, snapshot)
    states, skipped = pre_filter_run.cycle_state, pre_filter_run.skipped_plugins
    plugins: Sequence[Filter]
    cached_columns: dict[str, FilterColumn] = {}
    if runtime.result_cache.enabled:
        cached_columns, plan = runtime.filter_tables.get_columns(profile.filter_plugins, skipped, pod, snapshot, states)
        plugins = plan.entries
    else:
        plugins = [plugin for plugin in profile.filter_plugins if plugin.name not in skipped]
    columns: dict[str, FilterColumn] = {}
    remaining = evaluated_mask
    for plugin in plugins:
        name = plugin.name
        column = cached_columns.get(name)
        if column is None:
            column = _compute_column(plugin, pod, snapshot, runtime, states.get(name), remaining)
        columns[name] = column
        if column.masks_by_reason and not all_filters:
            remaining = remaining & ~column.rejected
            if not remaining.any():
                break
    return FilterResults(evaluated_mask, columns)


def make_allowed_mask(pre_filter_run: PreFilterRun, snapshot: Snapshot) -> BoolArray:
    """Return a mask of the nodes that PreFilter did not exclude: bool, shape (number of nodes,); do not modify it."""
    if pre_filter_run.node_names is None:
        return make_full_mask(len(snapshot))
    rows = [row for name in pre_filter_run.node_names if (row := snapshot.row(name)) is not None]
    return make_mask(rows, len(snapshot))


@lru_cache(maxsize=8)
def make_full_mask(size: int) -> BoolArray:
    """Return a read-only mask of all nodes."""
    mask = np.ones(size, dtype=np.bool_)
    mask.flags.writeable = False
    return mask


def _compute_column(
    plugin: Filter, pod: PodInfo, snapshot: Snapshot, runtime: PluginRuntime, plugin_state: Any, remaining: BoolArray
) -> FilterColumn:
    """Run *plugin* on the *remaining* nodes if they are fewer than half of all nodes, else on all nodes.

    A plugin that remembers the nodes in its state, such as DynamicResources, runs only on the *remaining* nodes.
    """
    rows = np.flatnonzero(remaining)
    least = len(remaining) if getattr(plugin, "remembers_filtered_nodes", False) else len(remaining) / 2
    if len(rows) >= least:
        return compute_column(plugin, pod, snapshot, plugin_state, runtime.runner)
    column = FilterColumn(np.zeros(len(remaining), dtype=np.bool_))
    try:
        column.write(rows, runtime.runner.filter(plugin, pod, snapshot.view(rows), plugin_state))
    except PluginError as error:
        return make_error_column(error, len(remaining))
    return column
