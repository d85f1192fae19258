"""The scheduling cycle of one pod: filter and score nodes, then select a host. If no node fits, run PostFilter.

The cycle is one generator, `run_scheduling_cycle`. It yields an `extender_steps.ExtenderStep` when the HTTP extenders
must be called, and is sent the answer. `schedule_pod` runs it without extenders; `scheduler.extender_cycle` runs it
with them.

Source: pkg/scheduler/schedule_one.go, Scheduler.schedulingCycle, Scheduler.schedulingAlgorithm (1.36).
"""

from dataclasses import dataclass, replace
from random import Random

import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import make_mask
from extender.cycle.decision import Decision, ScheduleFailure, ScheduleResult
from extender.cycle.diagnosis import NO_NODES, Diagnosis, build_diagnosis, find_nodes_that_pass_filters
from extender.cycle.extender_steps import (
    ExtenderSteps,
    FilteredNodes,
    FilterStep,
    PrioritizeStep,
    run_without_extenders,
)
from extender.cycle.filter import make_allowed_mask
from extender.cycle.node_sampling import NodeSampler, num_feasible_nodes_to_find
from extender.cycle.nominator import run_filters_with_nominated_pods
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.post_filter import FailedAttempt, make_post_filter_steps
from extender.cycle.score import Ranking, prioritize_nodes, select_host
from extender.framework.profiles import Profile
from extender.framework.status import unresolvable_status, unschedulable_status


@dataclass(frozen=True, slots=True)
class CycleInputs:
    """The inputs of a scheduling cycle.

    Attributes:
        pod: the pod to schedule.
        snapshot: the cluster, or a hypothesis of it.
        profile: the profile of the pod's scheduler name.
        runtime: the runtime that calls the plugins.
        rng: the random generator that breaks ties.
        node_sampler: the node sampler, used only if the profile sets percentageOfNodesToScore.
        only_nodes: the names of the nodes that may be selected; None means all.
        has_extenders: whether HTTP extenders are interested in the pod.
    """

    pod: PodInfo
    snapshot: Snapshot
    profile: Profile
    runtime: PluginRuntime
    rng: Random
    node_sampler: NodeSampler
    only_nodes: frozenset[str] | None = None
    has_extenders: bool = False


def schedule_pod(
    pod: PodInfo, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime, rng: Random, node_sampler: NodeSampler
) -> Decision:
    """Select a node for *pod* without extenders. The arguments are the fields of `CycleInputs`."""
    return schedule_without_extenders(CycleInputs(pod, snapshot, profile, runtime, rng, node_sampler))


def schedule_without_extenders(inputs: CycleInputs) -> Decision:
    """Run the cycle of *inputs* and skip the steps of extenders."""
    return run_without_extenders(run_scheduling_cycle(inputs))


def run_scheduling_cycle(inputs: CycleInputs) -> ExtenderSteps[Decision]:
    """Run the cycle of *inputs* as a generator, which yields the steps of extenders and returns the decision.

    A single feasible node is selected without scoring.

    Source: pkg/scheduler/schedule_one.go, Scheduler.schedulePod (1.36).
    """
    nodes, evaluated_nodes = yield from _find_nodes(inputs)
    diagnosis = nodes.diagnosis
    pre_filter_run = diagnosis.pre_filter_run
    ranking: Ranking | None = None
    if not diagnosis.has_feasible_node:
        return (yield from _make_failure(inputs, diagnosis))
    if diagnosis.feasible_count == 1:
        row = int(np.flatnonzero(diagnosis.feasible)[0])
    else:
        ranking = prioritize_nodes(
            inputs.pod, nodes.snapshot, inputs.profile, nodes.runtime, diagnosis.feasible, pre_filter_run
        )
        if inputs.has_extenders and ranking.error is None:
            ranking = yield PrioritizeStep(diagnosis, ranking)
        if ranking.error is not None:
            return ScheduleFailure(ranking.error, diagnosis, nominated_node="")
        row = select_host(ranking, inputs.rng)
    return ScheduleResult(
        inputs.snapshot.names[row],
        diagnosis.feasible_count,
        evaluated_nodes,
        pre_filter_run.cycle_state,
        ranking,
        pre_filter_run.skipped_plugins,
    )


