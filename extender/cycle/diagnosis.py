"""The result of filtering: the feasible nodes, and the reasons why the other nodes are rejected."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray
from extender.cycle.filter import FilterResults
from extender.cycle.nominator import run_filters_with_nominated_pods
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun, run_pre_filter_plugins
from extender.framework.profiles import Profile
from extender.framework.status import Code, Reason, Status, find_most_severe_code

NO_NODES = "no nodes available to schedule pods"
"""The message for a cluster without nodes.

Source: pkg/scheduler/schedule_one.go, Scheduler.schedulingAlgorithm (1.36).
"""


@dataclass(frozen=True, slots=True)
class NodeRejection:
    """The nodes that one plugin rejected for one reason.

    Attributes:
        reason: the reason of the rejection. The plugin may have other reasons to reject the same node.
        nodes: the rejected nodes: bool, shape (number of nodes,).
    """

    plugin: str
    reason: Reason
    nodes: BoolArray


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The feasible nodes, and the rejections of the other nodes.

    A diagnosis has no reference to a snapshot, so callers may store it.

    Attributes:
        node_count: the number of nodes in the cluster.
        pre_filter_run: the outcome of PreFilter.
        feasible: whether each node is feasible: bool, shape (number of nodes,).
        rejections: the rejections in the order of the plugins. Empty if every node is feasible, or if a node is
            feasible and rejections were not requested.
        error: the status of the error that ended the attempt; None if there was no error.
        unrequested_count: the number of nodes that the caller did not want evaluated. Messages do not count them.
        extra_rejectors: the names of rejectors without an entry in `rejections`, such as extenders.
        unknown_nodes: the reasons of extenders for nodes that do not exist, by name. Messages count these nodes.
        replaced_rejections: the rejections of nodes for which an extender then had another reason. Messages lack them.
        feasible_count: the number of feasible nodes.
    """

    node_count: int
    pre_filter_run: PreFilterRun
    feasible: BoolArray
    rejections: tuple[NodeRejection, ...] = ()
    error: Status | None = None
    unrequested_count: int = 0
    extra_rejectors: frozenset[str] = frozenset()
    unknown_nodes: Mapping[str, str] = field(default_factory=dict)
    replaced_rejections: tuple[NodeRejection, ...] = ()
    feasible_count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "feasible_count", int(np.count_nonzero(self.feasible)))

    @property
    def has_feasible_node(self) -> bool:
        """Whether a node is feasible and no error occurred."""
        return self.error is None and self.feasible_count > 0

    @property
    def all_rejections(self) -> tuple[NodeRejection, ...]:
        """The rejections that plugins and extenders made, also those that others replaced."""
        return (*self.rejections, *self.replaced_rejections)

    @property
    def rejectors(self) -> frozenset[str]:
        """The plugins that rejected nodes or the pod, and whose events may make the pod schedulable.

        Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure, Scheduler.findNodesThatFitPod;
        pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreFilterPlugins (1.36).
        """
        names = {rejection.plugin for rejection in self.all_rejections} | set(self.pre_filter_run.restricting_plugins)
        if self.pre_filter_run.status is not None and self.pre_filter_run.status.plugin:
            names.add(self.pre_filter_run.status.plugin)
        return frozenset(names) | self.extra_rejectors

    @property
    def pending_rejectors(self) -> frozenset[str]:
        """The plugins that rejected nodes or the pod with the code PENDING.

        Source: pkg/scheduler/framework/types.go, Diagnosis.AddPluginStatus (1.36).
        """
        names = {rejection.plugin for rejection in self.all_rejections if rejection.reason.code is Code.PENDING}
        status = self.pre_filter_run.status
        return frozenset(names if status is None or status.code is not Code.PENDING else (*names, status.plugin))

    def format_message(self, post_filter_message: str = "") -> str:
        """Return the text of the pod's event and condition: `0/5 nodes are available: 2 Insufficient cpu, ...`.

        *post_filter_message*, the message of PostFilter, is appended.

        Source: pkg/scheduler/schedule_one.go, Scheduler.schedulingAlgorithm; pkg/scheduler/framework/types.go,
        FitError.Error (1.36).
        """
        if self.error is not None:
            return self.error.message
        if self.node_count == 0:
            return NO_NODES
        node_count = self.node_count - self.unrequested_count
        if self.pre_filter_run.status is not None and self.pre_filter_run.status.reasons:
            text = f"0/{node_count} nodes are available: {self.pre_filter_run.status.message}."
        else:
            text = format_fit_error(node_count, self.count_reasons())
        return f"{text} {post_filter_message}" if post_filter_message else text

    def restrict_to(self, mask: BoolArray) -> "Diagnosis":
        """Return the diagnosis of only the nodes in *mask* (bool, shape (number of nodes,))."""
        rejections = (replace(rejection, nodes=rejection.nodes & mask) for rejection in self.rejections)
        remaining = tuple(rejection for rejection in rejections if rejection.nodes.any())
        return replace(self, feasible=self.feasible & mask, rejections=remaining)

    def get_rejection_code(self, row: int | None) -> Code:
        """Return the status code with which the node in *row* was rejected.

        If PreFilter rejected the pod, this is the code of its status. A node that PreFilter excluded, or that does not
        exist (*row* is None), has the code UNRESOLVABLE.
        """
        if self.pre_filter_run.status is not None:
            return self.pre_filter_run.status.code
        codes = [rejection.reason.code for rejection in self.rejections if row is not None and rejection.nodes[row]]
        return find_most_severe_code(codes) if codes else Code.UNRESOLVABLE

    def find_nodes_where_preemption_may_help(self) -> BoolArray:
        """Return the nodes on which preemption may help: a new bool array, shape (number of nodes,).

        Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.findCandidates (1.36).
        """
        if self.pre_filter_run.status is not None:
            return np.full(self.node_count, self.pre_filter_run.status.code is Code.UNSCHEDULABLE, dtype=np.bool_)
        unschedulable = np.zeros(self.node_count, dtype=np.bool_)
        unresolvable = np.zeros(self.node_count, dtype=np.bool_)
        for rejection in self.rejections:
            nodes = unschedulable if rejection.reason.code is Code.UNSCHEDULABLE else unresolvable
            nodes |= rejection.nodes
        return unschedulable & ~unresolvable

    def count_reasons(self) -> dict[str, int]:
        """Count the nodes per reason, including the nodes that PreFilter excluded.

        Source: pkg/scheduler/framework/types.go, FitError.Error (1.36).
        """
        counts: dict[str, int] = dict(Counter(self.unknown_nodes.values()))
        rejected = np.zeros(self.node_count, dtype=np.bool_)
        for rejection in self.rejections:
            counts[rejection.reason.text] = counts.get(rejection.reason.text, 0) + int(rejection.nodes.sum())
            rejected |= rejection.nodes
        if self.pre_filter_run.node_names is not None:
            node_count = self.node_count - self.unrequested_count - len(self.unknown_nodes)
            excluded_by_pre_filter = node_count - int(rejected.sum()) - self.feasible_count
            if excluded_by_pre_filter > 0:
                counts[self.pre_filter_run.excluded_reason] = (
                    counts.get(self.pre_filter_run.excluded_reason, 0) + excluded_by_pre_filter
                )
        return counts


