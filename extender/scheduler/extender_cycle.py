"""The scheduling cycle of a pod with HTTP extenders, which are called after Filter, after Score and during preemption.

The cycle has the steps of `cycle.scheduling_cycle` and adds the calls. Pods are still scheduled one at a time, each on
one snapshot. The cache may change during the calls, so the selected node is rechecked on a new snapshot.

Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod, findNodesThatPassExtenders,
Scheduler.findNodesThatPassFilters; pkg/scheduler/extender.go, HTTPExtender.Filter, HTTPExtender.Prioritize;
pkg/scheduler/framework/interface.go, NewDefaultNodeToStatus (1.36).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import msgspec
import numpy as np

from extender.api.extender_v1 import HostPriority
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.client.extender import ExtenderFilterResult, ExtenderQuery, HttpExtender, ReturnedNode
from extender.client.extender_transport import ExtenderError
from extender.cycle.decision import Decision, ScheduleFailure, ScheduleResult
from extender.cycle.diagnosis import Diagnosis, NodeRejection, find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.post_filter import FailedAttempt, PostFilterCollector, PostFilterRun, run_post_filter_plugin
from extender.cycle.scheduling_cycle import (
    find_nodes_that_fit,
    make_failure_after_post_filter,
    make_failure_without_post_filter,
    make_result_from_scores,
    make_single_node_result,
)
from extender.cycle.score import Ranking, prioritize_nodes
from extender.framework.profiles import Profile
from extender.framework.result_cache import ResultCache
from extender.framework.status import Code, Reason, Status
from extender.preemption.plan import PreemptionPlan
from extender.queueing.queueing_hints import EXTENDER_NAME
from extender.scheduler.context import SchedulerContext, log
from extender.scheduler.extender_preemption import call_extenders, is_error_ignored

_SCORE_FACTOR = 10
"""Factor of extender scores in addition to the weight: extender scores range up to 10, plugin scores up to 100.

