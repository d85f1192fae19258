"""Near misses: the rejected nodes that are closest to being feasible, and the changes that would make them feasible."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.analysis.explanation.suggestions import INSUFFICIENT_PREFIX, explain_reason, get_resource_id_and_request
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.explain_pod import NodeFilterStatus, PodExplanation

MAX_EXAMINED_NODES: Final = 40
"""The number of the nearest nodes whose reasons are formatted and compared. The distance of every node is computed."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A rejected node that is close to being feasible.

    Attributes:
        lines: one line for each reason of its rejection, with details.
        equal_count: the number of other nodes with the same lines, among the nodes that were examined.
        is_complete: whether all rejected nodes were examined.
    """

    node: str
    lines: tuple[str, ...]
    equal_count: int = 0
    is_complete: bool = True

    def format_others(self) -> str:
        """Return the number of other nodes with the same lines, such as ` and 3 others`; empty without one."""
        if not self.equal_count:
            return ""
        others = "others" if self.equal_count > 1 else "other"
        return f" and {'' if self.is_complete else 'at least '}{self.equal_count} {others}"

    def format_lines(self, indent: str) -> Iterator[str]:
        """Yield the lines of the node: its name with the first reason, then the other reasons, indented further."""
        yield f"{indent}{self.node}{self.format_others()}: {self.lines[0]}"
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
    names_by_lines: dict[tuple[str, ...], list[str]] = {}
    for _, name in sorted(nodes_by_distance)[:MAX_EXAMINED_NODES]:
        lines = _format_reason_lines(explanation.nodes[name], explanation.pod, snapshot, name)
        names_by_lines.setdefault(lines, []).append(name)
    is_complete = len(nodes_by_distance) <= MAX_EXAMINED_NODES
    near_misses = [NearMiss(names[0], lines, len(names) - 1, is_complete) for lines, names in names_by_lines.items()]
    return near_misses[:count]


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
        self._distances: dict[str, list[float]] = {}
        self._reasons: dict[int, list[str]] = {}

    def calculate_distance(self, name: str, node_status: NodeFilterStatus) -> float:
        """Return the distance of node *name*, which is the sum over the reasons of its rejection."""
        row = self._snapshot.row(name)
        reasons = self._reasons.get(id(node_status))  # many nodes share one object
        if reasons is None:
            reasons = [reason for status in node_status.rejections.values() for reason in status.reasons]
            self._reasons[id(node_status)] = reasons
        return sum(
            self._get_resource_distances(reason)[row]
            if row is not None and reason.startswith(INSUFFICIENT_PREFIX)
            else 1.0
            for reason in reasons
        )

    def _get_resource_distances(self, reason: str) -> list[float]:
        """Return the missing fraction of the request on each node, for the reason that a resource is insufficient."""
        if reason not in self._distances:
            resource = reason.removeprefix(INSUFFICIENT_PREFIX)
            resource_id, requested_amount = get_resource_id_and_request(self._pod, resource, self._snapshot)
            view = self._snapshot.view()
            missing_amounts = requested_amount - view.allocatable(resource_id) + view.requested(resource_id)
            # Otherwise a resource claim, not a container, requests this resource.
            is_missing = (missing_amounts > 0) & (requested_amount > 0)
            fractions = np.minimum(missing_amounts / max(requested_amount, 1), 1.0)
            self._distances[reason] = np.where(is_missing, fractions, 1.0).tolist()
        return self._distances[reason]
