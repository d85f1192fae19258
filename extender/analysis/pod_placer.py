"""Place pods one after another with the scheduling cycle, for simulations, and undo the placements."""

from collections.abc import Hashable, Mapping, Sequence
from random import Random
from typing import Any

from extender.analysis.alike_pods import AlikePodKeys
from extender.analysis.permit_simulation import Attempt, PermitSimulation, make_late_rejection
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cycle.binding_cycle import make_assumed_pod, run_reserve_plugins
from extender.cycle.decision import Decision, ScheduleFailure, ScheduleResult
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group_cycle import schedule_pod_group
from extender.cycle.pod_group_members import GroupDecision
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.cycle.scheduling_cycle import schedule_pod
from extender.framework.profiles import Profile


class PodPlacer:
    """Places pods on the nodes of a cache. Placed pods are assumed, so that later pods see them.

    Args:
        cache: the cache with the cluster; it is modified.
        seed: the random seed for the selection among nodes with equal scores.
    """

    def __init__(self, cache: Cache, profiles: Mapping[str, Profile], runtime: PluginRuntime, seed: int = 0) -> None:
        self._cache, self._profiles, self._runtime = cache, profiles, runtime
        self._rng = Random(seed)  # noqa: S311  reproducible
        self._node_sampler = NodeSampler()
        self._permit_simulation = PermitSimulation(cache, runtime)
        self._failed_attempts = FailedAttempts(cache, profiles)
        self._placed: list[tuple[Attempt, dict[str, Any]]] = []

    def place(self, pod: Pod) -> Attempt:
        """Try to place *pod*, whose scheduler name has a profile.

        A pod that waits on Permit counts as placed until `time_out_permits`.
        """
        rejection = self.run_pre_enqueue(pod)
        if rejection is not None:
            return rejection
        decision = self._find_node_or_reuse_failure(pod)
        if isinstance(decision, ScheduleFailure):
            return make_failed_attempt(pod, decision)
        return self.assume(pod, decision)

    def _find_node_or_reuse_failure(self, pod: Pod) -> Decision:
        """Return the decision of `find_node`, or the failure of an alike pod if the cluster has not changed since."""
        key = self._failed_attempts.make_key(pod)
        if key is None:
            return self.find_node(pod)
        failure = self._failed_attempts.find(key)
        if failure is not None:
            return failure
        rng_state = self._rng.getstate()
        decision = self.find_node(pod)
        if isinstance(decision, ScheduleFailure) and self._failed_attempts.add(key, decision):
            self._rng.setstate(rng_state)  # reused and fresh failures leave the same random numbers to later pods
        return decision

    def run_pre_enqueue(self, pod: Pod) -> Attempt | None:
        """Return the failed attempt if a PreEnqueue plugin rejects *pod*, or None."""
        profile, pod_info = self._profiles[pod.spec.scheduler_name], self._cache.make_pod_info(pod)
        with self._cache.read() as snapshot:
            rejection = run_pre_enqueue_plugins(pod_info, snapshot, profile, self._runtime)
        if rejection is None:
            return None
        reason = f"not enqueued because of {rejection.plugin}: {rejection.message}"
        return Attempt(pod, reasons=(reason,), message=rejection.message)

    def find_node(self, pod: Pod) -> Decision:
        """Run the scheduling cycle of *pod*. Only pods that wait on Permit may leave their nodes."""
        profile, pod_info = self._profiles[pod.spec.scheduler_name], self._cache.make_pod_info(pod)
        with self._cache.read() as snapshot:
            decision = schedule_pod(pod_info, snapshot, profile, self._runtime, self._rng, self._node_sampler)
        if isinstance(decision, ScheduleFailure):
            self._permit_simulation.send(decision.rejections)
        return decision

    def find_nodes_of_group(self, pods: Sequence[Pod], profile: Profile) -> GroupDecision:
        """Run the cycle of a pod group with the members *pods*, in their order.

        Only pods that wait on Permit may leave their nodes.
        """
        members = [self._cache.make_pod_info(pod) for pod in pods]
        with self._cache.read() as snapshot:
            decision = schedule_pod_group(members, snapshot, profile, self._runtime, self._rng, self._node_sampler)
        self._permit_simulation.send(decision.list_rejections([member.uid for member in members]))
        return decision

    def assume(self, pod: Pod, decision: ScheduleResult) -> Attempt:
        """Assume *pod* on the node of *decision* if the Reserve and Permit plugins allow it."""
        profile, pod_info = self._profiles[pod.spec.scheduler_name], self._cache.make_pod_info(pod)
        node, cycle_state = decision.suggested_host, decision.cycle_state
        # Reserve volumes and devices, so that later pods cannot use them.
        with self._cache.read() as snapshot:
            status = run_reserve_plugins(pod_info, node, snapshot, profile, self._runtime, cycle_state)
        if status is not None:
            self._permit_simulation.unreserve(pod, node, profile, cycle_state)
            return make_late_rejection(pod, status)
        self._cache.assume(make_assumed_pod(pod, node, profile, cycle_state), node)
        rejection = self._permit_simulation.run_permit(pod, node, profile, cycle_state)
        if rejection is not None:
            return rejection
        attempt = Attempt(pod, node)
        self._placed.append((attempt, cycle_state))
        return attempt

    def time_out_permits(self) -> dict[str, Attempt]:
        """Time out the pods that wait on Permit.

        Return the new outcome of each by the pod's key, and of the waiting pods that plugins rejected before.
        """
        attempts_by_key = {attempt.pod.key: attempt for attempt in self._permit_simulation.end_waits()}
        self._placed = [entry for entry in self._placed if entry[0].pod.key not in attempts_by_key]
        return attempts_by_key

    def unassign(self, uid: str) -> Pod:
        """Take the placed pod *uid* off its node and return it. It becomes pending.

        Raises:
            KeyError: no such pod is placed.
        """
        for index, (attempt, cycle_state) in enumerate(self._placed):
            if attempt.pod.uid_or_key == uid:
                del self._placed[index]
                self._unreserve(attempt, cycle_state)
                return attempt.pod
        raise KeyError(uid)

    def unassign_placed_pods(self) -> None:
        """Take all placed pods off their nodes, the last one first. They become pending."""
        while self._placed:
            self._unreserve(*self._placed.pop())

    def _unreserve(self, attempt: Attempt, cycle_state: dict[str, Any]) -> None:
        profile = self._profiles[attempt.pod.spec.scheduler_name]
        self._permit_simulation.unreserve(attempt.pod, attempt.node, profile, cycle_state)


