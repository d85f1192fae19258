"""Near misses: the rejected nodes that are closest to being feasible, and the changes that would make them feasible."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from extender.analysis.explanation.suggestions import INSUFFICIENT_PREFIX, explain_reason, get_resource_id_and_request
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.explain_pod import NodeFilterStatus, PodExplanation

_MAX_EXAMINED_NODES: Final = 40


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A rejected node that is close to being feasible.

    Attributes:
        node: the name of the node.
        lines: one line for each reason of its rejection, with details.
        has_equal_nodes: whether other rejected nodes have the same lines.
    """

    node: str
    lines: tuple[str, ...]
    has_equal_nodes: bool = False

    def format_lines(self, indent: str) -> Iterator[str]:
        """Yield the lines of the node: its name with the first reason, then the other reasons, indented further."""
        yield f"{indent}{self.node}{' and others' if self.has_equal_nodes else ''}: {self.lines[0]}"
        yield from (f"{indent}  {line}" for line in self.lines[1:])


def find_near_misses(explanation: PodExplanation, snapshot: Snapshot, count: int) -> list[NearMiss]:
    """Return at most *count* near misses, the nearest first. Nodes with equal lines are one near miss.

    The distance of a node from being feasible is the sum over the reasons of its rejection. An insufficient resource
    adds the missing fraction of the request. Every other reason adds 1.
    """
    calculator = _DistanceCalculator(explanation.pod, snapshot)
    nodes_by_distance = [
        (calculator.calculate_distance(name, node_status), name)
        for name, node_status in explanation.nodes.items()
        if node_status.rejections
    ]
    near_misses_by_lines: dict[tuple[str, ...], NearMiss] = {}
    for _, name in sorted(nodes_by_distance)[:_MAX_EXAMINED_NODES]:
        lines = _format_reason_lines(explanation.nodes[name], explanation.pod, snapshot, name)
        if lines in near_misses_by_lines:
            near_misses_by_lines[lines] = NearMiss(near_misses_by_lines[lines].node, lines, has_equal_nodes=True)
        else:
            near_misses_by_lines[lines] = NearMiss(name, lines)
    return list(near_misses_by_lines.values())[:count]


def _format_reason_lines(node_status: NodeFilterStatus, pod: PodInfo, snapshot: Snapshot, name: str) -> tuple[str, ...]:
    row = snapshot.row(name)
    return tuple(
        reason if row is None else explain_reason(plugin, reason, pod, snapshot, row)
        for plugin, status in node_status.rejections.items()
        for reason in status.reasons
    )


class _DistanceCalculator:
    """Computes the distance of nodes from being feasible for a pod."""

    def __init__(self, pod: PodInfo, snapshot: Snapshot) -> None:
        self._pod = pod
        self._snapshot = snapshot
        self._free_amounts: dict[str, list[int]] = {}

    def calculate_distance(self, name: str, node_status: NodeFilterStatus) -> float:
        """Return the distance of node *name*, which is the sum over the reasons of its rejection."""
        reasons = [reason for status in node_status.rejections.values() for reason in status.reasons]
        return sum(self._calculate_reason_distance(name, reason) for reason in reasons)

    def _calculate_reason_distance(self, name: str, reason: str) -> float:
        row = self._snapshot.row(name)
        if row is None or not reason.startswith(INSUFFICIENT_PREFIX):
            return 1.0
        resource = reason.removeprefix(INSUFFICIENT_PREFIX)
        resource_id, requested_amount = get_resource_id_and_request(self._pod, resource, self._snapshot)
        if resource not in self._free_amounts:
            view = self._snapshot.view()
            self._free_amounts[resource] = (view.allocatable(resource_id) - view.requested(resource_id)).tolist()
        missing_amount = requested_amount - self._free_amounts[resource][row]
        if requested_amount <= 0 or missing_amount <= 0:
            return 1.0  # a resource claim, not a container, requests this resource
        return min(1.0, missing_amount / requested_amount)
