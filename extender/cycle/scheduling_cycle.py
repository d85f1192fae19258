"""The scheduling cycle of one pod: filter, score, select a host, or run PostFilter.

`schedule_pod` runs the whole cycle. Its steps are separate functions for a cycle that calls extenders between them.

Source: pkg/scheduler/schedule_one.go, Scheduler.schedulingCycle, Scheduler.schedulingAlgorithm (1.36).
"""

from dataclasses import replace
from random import Random

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.decision import Decision, ScheduleFailure, ScheduleResult
from extender.cycle.diagnosis import NO_NODES, Diagnosis, find_nodes_that_pass_filters
from extender.cycle.node_sampling import NodeSampler, num_feasible_nodes_to_find
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.post_filter import FailedAttempt, PostFilterRun, run_post_filter_plugins
from extender.cycle.score import Ranking, prioritize_nodes
from extender.cycle.select_host import select_host
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status


def schedule_pod(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    rng: Random,
    node_sampler: NodeSampler,
    *,
    only_nodes: frozenset[str] | None = None,
) -> Decision:
    """Select a node for *pod*.

    Args:
        pod: the pod to schedule.
        snapshot: the cluster.
        profile: the profile of the pod's scheduler name.
        runtime: the runtime that calls the plugins.
        rng: the random generator that breaks ties.
        node_sampler: the sampler of the nodes if the profile sets percentageOfNodesToScore.
        only_nodes: the names of the nodes that may be selected; None means all.
    """
    diagnosis, evaluated_nodes = find_nodes_that_fit(
        pod, snapshot, profile, runtime, node_sampler, only_nodes=only_nodes
    )
    if not diagnosis.has_feasible_node:
        failure = make_failure_without_post_filter(diagnosis, profile)
        if failure is not None:
            return failure
        return make_failure_after_post_filter(
            diagnosis, run_post_filter_plugins(pod, snapshot, FailedAttempt(diagnosis, profile, runtime, rng))
        )
    if diagnosis.feasible_count == 1:
        return make_single_node_result(snapshot, diagnosis, evaluated_nodes)
    return make_result_from_scores(
        snapshot,
        diagnosis,
        prioritize_nodes(pod, snapshot, profile, runtime, diagnosis.feasible, diagnosis.pre_filter_run),
        evaluated_nodes,
        rng,
    )


def find_nodes_that_fit(
    pod: PodInfo,
    snapshot: Snapshot,
    profile: Profile,
    runtime: PluginRuntime,
    node_sampler: NodeSampler,
    *,
    only_nodes: frozenset[str] | None = None,
    with_rejections: bool = False,
    ignore_nomination: bool = False,
) -> tuple[Diagnosis, int]:
    """Return a diagnosis with the nodes to select from, and the number of evaluated nodes.

    If the nominated node of *pod* fits, only that node is feasible in the diagnosis.

    Args:
        pod: the pod to schedule.
        snapshot: the cluster.
        profile: the profile of the pod's scheduler name.
        runtime: the runtime that calls the plugins.
        node_sampler: the sampler of the nodes if the profile sets percentageOfNodesToScore.
        only_nodes: the names of the nodes that may be selected; None means all.
        with_rejections: whether rejections are returned even if a node is feasible.
        ignore_nomination: whether the nominated node is not preferred.

    Source: pkg/scheduler/schedule_one.go, Scheduler.evaluateNominatedNode (1.36).
    """
    diagnosis = find_nodes_that_pass_filters(
        pod, snapshot, profile, runtime, only_nodes=only_nodes, with_rejections=with_rejections
    )
    nominated_name = pod.pod.status.nominated_node_name
    if nominated_name and diagnosis.has_feasible_node and not ignore_nomination:
        row = snapshot.row(nominated_name)
        if row is not None and diagnosis.feasible[row]:
            nominated_mask = np.zeros(diagnosis.node_count, dtype=np.bool_)
            nominated_mask[row] = True
            return diagnosis.restrict_to(nominated_mask), 1
    if profile.percentage_of_nodes_to_score and diagnosis.has_feasible_node:
        return _sample_nodes(diagnosis, snapshot, profile, node_sampler)
    return diagnosis, diagnosis.node_count - diagnosis.excluded_count


def make_single_node_result(snapshot: Snapshot, diagnosis: Diagnosis, evaluated_nodes: int) -> ScheduleResult:
    """Return the result if only one node is feasible: it is selected without scoring.

    Source: pkg/scheduler/schedule_one.go, Scheduler.schedulePod (1.36).
    """
    row = int(np.flatnonzero(diagnosis.feasible)[0])
    return ScheduleResult(snapshot.names[row], 1, evaluated_nodes, diagnosis.pre_filter_run.cycle_state)


def make_result_from_scores(
    snapshot: Snapshot, diagnosis: Diagnosis, ranking: Ranking, evaluated_nodes: int, rng: Random
) -> Decision:
    """Return the node selected by its score if several nodes are feasible, or the error of the scoring."""
    if ranking.error is not None:
        return ScheduleFailure(ranking.error, ranking.error.message, diagnosis, nominated_node="")
    node_name = snapshot.names[select_host(ranking, rng)]
    return ScheduleResult(
        node_name, diagnosis.feasible_count, evaluated_nodes, diagnosis.pre_filter_run.cycle_state, ranking
    )


def _sample_nodes(
    diagnosis: Diagnosis, snapshot: Snapshot, profile: Profile, node_sampler: NodeSampler
) -> tuple[Diagnosis, int]:
    candidates = np.ones(diagnosis.node_count, dtype=np.bool_)
    if diagnosis.pre_filter_run.node_names is not None:
        candidates[:] = False
        candidates[[row for name in diagnosis.pre_filter_run.node_names if (row := snapshot.row(name)) is not None]] = (
            True
        )
    num_nodes_to_find = num_feasible_nodes_to_find(int(candidates.sum()), profile.percentage_of_nodes_to_score or 100)
    if not profile.score_plugins and not node_sampler.has_extenders:
        num_nodes_to_find = 1  # without scores all feasible nodes are equal
    sampled_mask, examined_mask = node_sampler.sample(snapshot, candidates, diagnosis.feasible, num_nodes_to_find)
    return replace(diagnosis.restrict_to(examined_mask), feasible=sampled_mask), int(examined_mask.sum())


def make_failure_without_post_filter(diagnosis: Diagnosis, profile: Profile) -> ScheduleFailure | None:
    """Return the failure of a cycle without feasible node; None if PostFilter must run first."""
    if diagnosis.error is not None:
        return ScheduleFailure(diagnosis.error, diagnosis.format_message(), diagnosis, nominated_node="")
    if diagnosis.node_count == 0:
        return ScheduleFailure(Status(Code.UNRESOLVABLE, (NO_NODES,)), NO_NODES, diagnosis, nominated_node="")
    if not profile.post_filter_plugins:
        status = Status(Code.UNSCHEDULABLE, (diagnosis.format_message(),))
        return ScheduleFailure(status, diagnosis.format_message(), diagnosis, diagnosis.rejectors, nominated_node="")
    return None


def make_failure_after_post_filter(diagnosis: Diagnosis, post_filter_run: PostFilterRun) -> ScheduleFailure:
    """Return the failure of a cycle without feasible node in which PostFilter ran."""
    message = diagnosis.format_message(post_filter_run.status.message)
    return ScheduleFailure(
        Status(Code.UNSCHEDULABLE, (message,)),
        message,
        diagnosis,
        diagnosis.rejectors,
        post_filter_run.nominated_node,
        post_filter_run.details,
    )
