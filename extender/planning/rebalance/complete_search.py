"""Search all sequences of a given number of moves, for clusters in which this is cheap."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from extender.api.kinds.pod import Pod
from extender.planning.rebalance.move_simulator import Move, MoveSimulator
from extender.planning.rebalance.plan import Action, Change

_MAX_SEQUENCES: Final = 2_000
_MAX_NODES: Final = 100


def is_complete_search_cheap(simulator: MoveSimulator, moves: int) -> bool:
    """Return whether there are few sequences of *moves* moves."""
    names = simulator.cache.names
    if len(names) > _MAX_NODES:
        return False
    movable_count = sum(len(simulator.list_movable_pods(name)) for name in names)
    sequences: int = (len(names) + 1) * movable_count**moves
    return sequences <= _MAX_SEQUENCES


def find_complete(simulator: MoveSimulator, target: Pod, moves: int, attempt_limit: int) -> Iterator[list[Change]]:
    """Yield the changes of each sequence of *moves* moves after which *target* fits. They stay made at each yield.

    The node of an evicted pod is cordoned during its move. A sequence leaves one node cordoned for *target*, or none.
    The search ends when the simulator has made *attempt_limit* attempts.
    """
    search = _CompleteSearch(simulator, target, attempt_limit)
    yield from search.extend(moves)
    for node in simulator.cache.names:
        if simulator.is_cordoned(node):
            continue
        mark = simulator.mark()
        simulator.cordon(node)
        yield from _CompleteSearch(simulator, target, attempt_limit, node, [Change(Action.CORDON, node)]).extend(moves)
        simulator.undo_to(mark)


@dataclass(slots=True)
class _CompleteSearch:
    """A search in progress; *goal* is the node that is cordoned for the target, or empty."""

    simulator: MoveSimulator
    target: Pod
    attempt_limit: int
    goal: str = ""
    changes: list[Change] = field(default_factory=list)

    def extend(self, moves: int) -> Iterator[list[Change]]:
        """Yield the sequences with *moves* more moves."""
        if not moves:
            yield from self._check()
            return
        simulator = self.simulator
        for name in simulator.cache.names:
            for pod in simulator.list_movable_pods(name):
                if simulator.attempts >= self.attempt_limit:
                    return
                start, mark = len(self.changes), simulator.mark()
                stays_cordoned = name == self.goal or simulator.is_cordoned(name)
                if not stays_cordoned:
                    simulator.cordon(name)
                    self.changes.append(Change(Action.CORDON, name))
                if isinstance(simulator.evict(simulator.cache.assigned_pods[pod.uid]), Move):
                    self.changes.append(Change(Action.EVICT, pod.key))
                    if not stays_cordoned:
                        simulator.uncordon(name)
                        self.changes.append(Change(Action.UNCORDON, name))
                    yield from self.extend(moves - 1)
                simulator.undo_to(mark)
                del self.changes[start:]

    def _check(self) -> Iterator[list[Change]]:
        simulator = self.simulator
        if not self.goal:
            if simulator.check_all_nodes(self.target).has_feasible_node:
                yield list(self.changes)
            return
        mark = simulator.mark()
        simulator.uncordon(self.goal)
        if simulator.fits(self.target, self.goal):
            yield [*self.changes, Change(Action.UNCORDON, self.goal)]
        simulator.undo_to(mark)