def format_fit_error(node_count: int, reason_counts: Mapping[str, int]) -> str:
    """Format `0/5 nodes are available: 2 Insufficient cpu, ...` from the number of nodes per reason.

    Source: pkg/scheduler/framework/types.go, FitError.Error (1.36).
    """
    text = f"0/{node_count} nodes are available:"
    if not reason_counts:
        return text
    formatted_counts = sorted(f"{count} {reason}" for reason, count in reason_counts.items())
    return f"{text} {', '.join(formatted_counts)}."


def format_rejection_of_one_node(status: Status) -> str:
    """Return the message of a pod that *status* rejects after its node was selected.

    Source: pkg/scheduler/schedule_one.go, Scheduler.assumeAndReserve, Scheduler.prepareForBindingCycle,
    Scheduler.bindingCycle (1.36).
    """
    return format_fit_error(1, Counter(status.reasons))


def find_nodes_that_pass_filters(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    *,
    with_rejections: bool = False,
    only_nodes: frozenset[str] | None = None,
) -> Diagnosis:
    """Run PreFilter and Filter for *pod*, with nominated pods on their nodes.

    A node has only the reasons of the first plugin that rejects it, unless the profile checks all filters. With
    *with_rejections*, rejections are returned even if a node is feasible. *only_nodes* are the names of the nodes to
    evaluate, of which *snapshot* may have more; None means all.
    """
    if len(snapshot) == 0:
        return Diagnosis(0, PreFilterRun(), np.zeros(0, dtype=np.bool_))
    pre_filter_run = run_pre_filter_plugins(pod, snapshot, profile, runtime)
    if pre_filter_run.status is not None:
        error = pre_filter_run.status if not pre_filter_run.status.is_rejected else None
        no_nodes = np.zeros(len(snapshot), dtype=np.bool_)
        return _add_unrequested_count(
            Diagnosis(len(snapshot), pre_filter_run, no_nodes, error=error), snapshot, only_nodes
        )
    if only_nodes is not None:
        allowed_names = pre_filter_run.node_names
        pre_filter_run = replace(
            pre_filter_run, node_names=only_nodes if allowed_names is None else only_nodes & allowed_names
        )
    start_time = runtime.runner.start_timer()
    check_all = profile.check_all_filters
    filter_results = run_filters_with_nominated_pods(
        pod, snapshot, profile, runtime, pre_filter_run, all_filters=check_all
    )
    diagnosis = build_diagnosis(
        filter_results, snapshot, pre_filter_run, with_rejections=with_rejections, all_filters=check_all
    )
    runtime.runner.observe_extension_point(profile.scheduler_name, "Filter", diagnosis.error, start_time)
    return _add_unrequested_count(diagnosis, snapshot, only_nodes)


