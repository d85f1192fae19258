"""Run a scenario on a cluster: change nodes, let pods leave them, and place all pods without a node."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from extender.analysis.pending_pods import list_pending_pods, nominate_pending_pods, sort_by_queue_order
from extender.analysis.permit_simulation import Attempt
from extender.analysis.pod_placer import PodPlacer
from extender.analysis.simulate import ProgressCallback
from extender.answers.planning import (
    EvictedPodResult,
    MovedPodResult,
    ScenarioOutcome,
    Totals,
    ViolatedBudget,
    WaitingPodResult,
)
from extender.answers.reason_codes import list_reason_codes
from extender.answers.simulation import PlannedPreemption
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.planning.cache_edits import CacheEdits
from extender.planning.cluster_totals import Cost, NodePriceFunction, calculate_cost, calculate_totals
from extender.planning.pod_removals import PodRemovals
from extender.planning.remaining_disruptions import ClusterBudgets, RemainingDisruptions
from extender.planning.scenario import Scenario
from extender.planning.scenario_changes import apply_scenario
from extender.preemption.plan import Candidate, PreemptionPlan

_MAX_PASSES = 1000
"""The maximum number of passes over the waiting pods. Each pass but the first one follows an eviction."""

_RULES_ABOUT_PODS: Final = frozenset(("InterPodAffinity", "PodTopologySpread"))
"""The built-in plugins that may accept a pod because of another pod on a node.

Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, InterPodAffinity.EventsToRegister;
pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, PodTopologySpread.EventsToRegister (1.36).
"""


class WhatIfRunner:
    """Runs scenarios on one cluster. After each scenario the cluster is as before.

    Args:
        cache: the cache with the cluster. Only the runner writes it from now on.
        get_price: the function that returns the price of a node. If it is None, the cost is not calculated.
    """

    def __init__(
        self,
        cache: Cache,
        profiles: Mapping[str, Profile],
        runtime: PluginRuntime,
        get_price: NodePriceFunction | None = None,
    ) -> None:
        self._cache, self._profiles, self._runtime, self._get_price = cache, profiles, runtime, get_price
        for profile in profiles.values():
            nominate_pending_pods(cache, profile, runtime)
        self._pending = list_pending_pods(cache, profiles)
        with cache.read() as snapshot:
            self._budgets = ClusterBudgets(snapshot)
            self._base_cost = calculate_cost(snapshot, get_price) if get_price is not None else None
            self.before = calculate_totals(snapshot, len(self._pending), self._base_cost)

    def run(self, scenario: Scenario, *, seed: int = 0, progress: ProgressCallback | None = None) -> ScenarioOutcome:
        """Run a scenario.

        *seed* is the random seed for the selection among nodes with equal scores.

        Raises:
            ScenarioError: the scenario does not match the cluster.
        """
        steps = self.run_in_steps(scenario, seed=seed)
        while True:
            try:
                done, total = next(steps)
            except StopIteration as end:
                result: ScenarioOutcome = end.value
                return result
            if progress is not None and total:
                progress(done, total)

    def run_in_steps(
        self,
        scenario: Scenario,
        *,
        seed: int = 0,
        observe: Callable[[Snapshot], object] | None = None,
        undo: bool = True,
    ) -> Generator[tuple[int, int], None, ScenarioOutcome]:
        """Run a scenario in steps of one changed node or one pod, and return its outcome.

        Args:
            scenario: the changes.
            seed: the random seed for the selection among nodes with equal scores.
            observe: called with the snapshot after the last step, before the changes are undone.
            undo: whether the cluster is as before when the generator ends. If not, the runner cannot be used again.

        Yields:
            The number of processed pods and the number of all pods; both are 0 while the changes are applied.

        Raises:
            ScenarioError: the scenario does not match the cluster.
        """
        with self._cache.read() as snapshot:
            scenario.check(snapshot)
            nominations = {pod.pod.key: name for name, pods in snapshot.nominated_pods_by_node.items() for pod in pods}
        edits = CacheEdits(self._cache)
        placer = PodPlacer(self._cache, self._profiles, self._runtime, seed)
        removals = PodRemovals(self._cache, edits, RemainingDisruptions(self._budgets))
        run = _ScenarioRun(self._cache, scenario, self._profiles, edits, placer, removals)
        try:
            for _ in run.start(self._pending):
                yield 0, 0
            yield from run.place_all()
            if observe is not None:
                with self._cache.read() as snapshot:
                    observe(snapshot)
            return run.finish(self.before, self._calculate_cost(scenario))
        finally:
            if undo:
                self._undo(run, nominations)

    def _undo(self, run: "_ScenarioRun", nominations: Mapping[str, str]) -> None:
        """Undo the changes of a scenario; *nominations* has the nominated node of each pod before it, by key."""
        run.placer.unassign_placed_pods()
        for pod in run.new_pods:
            self._cache.remove_pod(pod.metadata.uid)
        run.edits.undo()
        for pod in self._pending:
            if run.was_attempted(pod):
                self._cache.add_or_update_pod(pod)
            if pod.key in nominations:
                self._cache.nominate(pod, nominations[pod.key])

    def _calculate_cost(self, scenario: Scenario) -> Cost | None:
        if self._get_price is None:
            return None
        changes_nodes = scenario.remove or scenario.lose or scenario.add or scenario.nodes or scenario.labels
        if not changes_nodes:
            return self._base_cost
        with self._cache.read() as snapshot:
            return calculate_cost(snapshot, self._get_price)


@dataclass(slots=True)
class _ScenarioRun:
    """A scenario in progress."""

    cache: Cache
    scenario: Scenario
    profiles: Mapping[str, Profile]
    edits: CacheEdits
    placer: PodPlacer
    removals: PodRemovals
    new_pods: list[Pod] = field(default_factory=list)
    _recorded_pending_uids: frozenset[str] = frozenset()
    _queue: list[Pod] = field(default_factory=list)
    _waiting: dict[str, Attempt] = field(default_factory=dict)  # by uid
    _moved: dict[str, Attempt] = field(default_factory=dict)  # by uid
    _evicted: list[EvictedPodResult] = field(default_factory=list)
    _placements: int = 0

    def start(self, pending: Sequence[Pod]) -> Iterator[None]:
        """Apply the changes of the scenario in steps, and queue the pods to place."""
        self._recorded_pending_uids = frozenset(pod.uid_or_key for pod in pending)
        created_pods, deleted_uids = yield from apply_scenario(self.scenario, self.cache, self.edits, self.removals)
        self._queue = [pod for pod in pending if pod.uid_or_key not in deleted_uids]
        self._add_to_queue(self.removals.take_replacements())
        self._add_to_queue(created_pods)
        yield from self._evict_drained_pods()

    def _evict_drained_pods(self) -> Iterator[None]:
        """Evict the drained pods that budgets allow to evict now, and queue their replacements."""
        replacements = yield from self.removals.evict_drained_pods()
        self._add_to_queue(replacements)

    def was_attempted(self, pod: Pod) -> bool:
        """Return whether *pod* is placed, or waits after an attempt."""
        return pod.uid_or_key in self._moved or pod.uid_or_key in self._waiting

    def _add_to_queue(self, pods: Sequence[Pod]) -> None:
        self.new_pods += pods
        self._queue += pods

    def place_all(self) -> Iterator[tuple[int, int]]:
        """Place the queued pods, and yield the progress after each.

        Repeat while drained pods can be evicted, or pods are evicted by preemption. Also repeat for waiting pods with
        rules about other pods: a pod that is placed may let them fit, or may change their reasons.
        """
        for _ in range(_MAX_PASSES):
            placements = self._placements
            queue, self._queue = self._sort(self._queue), []
            for number, pod in enumerate(queue, 1):
                self._place(pod)
                yield number, len(queue)
            for _ in self._evict_drained_pods():
                yield 0, 0
            waiting = self._waiting.values()
            if self._queue:
                self._queue = [*(attempt.pod for attempt in waiting), *self._queue]
            elif self._placements > placements:
                self._queue = [attempt.pod for attempt in waiting if _may_fit_after_placement(attempt)]
            if not self._queue:
                break
        for attempt in self.placer.time_out_permits().values():
            del self._moved[attempt.pod.uid_or_key]
            self._waiting[attempt.pod.uid_or_key] = attempt

    def _sort(self, pods: Sequence[Pod]) -> list[Pod]:
        known = [pod for pod in pods if pod.spec.scheduler_name in self.profiles]
        for pod in pods:
            if pod.spec.scheduler_name not in self.profiles:
                reason = f'waits for scheduler "{pod.spec.scheduler_name}", which has no profile'
                self._waiting[pod.uid_or_key] = Attempt(pod, reasons=(reason,), message=reason)
        return sort_by_queue_order(known, self.cache, self.profiles)

    def _place(self, pod: Pod) -> None:
        self._waiting.pop(pod.uid_or_key, None)
        attempt = self.placer.place(pod)
        if not attempt.node and self.scenario.preempt and (candidate := find_preemption(attempt)) is not None:
            self._preempt(pod, candidate)
            nominated = replace(pod, status=replace(pod.status, nominated_node_name=candidate.node_name))
            attempt = self.placer.place(nominated)
        if attempt.node:
            self._moved[pod.uid_or_key] = attempt
            self._placements += 1
            self.removals.count_placed(pod.uid_or_key, self.cache.assigned_pods[pod.uid_or_key].signature)
        else:
            self._waiting[pod.uid_or_key] = attempt

    def _preempt(self, pod: Pod, candidate: Candidate) -> None:
        """Evict the victims of *candidate*, and queue their replacements."""
        for victim in candidate.victims:
            if victim.assumed:
                violated = self.removals.count_new_victim(victim)
                del self._moved[victim.uid]
                self._queue.append(self.placer.unassign(victim.uid))
            else:
                violated = self.removals.evict_victim(victim)
                self._add_to_queue(self.removals.take_replacements())
            self._evicted.append(EvictedPodResult(victim.key, victim.node_name, pod.key, violated))

    def finish(self, before: Totals, cost: Cost | None) -> ScenarioOutcome:
        removals = self.removals
        waiting = [self._make_waiting(uid, attempt) for uid, attempt in self._waiting.items()]
        waiting.sort(key=lambda pod: pod.was_waiting)
        with self.cache.read() as snapshot:
            after = calculate_totals(snapshot, len(waiting), cost)
        return ScenarioOutcome(
            [MovedPodResult(moved.pod.key, removals.get_source(uid), moved.node) for uid, moved in self._moved.items()],
            waiting,
            self._evicted,
            removals.lost,
            removals.blocked,
            [ViolatedBudget(name, pods) for name, pods in removals.violations.items()],
            removals.scaled_down,
            before,
            after,
        )

    def _make_waiting(self, uid: str, attempt: Attempt) -> WaitingPodResult:
        candidate = find_preemption(attempt)
        return WaitingPodResult(
            attempt.pod.key,
            self.removals.get_source(uid),
            list(attempt.reasons),
            list_reason_codes(attempt.reasons),
            attempt.message,
            uid in self._recorded_pending_uids,
            PlannedPreemption(candidate.node_name, [victim.key for victim in candidate.victims]) if candidate else None,
        )


def find_preemption(attempt: Attempt) -> Candidate | None:
    """Return the node and the victims of the preemption that PostFilter plans, or None."""
    plans = attempt.failure.post_filter_plans.values() if attempt.failure is not None else ()
    return next((plan.best_candidate for plan in plans if isinstance(plan, PreemptionPlan)), None)


def _may_fit_after_placement(attempt: Attempt) -> bool:
    """Return whether the pod of a failed attempt has rules about other pods, so that another pod may let it fit."""
    return attempt.failure is not None and bool(attempt.failure.rejectors & _RULES_ABOUT_PODS)
