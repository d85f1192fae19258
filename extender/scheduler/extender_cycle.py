"""The scheduling cycle of a pod with HTTP extenders, which are called after Filter, after Score and during preemption.

`cycle.scheduling_cycle` yields the steps; this module makes the calls. One pod is scheduled at a time, on one snapshot.
The cache may change during the calls, so the selected node is rechecked on a new snapshot.

Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatPassFilters; pkg/scheduler/extender.go,
HTTPExtender.Prioritize (1.36).
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import msgspec
import numpy as np

from extender.api.extender_v1 import HostPriority
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, make_mask
from extender.client.extender import ExtenderArgs, ExtenderFilterResult, HttpExtender, ReturnedNode
from extender.client.extender_transport import ExtenderError
from extender.cycle.decision import Decision, ScheduleFailure, ScheduleResult
from extender.cycle.diagnosis import Diagnosis, NodeRejection, find_nodes_that_pass_filters
from extender.cycle.extender_steps import ExtenderStep, FilteredNodes, FilterStep, PreemptStep, PrioritizeStep
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.scheduling_cycle import CycleInputs, run_scheduling_cycle
from extender.cycle.score import Ranking
from extender.event_loop.cooperative_iteration import let_other_tasks_run
from extender.event_loop.turn_budget import begin_step
from extender.framework.extension_points import PostFilterResult
from extender.framework.profiles import Profile
from extender.framework.result_cache import ResultCache
from extender.framework.status import Code, Reason, error_status
from extender.preemption.plan import PreemptionPlan
from extender.queueing.queueing_hints import EXTENDER_NAME
from extender.scheduler.context import SchedulerContext, log
from extender.scheduler.evictions import preempt_in_cycle
from extender.scheduler.extender_preemption import call_extenders, is_error_ignored

_SCORE_FACTOR = 10
"""The factor that scales extender scores, which are 0 to 10, to the range of plugin scores, 0 to 100.