def make_failed_attempt(pod: Pod, failure: ScheduleFailure) -> Attempt:
    """Return the attempt of a pod whose scheduling cycle failed."""
    return Attempt(pod, reasons=_list_reasons(failure), message=failure.message, failure=failure)


def _list_reasons(failure: ScheduleFailure) -> tuple[str, ...]:
    """Return the sorted reasons of a failure, without node counts."""
    diagnosis = failure.diagnosis
    if diagnosis.error is not None or diagnosis.node_count == 0:
        return (failure.message,)
    if diagnosis.pre_filter_run.status is not None and diagnosis.pre_filter_run.status.reasons:
        return (diagnosis.pre_filter_run.status.message,)
    return tuple(sorted(diagnosis.count_reasons())) or (failure.message,)


class FailedAttempts:
    """The failed scheduling cycles since the last write to a cache, by kind of pod.

    A cycle whose PostFilter plugin made a plan is not stored, because the plan may be selected by chance. A cycle that
    rejects waiting pods is not stored either, because other pods may wait the next time.
    """

    def __init__(self, cache: Cache, profiles: Mapping[str, Profile]) -> None:
        self._cache, self._alike_pod_keys = cache, AlikePodKeys(profiles)
        self._failures: dict[Hashable, ScheduleFailure] = {}
        self._write_count = cache.write_count

    def make_key(self, pod: Pod) -> Hashable | None:
        """Return the key under which the failure of *pod* is stored, or None if it must not be stored."""
        return self._alike_pod_keys.make_key(self._cache.make_pod_info(pod))

    def find(self, key: Hashable) -> ScheduleFailure | None:
        """Return the failure under *key*, or None."""
        if self._write_count != self._cache.write_count:
            self._failures.clear()
            self._write_count = self._cache.write_count
        return self._failures.get(key)

    def add(self, key: Hashable, failure: ScheduleFailure) -> bool:
        """Store *failure* under *key* if it does not depend on chance, and return whether it is stored.

        The cache has not changed since `find`.
        """
        if failure.rejections or any(plan is not None for plan in failure.post_filter_plans.values()):
            return False
        self._failures[key] = failure
        return True
