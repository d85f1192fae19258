"""Format the preemption plan of DefaultPreemption as text."""

from typing import Final

from extender.analysis.explanation.explain_json import get_preemption_plan
from extender.analysis.text_table import format_count, format_table, join_first
from extender.cycle.explain_pod import PodExplanation
from extender.preemption.plan import Candidate

_MAX_NODES: Final = 5


def format_preemption_lines(explanation: PodExplanation) -> list[str]:
    """Return lines about the nominated node, its victims and the other candidates, or no lines if there is no plan."""
    plan = get_preemption_plan(explanation.post_filter_run)
    if plan is None:
        return []
    best_candidate = plan.best_candidate
    ties_text = f", one of {len(plan.tied_nodes)} equally good nodes" if len(plan.tied_nodes) > 1 else ""
    other_candidates = sorted(
        (candidate for candidate in plan.candidates if candidate.node_name != best_candidate.node_name),
        key=_make_candidate_sort_key,
    )
    rows = [
        ("NODE", "EVICTED", "PDB VIOLATIONS", "VICTIMS"),
        *map(_make_candidate_row, (best_candidate, *other_candidates[: _MAX_NODES - 1])),
    ]
    omitted_count = len(other_candidates) - (_MAX_NODES - 1)
    victim_count = format_count(len(best_candidate.victims), "pod")
    return [
        "",
        f"  Preemption on {best_candidate.node_name}{ties_text}: {victim_count} evicted, and this pod is nominated",
        *format_table(rows, right_aligned=[1, 2], indent="    "),
        *([f"    also possible on {format_count(omitted_count, 'other node')}"] if omitted_count > 0 else []),
    ]


def _make_candidate_sort_key(candidate: Candidate) -> tuple[int, int, str]:
    return candidate.num_pdb_violations, len(candidate.victims), candidate.node_name


def _make_candidate_row(candidate: Candidate) -> tuple[str, ...]:
    names = [victim.key for victim in candidate.victims]
    return candidate.node_name, str(len(names)), str(candidate.num_pdb_violations), join_first(names)
