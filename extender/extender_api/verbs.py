"""The verbs filter, prioritize and preempt: they run the same functions as the scheduling cycle."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from random import Random
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from extender.api.defaulting import set_defaults
from extender.api.extender_v1 import FilterResult, MetaPod, MetaVictims, PreemptionResult
from extender.api.kinds.pod import Pod
from extender.api.validation import validate_object
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.binding_cycle import make_assumed_pod
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.cycle.pre_filter import PreFilterRun
from extender.cycle.score import Ranking, prioritize_nodes
from extender.event_loop.cooperative_iteration import iterate_cooperatively, let_other_tasks_run
from extender.extender_api.best_node.assumptions import Assumptions
from extender.extender_api.best_node.choice import NodeChoice, choose_node
from extender.extender_api.decision_log import DecisionLog
from extender.extender_api.failed_nodes import FEASIBLE, NodeReasons, reasons_from_diagnosis, reasons_from_status
from extender.extender_api.host_priorities import HostPriorities
from extender.extender_api.late_changes import LateChanges
from extender.extender_api.payloads import ExtenderArgs, PreemptionArgs
from extender.extender_api.request_limits import RequestError
from extender.extender_api.requested_nodes import RequestedNodes, add_requested_nodes, find_nodes_by_name
from extender.extender_api.score_scaling import ScoreRange, scale_totals
from extender.framework.profiles import Profile
from extender.framework.status import Status
from extender.metrics.verb_metrics import VerbMetrics
from extender.preemption.extender_victims import ReviewedVictims, review_victims

NO_NODES_MESSAGE = "neither Nodes nor NodeNames are set; want one of them"
NO_VICTIMS_MESSAGE = "neither NodeNameToVictims nor NodeNameToMetaVictims are set; want one of them"


_INT16_MAX: Final = np.iinfo(np.int16).max
_NAMES_PER_STEP: Final = 20_000
"""Failed nodes that are added to a response before other tasks run: about ten milliseconds."""

_NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class PodPreparer:
    """Validates a pod and sets its defaults.

    The last pod is cached, because filter and prioritize get the same pod, and the pods of a workload differ only in
    their metadata. Of the metadata, the namespace has a default, and the labels of a pod without uid affect its spec.
    """

    _last_prepared: tuple[Pod, Pod] | None = field(init=False, default=None, repr=False)

    def prepare(self, pod: Pod) -> Pod:
        """Return *pod* with defaults.

        Raises:
            RequestError: 400, with the first invalid field.
        """
        if self._last_prepared is not None:
            last_pod, last_prepared_pod = self._last_prepared
            if last_pod is pod:
                return last_prepared_pod
            is_created = pod.metadata.namespace and pod.metadata.uid and last_pod.metadata.uid
            if is_created and pod.spec == last_pod.spec and pod.status == last_pod.status:
                prepared_pod = replace(pod, spec=last_prepared_pod.spec)
                self._last_prepared = pod, prepared_pod
                return prepared_pod
        for path, message in validate_object(pod):
            raise RequestError(400, f"Pod.{path}: {message}")
        self._last_prepared = pod, set_defaults(pod)
        return self._last_prepared[1]


@dataclass(frozen=True, slots=True)
class Verbs:
    """Serves requests about one cluster. Not thread-safe: all calls must come from one event loop.

    Attributes:
        cache: the cluster; read-only here.
        default_profile: the profile for pods of any other scheduler.
        runtime: the runtime that runs plugins on snapshots of the cache.
        hypothesis_runtime: the runtime for snapshots with nodes of the request; it does not cache results.
        score_range: the range of the scores of prioritize.
        get_not_ready_reason: a function that returns the reason why no request can be served now, such as an incomplete
            cache; empty if requests can be served.
        assumptions: the pods that are assumed on the node that filter chose; None: filter answers all feasible nodes.
        rng: the random generator that breaks ties between nodes.
        late_change_seconds: the time in seconds that filter waits for changes that the caller may have seen earlier; 0
            if the cache does not change.
    """

    cache: Cache
    profiles: Mapping[str, Profile]
    default_profile: Profile
    runtime: PluginRuntime
    hypothesis_runtime: PluginRuntime
    _pod_preparer: PodPreparer = field(init=False, default_factory=PodPreparer)
    score_range: ScoreRange = ScoreRange.TEN
    metrics: VerbMetrics = field(default_factory=lambda: VerbMetrics(CollectorRegistry()))
    get_not_ready_reason: Callable[[], str] = lambda: ""
    decision_log: DecisionLog = field(default_factory=DecisionLog)
    assumptions: Assumptions | None = None
    rng: Random = field(default_factory=Random)
    late_change_seconds: float = 0.0

    async def filter(self, args: ExtenderArgs) -> FilterResult:
        """Return the requested nodes that fit the pod, and the reasons of the nodes that do not fit.

        Every requested node is in exactly one field of the result; unknown nodes are in FailedNodes. Nothing is
        reserved.

        With `assumptions`, the result is the one node with the highest total, and the pod is assumed on that node. If
        no node fits, the result is the same as without `assumptions`.

        If no node fits and the cache may lack a change that the caller has seen, it waits for a change; see
        `late_changes`.

        Raises:
            RequestError: the request is invalid.
        """
        if not_ready_message := self.get_not_ready_reason():
            return FilterResult(error=not_ready_message)
        self._end_assumption(args.pod)
        late_changes = LateChanges(self.cache, self.late_change_seconds)
        while (result := await self._filter_once(args, late_changes)) is None:
            await late_changes.wait()
        return result

    async def _filter_once(self, args: ExtenderArgs, late_changes: LateChanges) -> FilterResult | None:
        """Return the result of filter, or None if a wait for late changes may change it."""
        with self.cache.read() as snapshot:
            requested_nodes = await self._find_requested_nodes("filter", args, snapshot)
            pod_info, profile = self._prepare_pod(args.pod)
            choice = None if self.assumptions is None else choose_node(pod_info, profile, requested_nodes, self.rng)
            if choice is None:
                requested_nodes.node_names.use_strings_of(requested_nodes.snapshot)  # the decision log keeps the names
                reasons = _filter_nodes(pod_info, profile, requested_nodes)
                if isinstance(reasons, Status):
                    return self._build_error_result(args.pod, reasons)
                if args.names is not None and late_changes.may_change(reasons):
                    return None
                await let_other_tasks_run(len(requested_nodes.node_names))
                result = await self._build_filter_result(args, requested_nodes, profile, reasons)
                await let_other_tasks_run(len(requested_nodes.node_names))  # before the nodes are freed
                return result
            if isinstance(choice, Status):
                return self._build_error_result(args.pod, choice)
            result = self._build_choice_result(args, requested_nodes, profile, choice)
        self._assume(pod_info.pod, profile, choice)
        return result

    def _build_error_result(self, pod: Pod, status: Status) -> FilterResult:
        self.metrics.count_failed_decision("filter")
        self.decision_log.add_failure(pod, "filter", status.message)
        return FilterResult(error=status.message)

    def _build_choice_result(
        self, args: ExtenderArgs, requested_nodes: RequestedNodes, profile: Profile, choice: NodeChoice
    ) -> FilterResult:
        """Return the chosen node as the result of filter; the other nodes are in no field of the result."""
        self.decision_log.add_choice(args.pod, profile.scheduler_name, len(requested_nodes.node_names), choice)
        self.metrics.observe_nodes("filter", len(requested_nodes.node_names), 1, requested_nodes.unknown_count)
        if args.nodes is None:
            return FilterResult(node_names=[choice.node_name])
        return FilterResult(nodes=args.nodes.with_items([args.nodes.raw[choice.position]]))

    def _assume(self, pod: Pod, profile: Profile, choice: NodeChoice) -> None:
        if self.assumptions is not None:
            assumed_pod = make_assumed_pod(pod, choice.node_name, profile, choice.cycle_state)
            self.assumptions.assume(pod, assumed_pod, choice.node_name)

    def _end_assumption(self, pod: Pod) -> None:
        """End the assumption of *pod*: the scheduler that asks about the pod has no node for it."""
        if self.assumptions is not None:
            self.assumptions.on_request(pod)

    async def _build_filter_result(
        self, args: ExtenderArgs, requested_nodes: RequestedNodes, profile: Profile, reasons: NodeReasons
    ) -> FilterResult:
        """Return the feasible nodes, and the other nodes with their reasons."""
        self.decision_log.add_filter(args.pod, profile.scheduler_name, requested_nodes, reasons)
        feasible: Sequence[int] = ()
        failed_reasons: dict[str, str] = {}
        unresolvable_reasons: dict[str, str] = {}
        all_names = requested_nodes.names
        get_name = all_names.__getitem__
        for reason, positions in reasons.group_positions():
            if reason is FEASIBLE:
                feasible = positions
            else:
                texts_by_name = unresolvable_reasons if reason.unresolvable else failed_reasons
                for start in range(0, len(positions), _NAMES_PER_STEP):
                    part = positions[start : start + _NAMES_PER_STEP]
                    texts_by_name.update(zip(map(get_name, part), repeat(reason.text)))
                    await let_other_tasks_run(len(part))
        self.metrics.observe_nodes("filter", len(all_names), len(feasible), requested_nodes.unknown_count)
        self.metrics.count_rejected_nodes(reasons.rejection_counts)
        if args.nodes is None:
            names = all_names if len(feasible) == len(all_names) else list(map(get_name, feasible))
            return FilterResult(
                node_names=names, failed_nodes=failed_reasons, failed_and_unresolvable_nodes=unresolvable_reasons
            )
        nodes = args.nodes.with_items(list(map(args.nodes.raw.__getitem__, feasible)))
        return FilterResult(
            nodes=nodes, failed_nodes=failed_reasons, failed_and_unresolvable_nodes=unresolvable_reasons
        )

    async def prioritize(self, args: ExtenderArgs) -> HostPriorities:
        """Return the scores of the requested nodes for the pod, best first; see `score_scaling`.

        Scores are normalized over the feasible requested nodes; infeasible and unknown nodes have 0.

        Raises:
            RequestError: the request is invalid (400), scoring failed (500), or the cache is not synced yet (503).
                kube-scheduler then continues without our scores.

        Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36).
        """
        self._ensure_ready()
        self._end_assumption(args.pod)
        with self.cache.read() as snapshot:
            requested_nodes = await self._find_requested_nodes("prioritize", args, snapshot)
            requested_nodes.node_names.use_strings_of(requested_nodes.snapshot)  # the decision log keeps the names
            return await self._prioritize(args, requested_nodes)

    async def _prioritize(self, args: ExtenderArgs, requested_nodes: RequestedNodes) -> HostPriorities:
        pod_info, profile = self._prepare_pod(args.pod)
        runtime = requested_nodes.runtime
        feasible = requested_nodes.make_row_mask()
        pre_filter_run = PreFilterRun()
        ranking = Ranking(_NO_ROWS, _NO_ROWS)
        status = run_pre_enqueue_plugins(pod_info, requested_nodes.snapshot, profile, runtime)
        if status is None:
            diagnosis = find_nodes_that_pass_filters(pod_info, requested_nodes.snapshot, profile, runtime)
            status, pre_filter_run = diagnosis.error, diagnosis.pre_filter_run
            feasible &= diagnosis.feasible
        else:
            feasible[:] = False
            status = None if status.is_rejected else status
        totals = np.full(len(feasible) + 1, -1, dtype=np.int64)  # the last entry is for unknown nodes, whose row is -1
        if status is None and feasible.any():
            ranking = prioritize_nodes(pod_info, requested_nodes.snapshot, profile, runtime, feasible, pre_filter_run)
            status = ranking.error
            totals[ranking.rows] = ranking.totals
        if status is not None:
            self.metrics.count_failed_decision("prioritize")
            self.decision_log.add_failure(args.pod, "prioritize", status.message)
            raise RequestError(500, status.message)
        await let_other_tasks_run(len(requested_nodes.node_names))
        priorities = self._build_priorities(requested_nodes, totals[requested_nodes.rows])
        self.decision_log.add_prioritize(args.pod, profile.scheduler_name, requested_nodes, ranking, priorities)
        return priorities

    async def preempt(self, args: PreemptionArgs) -> PreemptionResult:
        """Return the candidate nodes on which preemption helps the pod, with their victims.

        `preemption.extender_victims` may change the victims. Nodes on which preemption does not help are left out.

        Raises:
            RequestError: the request is invalid (400), the decision failed (500), or the cache is not synced yet (503).
        """
        self._ensure_ready()
        if args.victims is None:
            raise RequestError(400, NO_VICTIMS_MESSAGE)
        self._end_assumption(args.pod)
        pod_info, profile = self._prepare_pod(args.pod)
        victim_uids = {
            name: tuple([pod.uid for pod in victims.pods])
            async for name, victims in iterate_cooperatively(args.victims.items())
        }
        accepted_victims: dict[str, MetaVictims] = {}
        with self.cache.read() as snapshot:
            parts = review_victims(pod_info, snapshot, profile, self.runtime, victim_uids)
            async for part in iterate_cooperatively(parts):
                if part.error is not None:
                    self.metrics.count_failed_decision("preempt")
                    self.decision_log.add_failure(args.pod, "preempt", part.error.message)
                    raise RequestError(500, part.error.message)
                accepted_victims |= build_accepted_victims(part, args.victims)
            await let_other_tasks_run(len(victim_uids))
            unknown_count = sum(snapshot.row(name) is None for name in args.victims)
        self.metrics.observe_nodes("preempt", len(args.victims), len(accepted_victims), unknown_count)
        await let_other_tasks_run(len(victim_uids))
        self.decision_log.add_preempt(args.pod, profile.scheduler_name, args.victims, accepted_victims)
        return PreemptionResult(accepted_victims)

    def _ensure_ready(self) -> None:
        if reason := self.get_not_ready_reason():
            raise RequestError(503, reason)

    def _build_priorities(self, requested_nodes: RequestedNodes, totals: Any) -> HostPriorities:
        """Build the result from *totals* (int64, one per requested node, -1 for a node without a total)."""
        dtype = np.int16 if totals.max(initial=0) <= _INT16_MAX else np.int64  # int16 sorts ten times as fast
        best_first = np.argsort((-totals).astype(dtype), kind="stable")
        scored_count = int(np.count_nonzero(totals >= 0))
        scored_totals = totals[best_first[:scored_count]]
        scores = np.zeros(len(totals), dtype=np.int64)
        if self.score_range is ScoreRange.RAW:
            scores[:scored_count] = scored_totals
        else:
            scores[:scored_count] = scale_totals(scored_totals, 0 if scored_count == len(totals) else 1)
        if self.score_range is ScoreRange.RELATIVE and len(scores):
            scores -= np.bincount(scores).argmax()
            is_listed = scores != 0
            best_first, scores = best_first[is_listed], scores[is_listed]
        self.metrics.observe_nodes("prioritize", len(totals), scored_count, requested_nodes.unknown_count)
        return HostPriorities(requested_nodes.node_names, best_first, scores)

    async def _find_requested_nodes(self, verb: str, args: ExtenderArgs, snapshot: Snapshot) -> RequestedNodes:
        if args.names is not None:
            return find_nodes_by_name(args.names, snapshot, self.runtime)
        if args.nodes is not None:
            if len(snapshot):
                self.metrics.count_whole_nodes_request(verb)
            return await add_requested_nodes(args.pod, args.nodes, snapshot, self.hypothesis_runtime)
        raise RequestError(400, NO_NODES_MESSAGE)

    def _prepare_pod(self, pod: Pod) -> tuple[PodInfo, Profile]:
        prepared_pod = self._pod_preparer.prepare(pod)
        profile = self.profiles.get(prepared_pod.spec.scheduler_name, self.default_profile)
        return self.cache.make_pod_info(prepared_pod), profile


def _filter_nodes(pod: PodInfo, profile: Profile, requested_nodes: RequestedNodes) -> NodeReasons | Status:
    """Return the reason for each requested node, or the status of an error."""
    pre_enqueue_status = run_pre_enqueue_plugins(pod, requested_nodes.snapshot, profile, requested_nodes.runtime)
    if pre_enqueue_status is not None:
        return (
            reasons_from_status(pre_enqueue_status, requested_nodes)
            if pre_enqueue_status.is_rejected
            else pre_enqueue_status
        )
    diagnosis = find_nodes_that_pass_filters(
        pod, requested_nodes.snapshot, profile, requested_nodes.runtime, with_rejections=True
    )
    if diagnosis.error is not None:
        return diagnosis.error
    if diagnosis.pre_filter_run.status is not None:
        return reasons_from_status(diagnosis.pre_filter_run.status, requested_nodes)
    return reasons_from_diagnosis(diagnosis, requested_nodes)


def build_accepted_victims(
    reviewed_victims: ReviewedVictims, offered_victims: Mapping[str, MetaVictims]
) -> dict[str, MetaVictims]:
    """Return the victims by node name in the result of preempt.

    They are *reviewed_victims*, with the *offered_victims* of the request that are not in the cache. Victims are sorted
    by importance, highest first, because kube-scheduler expects the most important one first. Pods that are not in the
    cache come last. PDB violations are counted again. If a victim is not in the cache, the count is at least that of
    the request, because that pod may violate a budget.

    Source: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption (1.36).
    """
    victims: dict[str, MetaVictims] = {}
    for name, candidate in reviewed_victims.candidates.items():
        unknown_uids = reviewed_victims.unknown_uids.get(name, ())
        uids = (*(victim.uid for victim in candidate.victims), *unknown_uids)  # none if none were offered
        num_pdb_violations = (
            max(candidate.num_pdb_violations, offered_victims[name].num_pdb_violations)
            if unknown_uids
            else candidate.num_pdb_violations
        )
        victims[name] = MetaVictims(tuple(map(MetaPod, uids)), num_pdb_violations)
    return victims
