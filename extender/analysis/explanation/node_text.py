"""The results of all plugins on one node as text: why it rejects a pod, or its score."""

from typing import Final

from extender.analysis.explanation.assigned_pod import AssignedNode, describe_assigned_node
from extender.analysis.explanation.explain_json import get_preemption_plan
from extender.analysis.explanation.explain_text import format_score_table
from extender.analysis.explanation.suggestions import explain_reason
from extender.cache.snapshot import Snapshot
from extender.cycle.explain_pod import NodeFilterStatus, PodExplanation
from extender.cycle.score import Ranking

_INDENT: Final = "    "


def format_node_lines(explanation: PodExplanation, snapshot: Snapshot, name: str) -> list[str]:
    """Return lines about one node, the first of which says whether it fits."""
    node_status = explanation.nodes.get(name)
    if node_status is None:
        return [f"  Node {name} is not evaluated{_explain_skipped_node(explanation)}"]
    if node_status.first_failure is not None or node_status.rejections:
        return _format_rejected_node(explanation, snapshot, name, node_status)
    node = describe_assigned_node(explanation, name)
    ranking = explanation.ranking
    scores = [] if ranking is None or node.rank is None else _format_scores(explanation, ranking, node)
    return [f"  Node {name} fits{_format_rank(node)}", *scores]


def _explain_skipped_node(explanation: PodExplanation) -> str:
    diagnosis = explanation.diagnosis
    if diagnosis is None or diagnosis.pre_filter_run.node_names is None:
        return ""
    return f": {', '.join(diagnosis.pre_filter_run.restricting_plugins)} allowed only other nodes at PreFilter"


def _format_rejected_node(
    explanation: PodExplanation, snapshot: Snapshot, name: str, node_status: NodeFilterStatus
) -> list[str]:
    row, first = snapshot.row(name), node_status.first_failure
    lines = [f"  Node {name} is rejected" + (f" by {first.plugin}" if first is not None else "")]
    for plugin, status in node_status.rejections.items():
        for reason in status.reasons:
            text = reason if row is None else explain_reason(plugin, reason, explanation.pod, snapshot, row)
            lines.append(f"{_INDENT}{plugin}: {text}")
    if first is not None and not node_status.rejections:
        lines += [f"{_INDENT}{first.plugin}: {reason}" for reason in first.reasons]
    plan = get_preemption_plan(explanation.post_filter_run)
    candidates = () if plan is None else plan.candidates
    for candidate in candidates:
        if candidate.node_name == name:
            victims = ", ".join(sorted(victim.key for victim in candidate.victims))
            lines.append(f"{_INDENT}preemption would help here; it would evict {victims}")
    return lines


def _format_rank(node: AssignedNode) -> str:
    if node.rank is None or node.total is None or node.best_total is None:
        return ", and is the only one" if node.feasible_count == 1 else ""
    if node.is_best:
        ties = f", as {len(node.best_nodes) - 1} others" if len(node.best_nodes) > 1 else ""
        return f", and has the highest score of {node.feasible_count} nodes (total {node.total}){ties}"
    margin = node.best_total - node.total
    return (
        f", and ranks {node.rank} of {node.feasible_count} (total {node.total}, {margin} behind {node.best_nodes[0]})"
    )


def _format_scores(explanation: PodExplanation, ranking: Ranking, node: AssignedNode) -> list[str]:
    """Return a table of the scores of the node, beside those of the best node."""
    names = [node.name] if node.is_best else [node.name, node.best_nodes[0]]
    positions = {explanation.node_names[row]: position for position, row in enumerate(ranking.rows.tolist())}
    return format_score_table(explanation, ranking, [positions[name] for name in names])
