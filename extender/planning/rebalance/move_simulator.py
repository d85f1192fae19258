"""Cordon nodes and evict pods on a cache, and let the scheduling cycle place the pods. Every change can be undone.

Some pods may not be moved; `find_obstacle` gives the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from extender.analysis.pending_pods import list_pending_pods, nominate_pending_pods, sort_by_queue_order
from extender.analysis.permit_simulation import Attempt
from extender.analysis.pod_placer import PodPlacer, make_failed_attempt
from extender.answers.rebalance import PodPlacement
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_info import AssignedPodInfo
from extender.cycle.decision import ScheduleFailure, ScheduleResult
from extender.cycle.diagnosis import Diagnosis, find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.planning.cache_edits import CacheEdits
from extender.planning.departures import Departure, classify_departure, make_replacement, release_claims
from extender.planning.rebalance.plan import Action, Change, Failure, Proof, Step
from extender.planning.remaining_disruptions import ClusterBudgets, RemainingDisruptions
from extender.planning.scenario_changes import cordon_node, uncordon_node

_EVICTION_FORBIDDEN: Final = (
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ("karpenter.sh/do-not-disrupt", "true"),
)
"""The annotations that tell other tools not to evict a pod.

Source: kubernetes/autoscaler, cluster-autoscaler/utils/drain/drain.go, PodSafeToEvictKey;
kubernetes-sigs/karpenter, pkg/apis/v1/labels.go, DoNotDisruptAnnotationKey.
"""


def stays_with_node(pod: AssignedPodInfo) -> bool:
    """Return whether *pod* is a DaemonSet pod, a mirror pod or a pod that is being deleted.

    Such a pod is never evicted, and a node with only such pods is empty.
    """
    return classify_departure(pod.pod) in {Departure.DAEMON_OR_MIRROR, Departure.TERMINATING}


@dataclass(frozen=True, slots=True)
class Move:
    """An eviction that was made.

    Attributes:
        pod: the pod that replaces the evicted pod, on its new node.
        equal_nodes: the nodes with the score of the new node, that node included.
        placed: the waiting pods that found a node.
    """

    pod: AssignedPodInfo
    equal_nodes: tuple[str, ...]
    placed: tuple[PodPlacement, ...]


class MoveSimulator:
    """Makes the changes of plans on one cache. Equal changes of an equal cluster have equal outcomes.

    No pod preempts another one, because a plan names all evictions.

    Args:
        cache: the cluster. Only the simulator writes it from now on.
        seed: the random seed for the selection among nodes with equal scores.
        on_attempt: called before each scheduling cycle and filter run. It may raise, to end a search that takes too
            long; the cache then keeps the changes made so far.

    Attributes:
        cache: the cluster.
        waiting: the pods without a node when the simulator was made, in queue order.
        attempts: the number of scheduling cycles and filter runs so far.
    """

    def __init__(
        self,
        cache: Cache,
        profiles: Mapping[str, Profile],
        runtime: PluginRuntime,
        seed: int = 0,
        on_attempt: Callable[[], None] | None = None,
    ) -> None:
        self.cache, self._runtime, self._seed, self._on_attempt = cache, runtime, seed, on_attempt
        self._profiles = {name: replace(profile, post_filter_plugins=()) for name, profile in profiles.items()}
        for profile in self._profiles.values():
            nominate_pending_pods(cache, profile, runtime)
        with cache.read() as snapshot:
            self._disruptions = RemainingDisruptions(ClusterBudgets(snapshot))
        self._undo_steps: list[Callable[[], None]] = []
        self._replaced_uids: set[str] = set()
        self.attempts = 0
        self.waiting = sort_by_queue_order(list_pending_pods(cache, self._profiles), cache, self._profiles)

    # -- reading

    def find_obstacle(self, pod: AssignedPodInfo) -> str:
        """Return the reason why *pod* may not be evicted now; empty if it may be."""
        match classify_departure(pod.pod):
            case Departure.DAEMON_OR_MIRROR:
                return "belongs to its node"
            case Departure.TERMINATING:
                return "is being deleted"
            case Departure.LOST:
                return "has no controller that creates a new pod"
        for annotation, value in _EVICTION_FORBIDDEN:
            if pod.pod.metadata.annotations.get(annotation) == value:
                return f"has the annotation {annotation}={value}"
        if not self.has_profile(pod):
            return f'waits for scheduler "{pod.pod.spec.scheduler_name}", which has no profile'
        budgets = self._disruptions.find_blocking_budgets(pod)
        return f"budget {', '.join(budgets)} does not allow it" if budgets else ""

    def has_profile(self, pod: AssignedPodInfo) -> bool:
        """Return whether *pod* is of a scheduler with a profile."""
        return pod.pod.spec.scheduler_name in self._profiles

    def list_movable_pods(self, node: str) -> list[AssignedPodInfo]:
        """Return the pods on *node* that may be evicted now, those with the largest requests first."""
        pods = [pod for pod in self.cache.pods_on(node).values() if not self.find_obstacle(pod)]
        return sorted(pods, key=get_size_key)

    def is_cordoned(self, node: str) -> bool:
        """Return whether *node* is cordoned."""
        cached_node = self.cache.get_node(node)
        return cached_node is not None and cached_node.spec.unschedulable

    def fits(self, pod: Pod, node: str) -> bool:
        """Return whether *node* passes the filters for the pending *pod*."""
        return self.check_node(pod, node).has_feasible_node

    def check_node(self, pod: Pod, node: str) -> Diagnosis:
        """Run the filters of the pending *pod* on one node."""
        return self._run_filters(pod, frozenset((node,)))

    def check_all_nodes(self, pod: Pod) -> Diagnosis:
        """Run the filters of the pending *pod* on all nodes."""
        return self._run_filters(pod, None)

    def explain_failure(self, pod: Pod) -> str:
        """Return kube-scheduler's message about the pending *pod*, which fits nowhere or is not enqueued."""
        placer = PodPlacer(self.cache, self._profiles, self._runtime, self._seed)
        rejection = placer.run_pre_enqueue(pod)
        return rejection.message if rejection is not None else self.check_all_nodes(pod).format_message()

    def _begin_attempt(self) -> None:
        self.attempts += 1
        if self._on_attempt is not None:
            self._on_attempt()

    def _run_filters(self, pod: Pod, nodes: frozenset[str] | None) -> Diagnosis:
        self._begin_attempt()
        profile, pod_info = self._profiles[pod.spec.scheduler_name], self.cache.make_pod_info(pod)
        with self.cache.read() as snapshot:
            return find_nodes_that_pass_filters(
                pod_info, snapshot, profile, self._runtime, only_nodes=nodes, with_rejections=True
            )

    # -- changing

    def mark(self) -> int:
        """Return the current position, for `undo_to`."""
        return len(self._undo_steps)

    def undo_to(self, mark: int) -> None:
        """Undo all changes since `mark` returned *mark*."""
        while len(self._undo_steps) > mark:
            self._undo_steps.pop()()

    def cordon(self, node: str) -> None:
        """Cordon a node."""
        cordon_node(self._start_edits(), node)

    def uncordon(self, node: str) -> None:
        """End the cordon of a node."""
        uncordon_node(self._start_edits(), node)

    def _start_edits(self) -> CacheEdits:
        """Return the writer of one change, which `undo_to` undoes."""
        edits = CacheEdits(self.cache)
        self._undo_steps.append(edits.undo)
        return edits

    def take_away(self, pod: AssignedPodInfo) -> Pod:
        """Remove *pod* from its node, count it against no budget, and return the pod that would replace it."""
        replacement, edits = make_replacement(pod.pod), self._start_edits()
        edits.remove_pod(pod)
        uid = pod.pod.uid_or_key
        self._replaced_uids.add(uid)
        self._undo_steps.append(lambda: self._replaced_uids.discard(uid))
        release_claims(pod.pod, replacement.metadata.uid, self.cache, edits)
        return replacement

    def evict(self, pod: AssignedPodInfo, *, settles: bool = False) -> Move | str:
        """Evict *pod*, and let the scheduling cycle place the pod that replaces it.

        If *settles* is set, all waiting pods are tried too, in queue order.

        Returns:
            The move, or the reason why it is not possible. In the second case nothing changes.
        """
        obstacle = self.find_obstacle(pod)
        if obstacle:
            return obstacle
        mark = self.mark()
        remaining = self._disruptions.save()
        self._undo_steps.append(lambda: self._disruptions.restore(remaining))
        self._disruptions.count_disruption(pod)
        replacement = self.take_away(pod)
        waiting = self._list_waiting() if settles else []
        equal_nodes, placed, attempt = self._place_all(
            sort_by_queue_order([*waiting, replacement], self.cache, self._profiles), replacement
        )
        if attempt is None or not attempt.node:
            self.undo_to(mark)
            reasons = ", ".join(attempt.reasons) if attempt is not None else "waits for the pods of its group"
            return f"finds no other node: {reasons}"
        new_pod = self.cache.assigned_pods[replacement.metadata.uid]
        self._disruptions.count_replacement(new_pod.signature)
        return Move(new_pod, equal_nodes, tuple(entry for entry in placed if entry.pod != pod.key))

    def settle(self) -> list[PodPlacement]:
        """Try all waiting pods in queue order; return those that are placed."""
        return self._place_all(self._list_waiting())[1]

    def is_placed(self, pod: Pod) -> bool:
        """Return whether *pod* has a node."""
        return pod.uid_or_key in self.cache.assigned_pods

    def prove(self, changes: Sequence[Change]) -> Proof:
        """Make *changes* one after another, trying all waiting pods after each. The changes are not undone."""
        steps: list[Step] = []
        for change in changes:
            step = self._make_change(change)
            if isinstance(step, str):
                return Proof(tuple(steps), Failure(change, step))
            steps.append(step)
        return Proof(tuple(steps))

    def _make_change(self, change: Change) -> Step | str:
        if change.action is Action.EVICT:
            pod = self.find_assigned_pod(change.name)
            if pod is None:
                return "is on no node"
            move = self.evict(pod, settles=True)
            if isinstance(move, str):
                return move
            return Step(change, pod.node_name, move.pod.node_name, move.equal_nodes, move.placed)
        if self.cache.row(change.name) is None:
            return "there is no such node"
        if change.action is Action.CORDON:
            self.cordon(change.name)
            return Step(change)
        self.uncordon(change.name)
        return Step(change, placed=tuple(self.settle()))

    def find_assigned_pod(self, key: str) -> AssignedPodInfo | None:
        """Return the pod `namespace/name` on its node, or None."""
        return next((pod for pod in self.cache.assigned_pods.values() if pod.key == key), None)

    def _list_waiting(self) -> list[Pod]:
        """Return the waiting pods without a node. A pod that was placed and evicted since does not wait any more."""
        return [pod for pod in self.waiting if not self.is_placed(pod) and pod.uid_or_key not in self._replaced_uids]

    def _place_all(
        self, pods: Sequence[Pod], watched_pod: Pod | None = None
    ) -> tuple[tuple[str, ...], list[PodPlacement], Attempt | None]:
        """Place *pods* in their order. Of equal pods, none is tried after one was not placed.

        Returns:
            The nodes with the best score for *watched_pod*, the placed pods, and the attempt of *watched_pod*.
        """
        placer = PodPlacer(self.cache, self._profiles, self._runtime, self._seed)
        placed: dict[str, PodPlacement] = {}
        equal_nodes: tuple[str, ...] = ()
        watched_attempt: Attempt | None = None
        failed_signatures: set[object] = set()
        for pod in pods:
            signature = self.cache.make_pod_info(pod).signature
            if signature in failed_signatures and pod is not watched_pod:
                continue
            attempt, nodes = self._place(pod, placer)
            if pod is watched_pod:
                equal_nodes, watched_attempt = nodes, attempt
            if attempt.node:
                placed[pod.key] = PodPlacement(pod.key, attempt.node)
            else:
                failed_signatures.add(signature)
        for key, attempt in placer.time_out_permits().items():
            placed.pop(key, None)
            if watched_pod is not None and key == watched_pod.key:
                watched_attempt = attempt
        return equal_nodes, list(placed.values()), watched_attempt

    def _place(self, pod: Pod, placer: PodPlacer) -> tuple[Attempt, tuple[str, ...]]:
        """Place *pod*; return the attempt and the nodes with the best score."""
        self._begin_attempt()
        rejected = placer.run_pre_enqueue(pod)
        if rejected is not None:
            return rejected, ()
        decision = placer.find_node(pod)
        if isinstance(decision, ScheduleFailure):
            return make_failed_attempt(pod, decision), ()
        nodes = self._list_best_nodes(decision)
        uid = pod.uid_or_key
        nominated_node = self.cache.find_nominated_node(uid)
        is_new = uid not in self.cache.pending_pods
        attempt = placer.assume(pod, decision)
        self._undo_steps.append(lambda: self._undo_placement(placer, pod, nominated_node, is_new=is_new))
        return attempt, nodes

    def _undo_placement(self, placer: PodPlacer, pod: Pod, nominated_node: str, *, is_new: bool) -> None:
        uid = pod.uid_or_key
        if uid in self.cache.assigned_pods:
            placer.unassign(uid)
        # A pod that was evicted after its placement is no longer assumed, so it is still on its node.
        if is_new or uid in self.cache.assigned_pods:
            self.cache.remove_pod(uid)
        if not is_new:
            self.cache.add_or_update_pod(pod)
            if nominated_node:
                self.cache.nominate(pod, nominated_node)

    def _list_best_nodes(self, decision: ScheduleResult) -> tuple[str, ...]:
        if decision.ranking is None:
            return (decision.suggested_host,)
        names = self.cache.names
        return tuple(names[row] for row in decision.ranking.find_best_rows().tolist())


def get_size_key(pod: AssignedPodInfo) -> tuple[int, int]:
    """Return a key that sorts pods by their requests of CPU and memory, the largest first."""
    milli_cpu, memory = pod.signature.assigned_nonzero_requests
    return (-milli_cpu, -memory)