def _find_nodes(inputs: CycleInputs) -> ExtenderSteps[tuple[FilteredNodes, int]]:
    """Return the nodes that pass the plugins and the extenders, and the number of evaluated nodes.

    If the nominated node passes, only that node is feasible. Otherwise all nodes are evaluated.

    Source: pkg/scheduler/schedule_one.go, Scheduler.evaluateNominatedNode, Scheduler.findNodesThatFitPod (1.36).
    """
    diagnosis, evaluated_nodes = _find_nodes_that_pass_plugins(inputs)
    nodes = FilteredNodes(diagnosis, inputs.snapshot, inputs.runtime)
    if not inputs.has_extenders or not diagnosis.has_feasible_node:
        return nodes, evaluated_nodes
    nodes = yield FilterStep(diagnosis)
    nominated_row = inputs.snapshot.row(inputs.pod.pod.status.nominated_node_name)
    is_nominated_node = nominated_row is not None and bool(diagnosis.feasible[nominated_row])
    if is_nominated_node and not nodes.diagnosis.has_feasible_node:
        nominated = nodes.diagnosis
        diagnosis, evaluated_nodes = _find_nodes_that_pass_plugins(inputs, ignore_nomination=True)
        diagnosis, reason_count = _keep_extender_reasons(diagnosis, nominated)
        inputs.node_sampler.skip_nominated_node(diagnosis.node_count, reason_count)
        nodes = FilteredNodes(diagnosis, inputs.snapshot, inputs.runtime)
        if diagnosis.has_feasible_node:
            nodes = yield FilterStep(diagnosis)
    return nodes, evaluated_nodes


def _keep_extender_reasons(diagnosis: Diagnosis, nominated: Diagnosis) -> tuple[Diagnosis, int]:
    """Return *diagnosis* with the reasons that extenders gave while only the nominated node was evaluated.

    Also return the number of nodes with such a reason, which the next search then skips. Nodes that do not exist count.
    All reasons in *nominated* are those of extenders. A reason stays unless a plugin or a later call of an extender has
    another one for the node.

    Source: pkg/scheduler/schedule_one.go, Scheduler.evaluateNominatedNode, findNodesThatPassExtenders (1.36).
    """
    rejected = np.zeros(diagnosis.node_count, dtype=np.bool_)
    for rejection in diagnosis.rejections:
        rejected |= rejection.nodes
    rejections = nominated.restrict_to(~rejected).rejections
    reason_count = len(nominated.unknown_nodes) + sum(int(rejection.nodes.sum()) for rejection in rejections)
    rejections = (*diagnosis.rejections, *rejections)
    return replace(diagnosis, rejections=rejections, unknown_nodes=nominated.unknown_nodes), reason_count


def _find_nodes_that_pass_plugins(inputs: CycleInputs, *, ignore_nomination: bool = False) -> tuple[Diagnosis, int]:
    """Return a diagnosis with the nodes that pass the Filter plugins, and the number of evaluated nodes.

    If the nominated node of the pod fits, only that node is feasible, unless *ignore_nomination* is set.
    """
    pod, snapshot, profile = inputs.pod, inputs.snapshot, inputs.profile
    diagnosis = find_nodes_that_pass_filters(
        pod, snapshot, profile, inputs.runtime, only_nodes=inputs.only_nodes, with_rejections=inputs.has_extenders
    )
    nominated_name = "" if ignore_nomination else pod.pod.status.nominated_node_name
    is_requested = inputs.only_nodes is None or nominated_name in inputs.only_nodes
    row = snapshot.row(nominated_name) if is_requested else None
    if row is not None:
        nominated = _evaluate_nominated_node(inputs, diagnosis, nominated_name)
        if nominated.feasible[row]:  # errors of other nodes do not matter
            return replace(nominated.restrict_to(make_mask([row], diagnosis.node_count)), error=None), 1
        if inputs.has_extenders or not diagnosis.has_feasible_node:
            diagnosis = _add_nominated_node(diagnosis, nominated, row)
    if profile.percentage_of_nodes_to_score and diagnosis.node_count and diagnosis.pre_filter_run.status is None:
        return _sample_nodes(inputs, diagnosis, row)
    return diagnosis, diagnosis.node_count - diagnosis.unrequested_count


