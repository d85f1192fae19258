"""Convert the explanation of a pod to plain values. Parity tests compare these values with kube-scheduler's results."""

from typing import Any, Final

from extender.answers.reason_codes import list_reason_codes
from extender.cycle.explain_pod import NodeFilterStatus, PodExplanation
from extender.cycle.post_filter import PostFilterRun
from extender.cycle.score import Ranking
from extender.framework.status import Code, Status
from extender.preemption.plan import PreemptionPlan

DEFAULT_PREEMPTION: Final = "DefaultPreemption"


def make_explanation_values(explanation: PodExplanation) -> dict[str, Any]:
    """Return the complete explanation of a pod as dicts, lists, strings, integers and None, with constant keys."""
    diagnosis = explanation.diagnosis
    result: dict[str, Any] = {
        "preEnqueue": None,
        "preFilter": None,
        "nodes": {},
        "feasible": [],
        "scores": {},
        "best": [],
        "filterMessage": explanation.filter_message,
        "message": explanation.message,
        "preemption": None,
    }
    pre_enqueue_status = explanation.pre_enqueue_status
    if pre_enqueue_status is not None:
        result["preEnqueue"] = {
            "plugin": pre_enqueue_status.plugin,
            "reasons": list(pre_enqueue_status.reasons),
            "reasonCodes": list_reason_codes(pre_enqueue_status.reasons),
        }
    if explanation.post_filter_run is not None:
        result["preemption"] = _make_preemption_values(explanation.post_filter_run)
    if diagnosis is None:
        return result
    pre_filter_run = diagnosis.pre_filter_run
    result["preFilter"] = {
        "status": _make_status_values(pre_filter_run.status),
        "nodes": None if pre_filter_run.node_names is None else sorted(pre_filter_run.node_names),
    }
    result["nodes"] = {
        name: _make_node_filter_values(node_status) for name, node_status in sorted(explanation.nodes.items())
    }
    if diagnosis.has_feasible_node:
        result["feasible"] = sorted(list_feasible_node_names(explanation))
    if explanation.ranking is not None:
        result["scores"] = _make_score_values(explanation.ranking, explanation.node_names)
        result["best"] = list_best_node_names(explanation)
    return result


def list_feasible_node_names(explanation: PodExplanation) -> list[str]:
    """Return the names of the feasible nodes, in the order of the snapshot."""
    diagnosis = explanation.diagnosis
    if diagnosis is None or not diagnosis.has_feasible_node:
        return []
    return [name for name, fits in zip(explanation.node_names, diagnosis.feasible.tolist(), strict=True) if fits]


def list_best_node_names(explanation: PodExplanation) -> list[str]:
    """Return the names of the nodes with the highest total score, sorted. A single feasible node is always the best."""
    if explanation.ranking is None:
        return []
    feasible = list_feasible_node_names(explanation)
    if len(feasible) == 1:
        return feasible
    return sorted(explanation.node_names[row] for row in explanation.ranking.find_best_rows().tolist())


def _make_status_values(status: Status | None) -> dict[str, Any] | None:
    if status is None:
        return None
    return {"code": status.code.label, "plugin": status.plugin, **_make_reason_values(status)}


def _make_reason_values(status: Status) -> dict[str, list[str]]:
    """Return the sorted reasons, with the code of each."""
    reasons = sorted(status.reasons)
    return {"reasons": reasons, "reasonCodes": list_reason_codes(reasons, is_error=status.code is Code.ERROR)}


def _make_preemption_values(post_filter_run: PostFilterRun) -> dict[str, Any] | None:
    """Return the result of DefaultPreemption; None if it did not run."""
    post_filter_result = post_filter_run.results.get(DEFAULT_PREEMPTION)
    if post_filter_result is None:
        return None
    values: dict[str, Any] = {
        "code": post_filter_result.status.code.label,
        "reasons": [],
        "reasonCodes": [],
        "nominatedNode": "",
        "victims": [],
        "ties": [],
        "candidates": {},
    }
    if not post_filter_result.status.is_success:
        values |= _make_reason_values(post_filter_result.status)
    plan = get_preemption_plan(post_filter_run)
    if plan is not None:
        values["nominatedNode"] = plan.best_candidate.node_name
        values["victims"] = sorted(victim.key for victim in plan.best_candidate.victims)
        values["ties"] = list(plan.tied_nodes)
        values["candidates"] = {
            candidate.node_name: {
                "victims": sorted(victim.key for victim in candidate.victims),
                "numPDBViolations": candidate.num_pdb_violations,
            }
            for candidate in sorted(plan.candidates, key=lambda candidate: candidate.node_name)
        }
    return values


def get_preemption_plan(post_filter_run: PostFilterRun | None) -> PreemptionPlan | None:
    """Return the plan of DefaultPreemption; None if it did not run or found no candidate."""
    post_filter_result = post_filter_run.results.get(DEFAULT_PREEMPTION) if post_filter_run is not None else None
    return (
        post_filter_result.plan
        if post_filter_result is not None and isinstance(post_filter_result.plan, PreemptionPlan)
        else None
    )


def _make_node_filter_values(node_status: NodeFilterStatus) -> dict[str, Any]:
    return {
        "filters": {
            name: {"code": status.code.label, **_make_reason_values(status)}
            for name, status in node_status.rejections.items()
        },
        "firstFailure": _make_status_values(node_status.first_failure),
    }


def _make_score_values(ranking: Ranking, node_names: tuple[str, ...]) -> dict[str, Any]:
    plugin_scores = [
        (name, scores.raw.tolist(), scores.normalized.tolist(), scores.weight)
        for name, scores in ranking.scores_by_plugin.items()
    ]
    totals = ranking.totals.tolist()
    values: dict[str, Any] = {}
    for index, row in enumerate(ranking.rows.tolist()):
        plugins = {
            name: {"raw": raw[index], "normalized": normalized[index], "weighted": normalized[index] * weight}
            for name, raw, normalized, weight in plugin_scores
        }
        values[node_names[row]] = {"total": totals[index], "plugins": plugins}
    return dict(sorted(values.items()))
