"""Explain the scheduling of a pod: run every plugin on every node and collect all results.

This is slower than `scheduling_cycle.schedule_pod`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.diagnosis import Diagnosis, build_diagnosis, find_nodes_that_pass_filters
from extender.cycle.filter import FilterResults
from extender.cycle.nominator import run_filters_with_nominated_pods
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.post_filter import FailedAttempt, PostFilterRun, run_post_filter_plugins
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.cycle.score import Ranking, prioritize_nodes
from extender.framework.profiles import Profile
from extender.framework.status import Status


@dataclass(frozen=True, slots=True)
class NodeFilterStatus:
    """The filter results of one node.

    Attributes:
        rejections: the status of every plugin that rejects the node, by plugin.
        first_failure: the status of the first plugin that rejects the node; None for a feasible node.
    """

    rejections: Mapping[str, Status]
    first_failure: Status | None


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """The results of all plugins for one pod.

    Attributes:
        pod: the explained pod.
        pre_enqueue_status: the status with which PreEnqueue rejected the pod, or None. If it is set, no other extension
            point ran.
        diagnosis: the outcome of PreFilter, the feasible nodes and the rejections by plugin and reason.
        nodes: the filter results of every node on which Filter ran, by node name.
        ranking: the scores of the feasible nodes.
        node_names: the name of each row in `diagnosis` and `ranking`.
        post_filter_run: the outcome of PostFilter; None if it did not run.
    """

    pod: PodInfo
    pre_enqueue_status: Status | None = None
    diagnosis: Diagnosis | None = None
    nodes: Mapping[str, NodeFilterStatus] = field(default_factory=dict)
    ranking: Ranking | None = None
    node_names: tuple[str, ...] = ()
    post_filter_run: PostFilterRun | None = None

    @property
    def message(self) -> str | None:
        """The text of the pod's FailedScheduling event; None if a node was selected or PreEnqueue rejected the pod."""
        if self.diagnosis is None:
            return None
        if self.ranking is not None and self.ranking.error is not None and self.diagnosis.feasible_count > 1:
            return self.ranking.error.message
        if self.diagnosis.has_feasible_node:
            return None
        return self.diagnosis.format_message(self.post_filter_run.status.message if self.post_filter_run else "")

    @property
    def filter_message(self) -> str | None:
        """`message` without the messages of PostFilter plugins."""
        if self.diagnosis is None or self.diagnosis.has_feasible_node:
            return self.message
        return self.diagnosis.format_message()


def explain_pod(pod: PodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime) -> PodExplanation:
    """Run every plugin of *profile* for *pod* on every node."""
    pre_enqueue_status = run_pre_enqueue_plugins(pod, snapshot, profile, runtime)
    if pre_enqueue_status is not None:
        return PodExplanation(pod, pre_enqueue_status=pre_enqueue_status)
    node_names = tuple(snapshot.names)
    diagnosis = find_nodes_that_pass_filters(pod, snapshot, profile, runtime, with_rejections=True)
    if diagnosis.node_count == 0 or diagnosis.pre_filter_run.status is not None:
        return PodExplanation(
            pod,
            diagnosis=diagnosis,
            node_names=node_names,
            post_filter_run=_run_post_filter_plugins(pod, snapshot, profile, runtime, diagnosis),
        )
    pre_filter_run = diagnosis.pre_filter_run
    filter_results = run_filters_with_nominated_pods(pod, snapshot, profile, runtime, pre_filter_run, all_filters=True)
    diagnosis = build_diagnosis(
        filter_results, snapshot, pre_filter_run, with_rejections=True, all_filters=profile.check_all_filters
    )
    nodes = _list_node_statuses(filter_results, node_names)
    ranking = None
    if diagnosis.has_feasible_node:
        ranking = prioritize_nodes(pod, snapshot, profile, runtime, diagnosis.feasible, pre_filter_run)
    post_filter_run = _run_post_filter_plugins(pod, snapshot, profile, runtime, diagnosis)
    return PodExplanation(pod, None, diagnosis, nodes, ranking, node_names, post_filter_run)


def _list_node_statuses(results: FilterResults, node_names: Sequence[str]) -> dict[str, NodeFilterStatus]:
    """Return the results of each evaluated node. Nodes with equal results share one object, which is made once."""
    rows = np.flatnonzero(results.evaluated_mask)
    masks = [mask[rows] for column in results.columns.values() for mask in column.masks_by_reason.values()]
    bits = np.packbits(np.array(masks, dtype=np.bool_).reshape(len(masks), len(rows)), axis=0)
    width, rejections_of_rows = len(bits), bits.T.tobytes()
    statuses: dict[bytes, NodeFilterStatus] = {}
    nodes = {}
    for position, row in enumerate(rows.tolist()):
        key = rejections_of_rows[position * width : (position + 1) * width]
        if key not in statuses:
            statuses[key] = _make_node_status(results, row)
        nodes[node_names[row]] = statuses[key]
    return nodes


def _make_node_status(results: FilterResults, row: int) -> NodeFilterStatus:
    statuses = {name: results.get_status(name, row) for name in results.columns}
    rejections = {name: status for name, status in statuses.items() if status is not None}
    return NodeFilterStatus(rejections, results.get_first_rejection_status(row))


def _run_post_filter_plugins(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, diagnosis: Diagnosis
) -> PostFilterRun | None:
    if (
        diagnosis.has_feasible_node
        or diagnosis.error is not None
        or diagnosis.node_count == 0
        or not profile.post_filter_plugins
    ):
        return None
    return run_post_filter_plugins(pod, snapshot, FailedAttempt(diagnosis, profile, runtime, all_nodes=True))
