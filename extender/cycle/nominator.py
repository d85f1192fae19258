"""Run filters as if nominated pods were on their nominated nodes.

A nominated pod counts for pods of equal or lower priority.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPluginsWithNominatedPods,
addGENominatedPods (1.36).
"""

from typing import Final

import numpy as np

from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import IntArray
from extender.cycle.dry_run import DryRun, DryRunInputs
from extender.cycle.filter import FilterResults, run_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.framework.profiles import Profile
from extender.framework.result_cache import FilterColumn
from extender.framework.status import Rejection

_NO_ROWS: Final[IntArray] = np.empty(0, dtype=np.int64)


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
    inputs = DryRunInputs(pod, snapshot, profile, runtime, pre_filter_run)
    dry_run = DryRun(inputs, np.flatnonzero(filter_results.evaluated_mask), PodBatch((), _NO_ROWS))
    rows = dry_run.nominated_rows
    if not len(rows):
        return filter_results
    nominated_results = dry_run.run_filters_with_nominated(rows, all_filters=True)
    is_rejected = ~nominated_results.find_feasible_nodes() & ~np.isin(rows, list(dry_run.errors))
    if not is_rejected.any() and not dry_run.errors:
        return filter_results
    columns = {
        name: FilterColumn(
            column.rejected.copy(), {reason: mask.copy() for reason, mask in column.masks_by_reason.items()}
        )
        for name, column in filter_results.columns.items()
    }
    for name in (*nominated_results.columns, *(error.plugin for error in dry_run.errors.values())):
        if name not in columns:  # the plugin did not run before, because earlier plugins rejected all nodes
            columns[name] = FilterColumn(np.zeros(len(snapshot), dtype=np.bool_))
    for name, column in nominated_results.columns.items():
        rejections = (Rejection(mask[is_rejected], reason) for reason, mask in column.masks_by_reason.items())
        columns[name].write(rows[is_rejected], tuple(rejections))
    for row, error in dry_run.errors.items():
        columns[error.plugin].write(np.array([row]), error.reject_all(1))
    return FilterResults(filter_results.evaluated_mask, columns)
