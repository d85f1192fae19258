"""Find the nodes whose pods fit on the other nodes, so that the nodes can be removed; the most expensive ones first.

All nodes to empty are cordoned before the first eviction, so that no pod moves to a node that is emptied later.

Source: kubernetes-sigs/karpenter, pkg/controllers/disruption, asks the same question.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from extender.answers.rebalance import EmptiedNode, PodPlacement, RetainedNode
from extender.cache.pod_info import AssignedPodInfo
from extender.planning.cluster_totals import NodePriceFunction
from extender.planning.rebalance.move_simulator import Move, MoveSimulator, get_size_key, stays_with_node
from extender.planning.rebalance.plan import Action, Change, Proof, SearchLimits, SearchProgress


@dataclass(frozen=True, slots=True)
class EmptyPlan:
    """The nodes that can be emptied together, and the steps.

    Attributes:
        emptied: the nodes that can be emptied, in the order in which their pods leave.
        retained: the nodes that cannot be emptied.
        is_complete: whether the search ended before its limit of attempts.
        placed_before: the waiting pods that find a node without any step.
    """

    emptied: tuple[EmptiedNode, ...]
    retained: tuple[RetainedNode, ...]
    proof: Proof
    is_complete: bool = True
    placed_before: tuple[PodPlacement, ...] = ()


def empty_nodes(
    simulator: MoveSimulator,
    names: Sequence[str] | None = None,
    get_price: NodePriceFunction | None = None,
    limits: SearchLimits | None = None,
    progress: SearchProgress | None = None,
) -> EmptyPlan:
    """Return the nodes that can be emptied, and the steps. The steps' changes stay made on the cache.

    Args:
        simulator: the cluster.
        names: the nodes to consider; None: all nodes.
        get_price: the price of a node. Nodes with the highest price are emptied first, then those with the fewest pods.
        limits: the limits; None: the default limits.
        progress: the callback after each node.
    """
    return _EmptySearch(simulator, get_price, limits or SearchLimits(), progress).run(names)


class _EmptySearch:
    def __init__(
        self,
        simulator: MoveSimulator,
        get_price: NodePriceFunction | None,
        limits: SearchLimits,
        progress: SearchProgress | None,
    ) -> None:
        self._simulator, self._limits, self._progress = simulator, limits, progress
        self._end = simulator.attempts + limits.max_attempts
        nodes = simulator.cache.nodes
        self._prices = {node.metadata.name: get_price(node) if get_price is not None else None for node in nodes}

    def run(self, names: Sequence[str] | None) -> EmptyPlan:
        simulator = self._simulator
        candidates = sorted(self._prices if names is None else names, key=self._make_sort_key)
        placed_before = tuple(simulator.settle())
        start = simulator.mark()
        evictions: dict[str, list[str]] = {}
        retained: dict[str, RetainedNode] = {}
        for number, name in enumerate(candidates, 1):
            pods = self._empty(name, evictions)
            if isinstance(pods, RetainedNode):
                retained[name] = pods
            else:
                evictions[name] = pods
            if self._progress is not None:
                self._progress(number, len(candidates))
        is_complete = simulator.attempts < self._end
        proof = self._prove(start, evictions, retained)
        moves = Counter(step.source for step in proof.steps)
        emptied = tuple(EmptiedNode(name, moves[name], self._prices[name]) for name in evictions)
        retained_nodes = tuple(retained[name] for name in candidates if name in retained)
        return EmptyPlan(emptied, retained_nodes, proof, is_complete, placed_before)

    def _make_sort_key(self, name: str) -> tuple[float, int, str]:
        return (-(self._prices[name] or 0.0), len(self._list_leaving_pods(name)), name)

    def _list_leaving_pods(self, name: str) -> list[AssignedPodInfo]:
        pods = self._simulator.cache.pods_on(name).values()
        leaving_pods = (pod for pod in pods if not stays_with_node(pod))
        return sorted(leaving_pods, key=lambda pod: (get_size_key(pod), pod.key))

    def _empty(self, name: str, evictions: dict[str, list[str]]) -> list[str] | RetainedNode:
        """Cordon a node and evict its pods; return their keys in the order of the evictions. Undo it if it fails."""
        simulator = self._simulator
        pods = self._list_leaving_pods(name)
        for pod in pods:
            obstacle = simulator.find_obstacle(pod)
            if obstacle:
                return RetainedNode(name, pod.key, obstacle, self._prices[name])
        if sum(map(len, evictions.values())) + len(pods) > self._limits.max_moves:
            reason = f"more than {self._limits.max_moves} moves in all; see --max-moves"
            return RetainedNode(name, None, reason, self._prices[name])
        mark = simulator.mark()
        if not simulator.is_cordoned(name):
            simulator.cordon(name)
        for pod in pods:
            move: Move | str = "the search reached its limit; see --max-attempts"
            if simulator.attempts < self._end:
                move = simulator.evict(pod)
            if isinstance(move, str):
                simulator.undo_to(mark)
                return RetainedNode(name, pod.key, move, self._prices[name])
        return [pod.key for pod in pods]

    def _prove(self, start: int, evictions: dict[str, list[str]], retained: dict[str, RetainedNode]) -> Proof:
        """Prove the steps. A node of which a pod cannot leave, because other pods come first, is taken off *evictions*.

        With all nodes cordoned at first, each pod moves once. If that fails, the nodes are emptied one after another.
        """
        simulator = self._simulator
        simulator.undo_to(start)
        together = self._list_changes(evictions, one_by_one=False)
        proof = simulator.prove(together)
        if proof.failure is None:
            return proof
        while True:
            simulator.undo_to(start)
            proof = simulator.prove(self._list_changes(evictions, one_by_one=True))
            if proof.failure is None:
                return proof
            node = [name for name, pods in evictions.items() if proof.failure.change.name in pods][-1]
            retained[node] = RetainedNode(node, proof.failure.change.name, proof.failure.reason, self._prices[node])
            del evictions[node]

    def _list_changes(self, evictions: dict[str, list[str]], *, one_by_one: bool) -> list[Change]:
        """Return the changes. Nodes that are cordoned in the cluster are not cordoned again.

        One after another, a node may receive pods before it is emptied; they are evicted with its other pods.
        """
        open_nodes = [name for name in evictions if not self._simulator.is_cordoned(name)]
        changes = [] if one_by_one else [Change(Action.CORDON, name) for name in open_nodes]
        evicted: set[str] = set()
        for name, pods in evictions.items():
            if one_by_one and name in open_nodes:
                changes.append(Change(Action.CORDON, name))
            for pod in pods:
                if one_by_one or pod not in evicted:
                    changes.append(Change(Action.EVICT, pod))
                    evicted.add(pod)
        return changes