def _add_unrequested_count(diagnosis: Diagnosis, snapshot: Snapshot, only_nodes: frozenset[str] | None) -> Diagnosis:
    if only_nodes is None:
        return diagnosis
    return replace(
        diagnosis, unrequested_count=len(snapshot) - sum(snapshot.row(name) is not None for name in only_nodes)
    )


def build_diagnosis(
    filter_results: FilterResults,
    snapshot: Snapshot,
    pre_filter_run: PreFilterRun,
    *,
    with_rejections: bool,
    all_filters: bool = False,
) -> Diagnosis:
    """Combine *filter_results* into feasible nodes, rejections and an error.

    With *with_rejections*, rejections are returned even if a node is feasible. With *all_filters*, every plugin that
    rejects a node is reported, not only the first.

    Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatPassFilters (1.36);
    pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPlugins (1.21).
    """
    feasible = filter_results.find_feasible_nodes()
    has_errors = any(
        reason.code is Code.ERROR for column in filter_results.columns.values() for reason in column.masks_by_reason
    )
    if not has_errors and not with_rejections:
        diagnosis = Diagnosis(len(snapshot), pre_filter_run, feasible)
        if diagnosis.feasible_count:
            return diagnosis
    rejections: list[NodeRejection] = []
    error_rows: list[int] = []
    rejected_by_plugin = filter_results.find_all_rejections() if all_filters else filter_results.find_first_rejections()
    for plugin, rejected in rejected_by_plugin.items():
        masks_by_reason = filter_results.columns[plugin].masks_by_reason
        for reason, nodes in sorted(masks_by_reason.items(), key=lambda item: item[0].order):
            nodes_of_reason = nodes & rejected
            if nodes_of_reason.any():
                rejections.append(NodeRejection(plugin, reason, nodes_of_reason))
                if reason.code is Code.ERROR:
                    error_rows.extend(np.flatnonzero(nodes_of_reason).tolist())
    error = None
    if error_rows:
        first_row = min(error_rows, key=lambda row: snapshot.names[row])
        error = filter_results.find_first_error(first_row)
    return Diagnosis(len(snapshot), pre_filter_run, feasible, tuple(rejections), error)
