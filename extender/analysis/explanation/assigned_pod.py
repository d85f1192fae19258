"""Compare the node of a pod that is placed with the nodes on which the pod could be placed now."""

from dataclasses import dataclass
from typing import Any

from extender.analysis.explanation.explain_json import list_best_node_names, list_feasible_node_names
from extender.cycle.explain_pod import PodExplanation


@dataclass(frozen=True, slots=True)
class AssignedNode:
    """The node of a pod that is placed, among the nodes that fit the pod now.

    The pod itself does not count on its node.

    Attributes:
        feasible_count: the number of nodes that fit the pod now.
        rank: 1 for a node with the highest total score; None if the node would reject the pod, or is not scored.
        total: the total score of the node; None without a rank.
        best_total: the highest total score; None without scores.
        best_nodes: the nodes with the highest total score.
        rejection: the reasons why the node would reject the pod now; empty if it fits.
    """

    name: str
    feasible_count: int
    rank: int | None
    total: int | None
    best_total: int | None
    best_nodes: tuple[str, ...]
    rejection: str

    @property
    def is_best(self) -> bool:
        """Whether the pod could be placed on its node again, because no node has a higher score."""
        return self.name in self.best_nodes

    def to_values(self) -> dict[str, Any]:
        """Return the comparison as plain values, always with the same keys."""
        return {
            "node": self.name,
            "rank": self.rank,
            "total": self.total,
            "bestTotal": self.best_total,
            "rejection": self.rejection or None,
            "stays": self.is_best,
        }

    def format_lines(self) -> list[str]:
        """Return the comparison as text."""
        if self.rejection:
            return [f"{self.name} would reject it now: {self.rejection}"]
        if self.rank is None or self.total is None or self.best_total is None:
            return [f"{self.name} would be taken again"] if self.is_best else []
        if self.is_best:
            other_count = len(self.best_nodes) - 1
            ties_text = f", as {other_count} other node{'s' * (other_count != 1)}" if other_count else ""
            return [f"{self.name} has the highest score now too (total {self.total}){ties_text}"]
        margin = self.best_total - self.total
        return [
            f"{self.name} ranks {self.rank} of {self.feasible_count} now (total {self.total}, {margin} behind"
            f" {self.best_nodes[0]}); it would go to {self.best_nodes[0]}"
        ]


def describe_assigned_node(explanation: PodExplanation, node_name: str) -> AssignedNode:
    """Compare *node_name* with the nodes that fit the pod. The explanation must not count the pod on its node."""
    feasible_names = list_feasible_node_names(explanation)
    best_nodes = tuple(list_best_node_names(explanation))
    ranking = explanation.ranking
    rank = total = best_total = None
    if ranking is not None and ranking.error is None and len(feasible_names) > 1:
        totals = {
            explanation.node_names[row]: node_total
            for row, node_total in zip(ranking.rows.tolist(), ranking.totals.tolist(), strict=True)
        }
        best_total = max(totals.values())
        total = totals.get(node_name)
        if total is not None:
            rank = 1 + sum(node_total > total for node_total in totals.values())
    return AssignedNode(
        node_name,
        len(feasible_names),
        rank,
        total,
        best_total,
        best_nodes,
        "" if node_name in feasible_names else _format_rejection(explanation, node_name),
    )


def _format_rejection(explanation: PodExplanation, node_name: str) -> str:
    if node_name not in explanation.node_names:
        return "there is no such node"
    node_status = explanation.nodes.get(node_name)
    if node_status is not None and node_status.rejections:
        return "; ".join(f"{plugin}: {', '.join(status.reasons)}" for plugin, status in node_status.rejections.items())
    return explanation.message or "it is not considered"