def _evaluate_nominated_node(inputs: CycleInputs, diagnosis: Diagnosis, name: str) -> Diagnosis:
    """Return *diagnosis*, or one of only the nominated node *name* if PreFilter excluded that node.

    kube-scheduler evaluates the nominated node first. It selects the node if Filter passes, whatever PreFilter says.

    Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod, Scheduler.evaluateNominatedNode (1.36).
    """
    run = diagnosis.pre_filter_run
    if run.status is not None or run.node_names is None or name in run.node_names:
        return diagnosis
    pod, snapshot, profile, runtime = inputs.pod, inputs.snapshot, inputs.profile, inputs.runtime
    own_run = replace(run, node_names=frozenset({name}))
    check_all = profile.check_all_filters
    results = run_filters_with_nominated_pods(pod, snapshot, profile, runtime, own_run, all_filters=check_all)
    return build_diagnosis(results, snapshot, own_run, with_rejections=True)


def _add_nominated_node(diagnosis: Diagnosis, nominated: Diagnosis, row: int) -> Diagnosis:
    """Return *diagnosis* with the rejection of the nominated node in *row*, if PreFilter restricts the nodes.

    The reason of the excluded nodes then names the plugins that reject it. *nominated* has its rejection.

    Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod, Scheduler.evaluateNominatedNode (1.36).
    """
    run = diagnosis.pre_filter_run
    if not run.restricting_plugins or run.node_names is None or run.status is not None:
        return diagnosis
    rejections = diagnosis.rejections
    if nominated is not diagnosis:
        rejections += nominated.rejections
    rejectors = {rejection.plugin for rejection in rejections if rejection.nodes[row]}
    plugins = tuple(sorted({*run.restricting_plugins, *rejectors}))
    return replace(diagnosis, rejections=rejections, pre_filter_run=replace(run, restricting_plugins=plugins))


def _make_failure(inputs: CycleInputs, diagnosis: Diagnosis) -> ExtenderSteps[ScheduleFailure]:
    """Return the failure of a cycle without a feasible node. PostFilter runs first, unless an error occurred.

    Source: pkg/scheduler/schedule_one.go, Scheduler.schedulingAlgorithm (1.36).
    """
    if diagnosis.error is not None:
        return ScheduleFailure(diagnosis.error, diagnosis, nominated_node="")
    if diagnosis.node_count == 0:
        return ScheduleFailure(unresolvable_status(NO_NODES), diagnosis, nominated_node="")
    if not inputs.profile.post_filter_plugins:
        status = unschedulable_status(diagnosis.format_message())
        return ScheduleFailure(status, diagnosis, diagnosis.rejectors, nominated_node="")
    attempt = FailedAttempt(diagnosis, inputs.profile, inputs.runtime, inputs.rng)
    outcome = yield from make_post_filter_steps(
        inputs.pod, inputs.snapshot, attempt, has_extenders=inputs.has_extenders
    )
    status = unschedulable_status(diagnosis.format_message(outcome.status.message))
    return ScheduleFailure(
        status, diagnosis, diagnosis.rejectors, outcome.nominated_node, outcome.plans, outcome.rejections
    )


def _sample_nodes(inputs: CycleInputs, diagnosis: Diagnosis, nominated_row: int | None) -> tuple[Diagnosis, int]:
    """Restrict *diagnosis* to the nodes that a search examines; the nominated node, which is rejected, is one of them.

    Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36).
    """
    snapshot, profile, node_sampler = inputs.snapshot, inputs.profile, inputs.node_sampler
    allowed_mask = make_allowed_mask(diagnosis.pre_filter_run, snapshot)
    num_nodes_to_find = num_feasible_nodes_to_find(int(allowed_mask.sum()), profile.percentage_of_nodes_to_score or 100)
    if not profile.score_plugins and not node_sampler.has_extenders:
        num_nodes_to_find = 1  # without scores all feasible nodes are equal
    sampled_mask, examined_mask = node_sampler.sample(snapshot, allowed_mask, diagnosis.feasible, num_nodes_to_find)
    if nominated_row is not None and not examined_mask[nominated_row]:
        examined_mask[nominated_row] = True
        node_sampler.skip_nominated_node(len(snapshot))
    return replace(diagnosis.restrict_to(examined_mask), feasible=sampled_mask), int(examined_mask.sum())