Source: kube-scheduler/extender/v1/types.go, MaxExtenderPriority; pkg/scheduler/schedule_one.go, prioritizeNodes
(1.36).
"""

_NO_NODE_FITS_ANY_MORE = (
    "the cluster changed during the extender calls, and the pod no longer fits any node that passed them"
)


async def schedule_with_extenders(
    context: SchedulerContext,
    pod: PodInfo,
    profile: Profile,
    extenders: Sequence[HttpExtender],
    snapshot: Snapshot,
    only_nodes: frozenset[str] | None = None,
) -> Decision:
    """Run the scheduling cycle of *pod* and call the extenders at its steps.

    *extenders* are interested in the pod, in order; there may be none if the cycle itself evicts pods. *only_nodes* are
    the names of the nodes that may be selected; None means all.
    """
    runtime = context.runtimes[profile.scheduler_name]
    inputs = CycleInputs(
        pod, snapshot, profile, runtime, context.rng, context.node_sampler, only_nodes, has_extenders=True
    )
    calls = _ExtenderCalls(context, pod, extenders, snapshot, runtime)
    with closing(run_scheduling_cycle(inputs)) as steps:
        try:
            step = next(steps)
            while True:
                await let_other_tasks_run(1)
                answer = await calls.make(step)
                begin_step()  # other tasks ran during the call
                step = steps.send(answer)
        except StopIteration as stop:
            decision: Decision = stop.value
            return decision


class _ExtenderCalls:
    """The calls of extenders in one scheduling cycle."""

    def __init__(
        self,
        context: SchedulerContext,
        pod: PodInfo,
        extenders: Sequence[HttpExtender],
        snapshot: Snapshot,
        runtime: PluginRuntime,
    ) -> None:
        self._context, self._pod, self._extenders = context, pod, extenders
        self._snapshot, self._runtime = snapshot, runtime
        self._returned_nodes: dict[str, ReturnedNode] = {}

    async def make(self, step: ExtenderStep) -> FilteredNodes | Ranking | PostFilterResult:
        match step:
            case FilterStep(diagnosis):
                return self._replace_returned_nodes(await self._run_filters(diagnosis))
            case PrioritizeStep(diagnosis, ranking):
                return await self._add_scores(diagnosis.feasible, ranking)
            case PreemptStep(result):
                return await self._preempt(result)

    async def _preempt(self, result: PostFilterResult) -> PostFilterResult:
        """Call the preempt verbs. Without the gate SchedulerAsyncPreemption, evict the victims too."""
        context, pod = self._context, self._pod.pod
        if isinstance(result.plan, PreemptionPlan):
            result = await call_extenders(result, result.plan, pod, self._snapshot, self._extenders, context.rng)
        return result if "SchedulerAsyncPreemption" in context.gates else await preempt_in_cycle(context, pod, result)

    # -- filter

    async def _run_filters(self, diagnosis: Diagnosis) -> Diagnosis:
        """Call the extenders' filter verbs one after another.

        Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders (1.36).
        """
        self._returned_nodes = {}
        for extender in self._extenders:
            if not extender.config.filter_verb:
                continue
            if not diagnosis.feasible.any():
                break
            try:
                result = await extender.filter(self._make_extender_args(diagnosis.feasible))
            except ExtenderError as error:
                if is_error_ignored(extender, error):
                    continue
                return replace(diagnosis, error=error_status(str(error)))
            if result.nodes is not None:
                self._returned_nodes = dict(result.nodes)
            diagnosis = apply_filter_result(diagnosis, result, self._snapshot)
        return diagnosis

    def _make_extender_args(self, feasible: BoolArray) -> ExtenderArgs:
        rows = np.flatnonzero(feasible).tolist()
        names, nodes, returned_nodes = self._snapshot.names, self._snapshot.nodes, self._returned_nodes

        def list_raw_nodes() -> list[msgspec.Raw]:
            get_raw_node = self._context.raw_objects.get
            return [
                returned_nodes[names[row]].raw if names[row] in returned_nodes else get_raw_node(nodes[row])
                for row in rows
            ]

        return ExtenderArgs(self._pod.pod, [names[row] for row in rows], list_raw_nodes)

    def _replace_returned_nodes(self, diagnosis: Diagnosis) -> FilteredNodes:
        """Return the feasible nodes with the snapshot for Score plugins.

        In the snapshot, the nodes that an extender returned replace the cached nodes. The returned nodes have no pods
        and no images, because kube-scheduler also builds a new NodeInfo from each of them.

        Source: pkg/scheduler/extender.go, HTTPExtender.Filter (1.36).
        """
        snapshot = self._snapshot
        if not self._returned_nodes or diagnosis.feasible_count <= 1:
            return FilteredNodes(diagnosis, snapshot, self._runtime)
        hypothesis = Hypothesis(snapshot)
        pods: list[AssignedPodInfo] = []
        rows: list[int] = []
        try:
            for row in np.flatnonzero(diagnosis.feasible).tolist():
                node = self._returned_nodes[snapshot.names[row]].node
                status = msgspec.structs.replace(node.status, images=())
                hypothesis.add_or_update_node(msgspec.structs.replace(node, status=status))
                pods_on_node = snapshot.pods_on(snapshot.names[row]).values()
                pods.extend(pods_on_node)
                rows.extend([row] * len(pods_on_node))
        except ValueError as error:  # an invalid quantity
            failure = error_status(f"an extender returned an invalid node: {error}")
            return FilteredNodes(replace(diagnosis, error=failure), snapshot, self._runtime)
        batch = PodBatch(pods, np.array(rows, dtype=np.int64))
        hypothesis.remove_pods(batch, np.arange(len(batch)))
        runtime = PluginRuntime(self._runtime.runner, ResultCache(enabled=False))
        replaced = hypothesis.snapshot()
        replaced.returned_rows = diagnosis.feasible
        return FilteredNodes(diagnosis, replaced, runtime)

    # -- prioritize

    async def _add_scores(self, feasible: BoolArray, ranking: Ranking) -> Ranking:
        """Call the extenders' prioritize verbs concurrently and return *ranking* with their scores added.

        Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36).
        """
        prioritizers = [extender for extender in self._extenders if extender.config.prioritize_verb]
        if not prioritizers:
            return ranking
        args = self._make_extender_args(feasible)
        calls = (_run_extender_prioritize(extender, args) for extender in prioritizers)
        score_lists = await asyncio.gather(*calls)
        totals = ranking.totals.copy()
        position_by_name = {name: position for position, name in enumerate(args.node_names)}
        for extender, scores in zip(prioritizers, score_lists, strict=True):
            known_scores = [score for score in scores if score.host in position_by_name]
            positions = np.array([position_by_name[score.host] for score in known_scores], dtype=np.int64)
            raw_scores = np.array([score.score for score in known_scores], dtype=np.int64)
            scaled_scores = raw_scores * np.int64(extender.config.weight) * np.int64(_SCORE_FACTOR)  # wraps as in Go
            np.add.at(totals, positions, scaled_scores)
        return replace(ranking, totals=totals, best_rows=None)


def recheck_selected_node(
    context: SchedulerContext, pod: PodInfo, profile: Profile, old_snapshot: Snapshot, decision: ScheduleResult
) -> Decision:
    """Recheck *decision*, which was made on *old_snapshot*, because the cache may have changed during the calls.

    Return it if its node still fits, else a decision for the best scored node that still fits. If no scored node fits,
    return a failure.
    """
    runtime = context.runtimes[profile.scheduler_name]
    with context.cache.read() as snapshot, runtime.runner.unobserved():
        if snapshot is old_snapshot:
            return decision
        diagnosis = find_nodes_that_pass_filters(pod, snapshot, profile, runtime)
    if diagnosis.error is not None:
        return ScheduleFailure(diagnosis.error, diagnosis, nominated_node="")

    def fits(name: str) -> bool:
        row = context.cache.row(name)
        return row is not None and bool(diagnosis.feasible[row])

    cycle_state = diagnosis.pre_filter_run.cycle_state
    if fits(decision.suggested_host):
        return replace(decision, cycle_state=cycle_state)
    if decision.ranking is not None:
        for position in np.argsort(-decision.ranking.totals, kind="stable").tolist():
            name = old_snapshot.names[int(decision.ranking.rows[position])]
            if fits(name):
                return replace(decision, suggested_host=name, cycle_state=cycle_state)
    return ScheduleFailure(error_status(_NO_NODE_FITS_ANY_MORE), diagnosis, nominated_node="")


async def _run_extender_prioritize(extender: HttpExtender, args: ExtenderArgs) -> Sequence[HostPriority]:
    """Return the extender's scores; an empty list if the call failed.

    Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36).
    """
    try:
        return await extender.prioritize(args)
    except ExtenderError as error:
        fields = {"extender": extender.name, "err": str(error)}
        log.debug("Failed to run extender's priority function. No score given by this extender.", extra=fields)
        return []


def apply_filter_result(diagnosis: Diagnosis, result: ExtenderFilterResult, snapshot: Snapshot) -> Diagnosis:
    """Return *diagnosis* with the result of an extender's filter verb.

    Only the nodes that the extender returned are feasible. The extender's reason for a node replaces earlier reasons.
    If the extender omits a node without a reason, the node counts as UNRESOLVABLE. Messages count unknown node names.

    Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders, Scheduler.findNodesThatFitPod;
    pkg/scheduler/framework/interface.go, NewDefaultNodeToStatus (1.36).
    """
    passed_mask = make_mask(snapshot.rows(list(result.node_names)), diagnosis.node_count)
    rows_by_reason: dict[Reason, list[int]] = {}
    unknown_nodes = dict(diagnosis.unknown_nodes)
    for name, message in {**result.failed, **result.unresolvable}.items():
        code = Code.UNRESOLVABLE if name in result.unresolvable else Code.UNSCHEDULABLE
        row = snapshot.row(name)
        if row is None:
            unknown_nodes[name] = message
        else:
            rows_by_reason.setdefault(Reason(message, code), []).append(row)
    nodes_with_reason = np.zeros(diagnosis.node_count, dtype=np.bool_)
    new_rejections: list[NodeRejection] = []
    for reason, rows in rows_by_reason.items():
        nodes = make_mask(rows, diagnosis.node_count)
        nodes_with_reason |= nodes
        new_rejections.append(NodeRejection(EXTENDER_NAME, reason, nodes))
    others = _restrict_rejections(diagnosis.rejections, ~nodes_with_reason)
    replaced = _restrict_rejections(diagnosis.rejections, nodes_with_reason)
    excludes_nodes = int(passed_mask.sum()) != diagnosis.feasible_count
    extra_rejectors = diagnosis.extra_rejectors | {EXTENDER_NAME} if excludes_nodes else diagnosis.extra_rejectors
    return replace(
        diagnosis,
        feasible=passed_mask,
        rejections=(*others, *new_rejections),
        extra_rejectors=extra_rejectors,
        unknown_nodes=unknown_nodes,
        replaced_rejections=(*diagnosis.replaced_rejections, *replaced),
    )


def _restrict_rejections(rejections: Sequence[NodeRejection], mask: BoolArray) -> list[NodeRejection]:
    """Return the *rejections* of the nodes in *mask* (bool, shape (number of nodes,)), without empty ones."""
    restricted = (replace(rejection, nodes=rejection.nodes & mask) for rejection in rejections)
    return [rejection for rejection in restricted if rejection.nodes.any()]