Source: kube-scheduler/extender/v1/types.go, MaxExtenderPriority; pkg/scheduler/schedule_one.go, prioritizeNodes
(1.36).
"""

_NO_NODE_FITS_ANY_MORE = (
    "the cluster changed during the extender calls, and the pod no longer fits any node that passed them"
)


class ExtenderCycle:
    """One scheduling cycle of one pod."""

    def __init__(
        self,
        context: SchedulerContext,
        pod: PodInfo,
        profile: Profile,
        extenders: Sequence[HttpExtender],
        snapshot: Snapshot,
        only_nodes: frozenset[str] | None = None,
    ) -> None:
        """Prepare the cycle without calling an extender.

        Args:
            context: the context of the scheduler.
            pod: the pod to schedule.
            profile: the profile of the pod's scheduler name.
            extenders: the extenders that are interested in the pod, in order.
            snapshot: the cluster, or a hypothesis of it.
            only_nodes: the names of the nodes that may be selected; None means all.
        """
        self._context, self._pod, self._profile, self._extenders = context, pod, profile, extenders
        self._runtime = context.runtimes[profile.scheduler_name]
        self._snapshot, self._only_nodes = snapshot, only_nodes
        self._returned_nodes: dict[str, ReturnedNode] = {}

    async def run_and_recheck(self) -> Decision:
        """Run the cycle and recheck the selected node on a new snapshot."""
        decision, diagnosis = await self._schedule()
        return self._recheck(decision, diagnosis) if isinstance(decision, ScheduleResult) else decision

    async def run(self) -> Decision:
        """Run the cycle."""
        return (await self._schedule())[0]

    async def _schedule(self) -> tuple[Decision, Diagnosis]:
        diagnosis, evaluated_nodes = await self._find_nodes()
        if not diagnosis.has_feasible_node:
            return await self._run_post_filter(diagnosis), diagnosis
        if diagnosis.feasible_count == 1:
            return make_single_node_result(self._snapshot, diagnosis, evaluated_nodes), diagnosis
        ranking = await self._prioritize_nodes(diagnosis)
        return make_result_from_scores(
            self._snapshot, diagnosis, ranking, evaluated_nodes, self._context.rng
        ), diagnosis

    # -- filtering

    async def _find_nodes(self) -> tuple[Diagnosis, int]:
        """Return the nodes that pass plugins and extenders; only the nominated node if it is one of them.

        Source: pkg/scheduler/schedule_one.go, Scheduler.evaluateNominatedNode (1.36).
        """
        snapshot = self._snapshot
        find_nodes = partial(
            find_nodes_that_fit,
            self._pod,
            snapshot,
            self._profile,
            self._runtime,
            self._context.node_sampler,
            only_nodes=self._only_nodes,
            with_rejections=True,
        )
        diagnosis, evaluated_nodes = find_nodes()
        nominated_row = snapshot.row(self._pod.pod.status.nominated_node_name)
        if diagnosis.has_feasible_node and nominated_row is not None and diagnosis.feasible[nominated_row]:
            passed_diagnosis = await self._run_extender_filters(diagnosis)
            if passed_diagnosis.has_feasible_node:
                return passed_diagnosis, evaluated_nodes
            diagnosis, evaluated_nodes = find_nodes(ignore_nomination=True)
        if diagnosis.has_feasible_node:
            diagnosis = await self._run_extender_filters(diagnosis)
        return diagnosis, evaluated_nodes

    async def _run_extender_filters(self, diagnosis: Diagnosis) -> Diagnosis:
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
                result = await extender.filter(self._make_query(diagnosis.feasible))
            except ExtenderError as error:
                if is_error_ignored(extender, error):
                    continue
                return replace(diagnosis, error=Status(Code.ERROR, (str(error),)))
            if result.nodes is not None:
                self._returned_nodes = dict(result.nodes)
            diagnosis = apply_filter_result(diagnosis, result, self._snapshot)
        return diagnosis

    def _make_query(self, feasible: BoolArray) -> ExtenderQuery:
        rows = np.flatnonzero(feasible).tolist()
        names, nodes, returned_nodes = self._snapshot.names, self._snapshot.nodes, self._returned_nodes

        def list_raw_nodes() -> list[msgspec.Raw]:
            get_raw_node = self._context.raw_objects.get
            return [
                returned_nodes[names[row]].raw if names[row] in returned_nodes else get_raw_node(nodes[row])
                for row in rows
            ]

        return ExtenderQuery(self._pod.pod, [names[row] for row in rows], list_raw_nodes)

    # -- scoring

    async def _prioritize_nodes(self, diagnosis: Diagnosis) -> Ranking:
        """Score with plugins and, if these succeed, add the scores of extenders.

        Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36).
        """
        try:
            snapshot, runtime = self._make_snapshot_for_scoring(diagnosis.feasible)
        except ValueError as error:
            no_scores = np.empty(0, dtype=np.int64)
            return Ranking(
                no_scores, no_scores, error=Status(Code.ERROR, (f"an extender returned an invalid node: {error}",))
            )
        feasible, pre_filter_run = diagnosis.feasible, diagnosis.pre_filter_run
        ranking = prioritize_nodes(self._pod, snapshot, self._profile, runtime, feasible, pre_filter_run)
        prioritizers = [extender for extender in self._extenders if extender.config.prioritize_verb]
        if ranking.error is not None or not prioritizers:
            return ranking
        query = self._make_query(feasible)
        calls = (_run_extender_prioritize(extender, query) for extender in prioritizers)
        score_lists = await asyncio.gather(*calls)
        totals = ranking.totals.copy()
        position_by_name = {name: position for position, name in enumerate(query.node_names)}
        for extender, scores in zip(prioritizers, score_lists, strict=True):
            known_scores = [score for score in scores if score.host in position_by_name]
            positions = np.array([position_by_name[score.host] for score in known_scores], dtype=np.int64)
            raw_scores = np.array([score.score for score in known_scores], dtype=np.int64)
            np.add.at(totals, positions, _scale_scores(raw_scores, extender.config.weight))
        return replace(ranking, totals=totals, best_positions=None)

    def _make_snapshot_for_scoring(self, feasible: BoolArray) -> tuple[Snapshot, PluginRuntime]:
        """Return the snapshot for scoring, in which nodes that an extender returned replace the cached nodes.

        The returned nodes have no pods or images, because kube-scheduler too builds a new NodeInfo from each.

        Raises:
            ValueError: a returned node has an invalid quantity.

        Source: pkg/scheduler/extender.go, HTTPExtender.Filter (1.36).
        """
        if not self._returned_nodes:
            return self._snapshot, self._runtime
        snapshot = self._snapshot
        hypothesis = Hypothesis(snapshot)
        pods: list[AssignedPodInfo] = []
        rows: list[int] = []
        for row in np.flatnonzero(feasible).tolist():
            node = self._returned_nodes[snapshot.names[row]].node
            status = msgspec.structs.replace(node.status, images=())
            hypothesis.add_or_update_node(msgspec.structs.replace(node, status=status))
            pods_on_node = snapshot.pods_on(snapshot.names[row]).values()
            pods.extend(pods_on_node)
            rows.extend([row] * len(pods_on_node))
        batch = PodBatch(pods, np.array(rows, dtype=np.int64))
        hypothesis.remove_pods(batch, np.arange(len(batch)))
        return hypothesis.snapshot(), PluginRuntime(self._runtime.runner, ResultCache(enabled=False))

    # -- PostFilter

    async def _run_post_filter(self, diagnosis: Diagnosis) -> ScheduleFailure:
        failure = make_failure_without_post_filter(diagnosis, self._profile)
        if failure is not None:
            return failure
        start_time = self._runtime.runner.start_timer()
        attempt = FailedAttempt(diagnosis, self._profile, self._runtime, self._context.rng)
        post_filter_run = await self._run_post_filter_plugins(attempt)
        self._runtime.runner.observe_extension_point(
            self._profile.scheduler_name, "PostFilter", post_filter_run.status, start_time
        )
        return make_failure_after_post_filter(diagnosis, post_filter_run)

    async def _run_post_filter_plugins(self, attempt: FailedAttempt) -> PostFilterRun:
        """Run the PostFilter plugins; extenders may change a preemption plan."""
        collector = PostFilterCollector()
        for plugin in self._profile.post_filter_plugins:
            result = run_post_filter_plugin(plugin, self._pod, self._snapshot, attempt)
            if isinstance(result.detail, PreemptionPlan):
                result = await call_extenders(
                    result, result.detail, self._pod.pod, self._snapshot, self._extenders, self._context.rng
                )
            post_filter_run = collector.add(plugin.name, result)
            if post_filter_run is not None:
                return post_filter_run
        return collector.finish()

    # -- rechecking on the newest snapshot

    def _recheck(self, decision: ScheduleResult, diagnosis: Diagnosis) -> Decision:
        """Return *decision* if its node still fits, else a decision for the best node that fits, or a failure."""
        new_snapshot = self._context.cache.snapshot()
        if new_snapshot is self._snapshot:
            return decision
        new_diagnosis = find_nodes_that_pass_filters(self._pod, new_snapshot, self._profile, self._runtime)
        if new_diagnosis.error is not None:
            return ScheduleFailure(
                new_diagnosis.error, new_diagnosis.format_message(), new_diagnosis, nominated_node=""
            )

        def fits(name: str) -> bool:
            row = new_snapshot.row(name)
            return row is not None and bool(new_diagnosis.feasible[row])

        cycle_state = new_diagnosis.pre_filter_run.cycle_state
        if fits(decision.suggested_host):
            return replace(decision, cycle_state=cycle_state)
        names, ranking = self._snapshot.names, decision.ranking
        if ranking is not None:
            for position in np.argsort(-ranking.totals, kind="stable").tolist():
                name = names[int(ranking.rows[position])]
                if fits(name):
                    return replace(decision, suggested_host=name, cycle_state=cycle_state)
        status = Status(Code.ERROR, (_NO_NODE_FITS_ANY_MORE,))
        return ScheduleFailure(status, _NO_NODE_FITS_ANY_MORE, diagnosis, nominated_node="")


async def _run_extender_prioritize(extender: HttpExtender, query: ExtenderQuery) -> list[HostPriority]:
    """Return the extender's scores; an empty list if the call failed.

    Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36).
    """
    try:
        return await extender.prioritize(query)
    except ExtenderError as error:
        fields = {"extender": extender.name, "err": str(error)}
        log.debug("Failed to run extender's priority function. No score given by this extender.", extra=fields)
        return []


def _scale_scores(scores: IntArray, weight: int) -> IntArray:
    """Return the amounts that *scores* add to the totals: int64; overflow wraps as in Go."""
    return scores * np.int64(weight) * np.int64(_SCORE_FACTOR)


def apply_filter_result(diagnosis: Diagnosis, result: ExtenderFilterResult, snapshot: Snapshot) -> Diagnosis:
    """Return *diagnosis* after an extender's filter: the nodes that it rejected are infeasible, for its reasons.

    The extender's reason for a node replaces earlier ones. A node that it omits without a reason counts as
    UNRESOLVABLE. Unknown node names are ignored.

    Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders, Scheduler.findNodesThatFitPod;
    pkg/scheduler/framework/interface.go, NewDefaultNodeToStatus (1.36).
    """
    passed_mask = np.zeros(diagnosis.node_count, dtype=np.bool_)
    passed_mask[snapshot.rows(list(result.node_names))] = True
    rows_by_reason: dict[Reason, list[int]] = {}
    for code, messages in ((Code.UNRESOLVABLE, result.unresolvable), (Code.UNSCHEDULABLE, result.failed)):
        for name, message in messages.items():
            row = snapshot.row(name)
            if row is not None and (code is Code.UNRESOLVABLE or name not in result.unresolvable):
                rows_by_reason.setdefault(Reason(message, code), []).append(row)
    nodes_with_reason = np.zeros(diagnosis.node_count, dtype=np.bool_)
    new_rejections: list[NodeRejection] = []
    for reason, rows in rows_by_reason.items():
        nodes = np.zeros(diagnosis.node_count, dtype=np.bool_)
        nodes[rows] = True
        nodes_with_reason |= nodes
        new_rejections.append(NodeRejection(EXTENDER_NAME, reason, nodes))
    earlier_rejections = [
        replace(rejection, nodes=rejection.nodes & ~nodes_with_reason) for rejection in diagnosis.rejections
    ]
    rejections = (*(rejection for rejection in earlier_rejections if rejection.nodes.any()), *new_rejections)
    excludes_nodes = int(passed_mask.sum()) != diagnosis.feasible_count
    extra_rejectors = diagnosis.extra_rejectors | {EXTENDER_NAME} if excludes_nodes else diagnosis.extra_rejectors
    return replace(diagnosis, feasible=passed_mask, rejections=rejections, extra_rejectors=extra_rejectors)
