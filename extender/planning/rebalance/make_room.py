"""Find the fewest evictions that let waiting pods run.

For each waiting pod, the number of moves grows from one. Small numbers of moves are searched completely if that is
cheap. Otherwise each node is searched for the smallest sets of its pods without which the waiting pod fits. The node is
cordoned while these pods are evicted. If one of them finds no node, room is made for it in the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from extender.answers.rebalance import PodPlacement
from extender.api.kinds.pod import Pod
from extender.planning.rebalance.complete_search import find_complete, is_complete_search_cheap
from extender.planning.rebalance.directed_search import DirectedSearch
from extender.planning.rebalance.move_simulator import MoveSimulator
from extender.planning.rebalance.plan import Change, Proof, SearchLimits, SearchProgress, Step

_MAX_CANDIDATES: Final = 20
"""The maximum number of tried plans with equally many moves. A plan fails if other waiting pods take its room."""


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """The plan that lets pods run.

    Attributes:
        pods: `namespace/name` of the pods.
        unplaced: the pods for which no plan was found, with kube-scheduler's message; the other pods have a plan.
        is_complete: whether the search ended before its limit of attempts.
        placed_before: the waiting pods that find a node without any step.
    """

    pods: tuple[str, ...]
    proof: Proof
    unplaced: tuple[tuple[str, str], ...] = ()
    is_complete: bool = True
    placed_before: tuple[PodPlacement, ...] = ()


def make_room(
    simulator: MoveSimulator,
    pods: Sequence[Pod],
    limits: SearchLimits | None = None,
    progress: SearchProgress | None = None,
) -> RoomPlan:
    """Return the plan with the fewest moves that lets *pods* run. Its changes stay made on the cache.

    Args:
        simulator: the cluster.
        pods: waiting pods of schedulers with a profile.
        limits: the limits of the search; None: the default limits.
        progress: the callback after each node of a search.
    """
    limits = limits or SearchLimits()
    uids = {pod.uid_or_key for pod in pods}
    targets = [pod for pod in simulator.waiting if pod.uid_or_key in uids]
    placed_before = tuple(simulator.settle())
    steps: list[Step] = []
    unplaced: list[tuple[str, str]] = []
    is_complete = True
    attempt_limit = simulator.attempts + limits.max_attempts
    for target in targets:
        if simulator.is_placed(target):
            continue
        search = _Search(simulator, target, attempt_limit, progress)
        proof = search.find(limits.max_moves - Proof(tuple(steps)).moves)
        if proof is None:
            unplaced.append((target.key, simulator.explain_failure(target)))
            is_complete = is_complete and simulator.attempts < attempt_limit
        else:
            steps += proof.steps
    # A later step may place a pod for which no plan was found.
    placed = {pod.key for pod in targets if simulator.is_placed(pod)}
    waiting = tuple(entry for entry in unplaced if entry[0] not in placed)
    return RoomPlan(tuple(pod.key for pod in targets), Proof(tuple(steps)), waiting, is_complete, placed_before)


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for one waiting pod.

    Attributes:
        attempt_limit: the value of `simulator.attempts` at which the search stops.
        progress: the callback after each node of a search.
    """

    simulator: MoveSimulator
    target: Pod
    attempt_limit: int
    progress: SearchProgress | None

    def find(self, max_moves: int) -> Proof | None:
        """Return the steps of the plan with the fewest moves, and make its changes; None if no plan is found."""
        directed = DirectedSearch(self.simulator, self.target, self.attempt_limit, self.progress)
        for moves in range(1, max_moves + 1):
            is_complete = is_complete_search_cheap(self.simulator, moves)
            for count in (1, _MAX_CANDIDATES):
                found = (
                    find_complete(self.simulator, self.target, moves, self.attempt_limit)
                    if is_complete
                    else directed.find(moves)
                )
                candidates = self._take(found, count)
                for changes in candidates[count > 1 :]:
                    proof = self._prove(changes)
                    if proof is not None:
                        return proof
                if len(candidates) < count:
                    break
            if self.simulator.attempts >= self.attempt_limit or (not is_complete and not directed.may_find_more(moves)):
                break
        return None

    def _take(self, found: Iterator[list[Change]], count: int) -> list[list[Change]]:
        """Return the first *count* of the plans that a search finds, and undo its changes."""
        mark = self.simulator.mark()
        candidates = list(islice(found, count))
        self.simulator.undo_to(mark)
        return candidates

    def _prove(self, changes: Sequence[Change]) -> Proof | None:
        """Make *changes*, and try all waiting pods after each one; undo them if the waiting pod gets no node."""
        mark = self.simulator.mark()
        proof = self.simulator.prove(changes)
        if proof.failure is None and self.simulator.is_placed(self.target):
            return proof
        self.simulator.undo_to(mark)
        return None
