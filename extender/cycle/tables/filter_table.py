"""Cache the rejections of Filter plugins in tables: one row per plugin, one column per node.

Cached and fresh results are equal; a property test compares them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.framework.extension_points import Filter
from extender.framework.plugin_runner import PluginError, PluginRunner
from extender.framework.result_cache import FilterColumn, ResultTable, TablePlan, TableStore


class FilterTable(ResultTable):
    """The rejections by some plugins for the pods with equal cache keys.

    *plugins* has at least one. *states* are the states of PreFilter by plugin name.

    Attributes:
        columns: the rejections by each plugin, by plugin name.

    Raises:
        PluginError: a plugin failed.
    """

    __slots__ = ("_plugins", "columns")

    def __init__(
        self, plugins: Sequence[Any], pod: PodInfo, snapshot: Snapshot, states: Mapping[str, Any], runner: PluginRunner
    ) -> None:
        size = len(snapshot)
        super().__init__((plugin.filter_depends_on for plugin in plugins), snapshot, 3 * size * len(plugins))
        self._plugins = plugins
        rejected = np.zeros((len(plugins), size), dtype=np.bool_)
        self.columns = {plugin.name: FilterColumn(row) for plugin, row in zip(plugins, rejected, strict=True)}
        self._evaluate(slice(None), pod, snapshot.view(), states, runner)

    def _evaluate(
        self, rows: IntArray | slice, pod: PodInfo, view: NodeView, states: Mapping[str, Any], runner: PluginRunner
    ) -> None:
        """Evaluate the nodes of *rows*, which are those of *view*."""
        rejections = [runner.filter(plugin, pod, view, states.get(plugin.name)) for plugin in self._plugins]
        for column, rejections_by_plugin in zip(self.columns.values(), rejections, strict=True):
            column.write(rows, rejections_by_plugin)


class FilterTables:
    """The filter tables of one plugin runtime. Not thread-safe: one per scheduling thread."""

    def __init__(self, runner: PluginRunner) -> None:
        self._runner = runner
        self._store = TableStore[FilterTable]("Filter", runner, lambda plugin: plugin)

    def get_columns(
        self,
        plugins: tuple[Filter, ...],
        skipped: frozenset[str],
        pod: PodInfo,
        snapshot: Snapshot,
        states: Mapping[str, Any],
    ) -> tuple[dict[str, FilterColumn], TablePlan]:
        """Return the rejections by those of *plugins* that allow caching them, for all nodes, by plugin name.

        Do not modify them. They are valid until the next cycle. The plugins named in *skipped* do not run. *states* are
        the states of PreFilter by plugin name.

        Returns:
            The columns in no certain order, and the plan, which has the other plugins.
        """
        plan, tables, errors = self._store.find(plugins, skipped, pod)
        columns = {name: make_error_column(error, len(snapshot)) for name, error in errors.items()}
        runner = self._runner
        for key, table in tables:
            if table is not None and table.is_current(snapshot):
                columns |= table.columns
                continue
            try:
                if table is None or not table.update(pod, snapshot, states, runner):
                    table = FilterTable(key[0].entries, pod, snapshot, states, runner)  # noqa: PLW2901
                    self._store.add(key, table, pod.signature.byte_count)
                columns |= table.columns
            except PluginError:  # the results of the other plugins are valid
                for plugin in key[0].entries:
                    state = states.get(plugin.name)
                    columns[plugin.name] = compute_column(plugin, pod, snapshot, state, runner)
        return columns, plan


def compute_column(plugin: Any, pod: PodInfo, snapshot: Snapshot, state: Any, runner: PluginRunner) -> FilterColumn:
    """Run *plugin* on all nodes and return its rejections."""
    column = FilterColumn(np.zeros(len(snapshot), dtype=np.bool_))
    try:
        column.write(slice(None), runner.filter(plugin, pod, snapshot.view(), state))
    except PluginError as error:
        return make_error_column(error, len(snapshot))
    return column


def make_error_column(error: PluginError, size: int) -> FilterColumn:
    """Return the column of a plugin that raised *error*. It rejects every node with the error as the reason."""
    column = FilterColumn(np.zeros(size, dtype=np.bool_))
    column.write(slice(None), error.reject_all(size))
    return column
