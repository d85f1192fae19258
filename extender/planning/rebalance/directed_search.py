"""Search for moves that free a node for a waiting pod, and for moves that free nodes for the pods that leave it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice, permutations
from typing import Final

from extender.api.kinds.pod import Pod
from extender.cache.pod_info import AssignedPodInfo
from extender.planning.rebalance.move_simulator import Move, MoveSimulator
from extender.planning.rebalance.plan import Action, Change, SearchProgress

_MAX_PODS_OF_NODE: Final = 14
"""The number of pods of a node, those with the largest requests, that are combined."""

_MAX_SETS_OF_NODE: Final = 400
_SMALL_SET: Final = 3
_MAX_LARGE_SETS: Final = 40
"""The number of sets of a node that are tried if they have more than three pods."""

_MAX_ORDERS: Final = 6
_MAX_DEPTH: Final = 2
"""The number of levels of the search: a pod that moves may need another pod to move first, which is the next level."""

_MAX_OTHER_NODES: Final = 60
"""The number of nodes that are tried for a pod that makes room."""


@dataclass(slots=True)
class _Goal:
    """A node on which a pod fits once all pods that may be evicted have left.

    Attributes:
        uids: the uids of the pods that may be evicted, those with the largest requests first.
        size: the number of the first of these pods without which the pod fits. Few smaller sets can exist.
        sets: the smallest sets of these pods without which the pod fits, by their size.
    """

    node: str
    uids: tuple[str, ...]
    size: int
    sets: dict[int, list[tuple[str, ...]]] = field(default_factory=dict)

    def has_subset_of(self, uids: Sequence[str]) -> bool:
        """Return whether a smaller set is a part of *uids*."""
        return any(set(known) <= set(uids) for sets in self.sets.values() for known in sets)


class DirectedSearch:
    """Finds plans for one waiting pod.

    Args:
        simulator: the cluster. Its changes stay made whenever a plan is yielded.
        attempt_limit: the number of attempts of the simulator at which the search ends.
    """

    def __init__(
        self, simulator: MoveSimulator, target: Pod, attempt_limit: int, progress: SearchProgress | None
    ) -> None:
        self._simulator, self._target, self._attempt_limit, self._progress = simulator, target, attempt_limit, progress

    @cached_property
    def _goals(self) -> list[_Goal]:
        return sorted(self._list_goals(self._target, frozenset()), key=lambda goal: goal.size)

    def may_find_more(self, moves: int) -> bool:
        """Return whether more than *moves* moves may free a node."""
        return any(moves < len(goal.uids) + _MAX_DEPTH for goal in self._goals)

    def find(self, moves: int) -> Iterator[list[Change]]:
        """Yield the changes of each plan with at most *moves* moves that the search finds."""
        for number, goal in enumerate(self._goals, 1):
            if self._is_exhausted():
                return
            sizes = range(max(1, goal.size - 1), moves + 1)
            for uids in [uids for size in sizes for uids in self._find_sets(goal, self._target, size)]:
                yield from self._try_set(goal.node, uids, moves - len(uids))
            if self._progress is not None:
                self._progress(number, len(self._goals))

    def _is_exhausted(self) -> bool:
        return self._simulator.attempts >= self._attempt_limit

    def _list_goals(self, pod: Pod, excluded_nodes: frozenset[str]) -> Iterator[_Goal]:
        """Yield the nodes that pods may free for the pending *pod*."""
        simulator = self._simulator
        may_help = simulator.check_all_nodes(pod).find_nodes_where_preemption_may_help()
        names = list(simulator.cache.names)
        for row in may_help.nonzero()[0].tolist():
            if names[row] in excluded_nodes or self._is_exhausted():
                continue
            pods = simulator.list_movable_pods(names[row])
            size = self._count_first(pod, names[row], pods)
            if size:
                considered = pods[: max(size, _MAX_PODS_OF_NODE)]
                yield _Goal(names[row], tuple(movable_pod.uid for movable_pod in considered), size)

    def _count_first(self, pod: Pod, node: str, pods: Sequence[AssignedPodInfo]) -> int:
        """Return how many of the first of *pods* must leave *node* until *pod* fits; 0 if it does not fit at all."""
        simulator = self._simulator
        mark = simulator.mark()
        for number, movable_pod in enumerate(pods, 1):
            simulator.take_away(movable_pod)
            if simulator.fits(pod, node):
                simulator.undo_to(mark)
                return number
        simulator.undo_to(mark)
        return 0

    def _find_sets(self, goal: _Goal, pod: Pod, size: int) -> list[tuple[str, ...]]:
        """Return the sets of *size* pods of the goal without which *pod* fits, but not without a part of the set."""
        if size not in goal.sets:
            found = []
            maximum = _MAX_SETS_OF_NODE if size <= _SMALL_SET else _MAX_LARGE_SETS
            for uids in islice(combinations(goal.uids, size), maximum):
                if self._is_exhausted():
                    break
                if not goal.has_subset_of(uids) and self._fits_without(pod, goal.node, uids):
                    found.append(uids)
            goal.sets[size] = found
        return goal.sets[size]

    def _fits_without(self, pod: Pod, node: str, uids: Sequence[str]) -> bool:
        simulator = self._simulator
        mark = simulator.mark()
        for uid in uids:
            simulator.take_away(simulator.cache.assigned_pods[uid])
        fits = simulator.fits(pod, node)
        simulator.undo_to(mark)
        return fits

    def _try_set(self, node: str, uids: Sequence[str], spare_moves: int) -> Iterator[list[Change]]:
        """Yield the plans that evict *uids* from *node*, with at most *spare_moves* moves of other pods."""
        simulator = self._simulator
        for order in islice(permutations(uids), _MAX_ORDERS):
            mark = simulator.mark()
            simulator.cordon(node)
            for changes, _ in self._evict_all(order, spare_moves, frozenset((node,))):
                inner_mark = simulator.mark()
                simulator.uncordon(node)
                if simulator.fits(self._target, node):
                    yield [Change(Action.CORDON, node), *changes, Change(Action.UNCORDON, node)]
                simulator.undo_to(inner_mark)
            simulator.undo_to(mark)

    def _evict_all(
        self, uids: Sequence[str], spare_moves: int, cordoned_nodes: frozenset[str]
    ) -> Iterator[tuple[list[Change], int]]:
        """Yield the changes that evict *uids* in this order, and the number of spare moves that are left."""
        if not uids:
            yield [], spare_moves
            return
        if self._is_exhausted():
            return
        simulator = self._simulator
        pod = simulator.cache.assigned_pods[uids[0]]
        eviction, mark = Change(Action.EVICT, pod.key), simulator.mark()
        if isinstance(simulator.evict(pod), Move):
            for changes, left in self._evict_all(uids[1:], spare_moves, cordoned_nodes):
                yield [eviction, *changes], left
        elif spare_moves and len(cordoned_nodes) <= _MAX_DEPTH:
            for room, spare in self._make_room(uids[0], spare_moves, cordoned_nodes):
                inner_mark = simulator.mark()
                if isinstance(simulator.evict(simulator.cache.assigned_pods[uids[0]]), Move):
                    for changes, left in self._evict_all(uids[1:], spare, cordoned_nodes):
                        yield [*room, eviction, *changes], left
                simulator.undo_to(inner_mark)
        simulator.undo_to(mark)

    def _make_room(
        self, uid: str, spare_moves: int, cordoned_nodes: frozenset[str]
    ) -> Iterator[tuple[list[Change], int]]:
        """Yield the changes that free a node for the pod *uid*, which is about to be evicted."""
        simulator = self._simulator
        mark = simulator.mark()
        pod = simulator.take_away(simulator.cache.assigned_pods[uid])
        goals = list(islice(self._list_goals(pod, cordoned_nodes), _MAX_OTHER_NODES))
        choices = [
            (goal.node, uids)
            for size in range(1, spare_moves + 1)
            for goal in goals
            if goal.size - 1 <= size
            for uids in self._find_sets(goal, pod, size)
        ]
        simulator.undo_to(mark)
        for node, uids in choices:
            if simulator.is_cordoned(node) or any(other not in simulator.cache.assigned_pods for other in uids):
                continue
            simulator.cordon(node)
            for changes, left in self._evict_all(uids, spare_moves - len(uids), cordoned_nodes | {node}):
                inner_mark = simulator.mark()
                simulator.uncordon(node)
                yield [Change(Action.CORDON, node), *changes, Change(Action.UNCORDON, node)], left
                simulator.undo_to(inner_mark)
            simulator.undo_to(mark)
