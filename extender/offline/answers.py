"""An examination as plain values: the shape in which results are compared with those of kube-scheduler."""

from typing import Any

from extender.decide.examine import Examination, NodeVerdict
from extender.decide.rank import Ranking
from extender.decide.rescue import Rescue
from extender.framework.verdict import Status
from extender.preemption.plan import PreemptionPlan

_PREEMPTION = "DefaultPreemption"


def answer(examination: Examination) -> dict[str, Any]:
    """Everything found out about one pod: dicts, lists, strings, integers and None, always with the same keys."""
    attempt = examination.attempt
    result: dict[str, Any] = {
        "preEnqueue": None,
        "preFilter": None,
        "nodes": {},
        "feasible": [],
        "scores": {},
        "best": [],
        "filterMessage": examination.filter_message,
        "message": examination.message,
        "preemption": None,
    }
    held = examination.held_back
    if held is not None:
        result["preEnqueue"] = {"plugin": held.plugin, "reasons": list(held.reasons)}
    if examination.rescue is not None:
        result["preemption"] = _preemption(examination.rescue)
    if attempt is None:
        return result
    before = attempt.before
    result["preFilter"] = {
        "status": _status(before.status),
        "nodes": None if before.nodes is None else sorted(before.nodes),
    }
    result["nodes"] = {name: _verdict(verdict) for name, verdict in sorted(examination.nodes.items())}
    if attempt.any:
        result["feasible"] = sorted(feasible_names(examination))
    if examination.ranking is not None:
        result["scores"] = _scores(examination.ranking, examination.names)
        result["best"] = best_names(examination)
    return result


def feasible_names(examination: Examination) -> list[str]:
    """The nodes that can take the pod, in the order of the cluster."""
    attempt = examination.attempt
    if attempt is None or not attempt.any:
        return []
    return [name for name, fits in zip(examination.names, attempt.feasible.tolist(), strict=True) if fits]


def best_names(examination: Examination) -> list[str]:
    """The nodes with the highest total, sorted; the only feasible node even if it could not be scored."""
    if examination.ranking is None:
        return []
    feasible = feasible_names(examination)
    if len(feasible) == 1:
        return feasible
    return sorted(examination.names[row] for row in examination.ranking.best().tolist())


def _status(status: Status | None) -> dict[str, Any] | None:
    if status is None:
        return None
    return {"code": status.code.label, "plugin": status.plugin, "reasons": sorted(status.reasons)}


def _preemption(rescue: Rescue) -> dict[str, Any] | None:
    """What default preemption said; None if it was not asked."""
    said = rescue.answers.get(_PREEMPTION)
    if said is None:
        return None
    found: dict[str, Any] = {
        "code": said.status.code.label,
        "reasons": sorted(said.status.reasons),
        "nominatedNode": "",
        "victims": [],
        "ties": [],
        "candidates": {},
    }
    plan = preemption_plan(rescue)
    if plan is not None:
        found["nominatedNode"] = plan.chosen.node
        found["victims"] = sorted(victim.key for victim in plan.chosen.victims)
        found["ties"] = list(plan.ties)
        found["candidates"] = {
            each.node: {"victims": sorted(victim.key for victim in each.victims), "numPDBViolations": each.violations}
            for each in sorted(plan.candidates, key=lambda candidate: candidate.node)
        }
    return found


def preemption_plan(rescue: Rescue | None) -> PreemptionPlan | None:
    """What default preemption would do; None if it was not asked, or there is nothing it can do."""
    said = rescue.answers.get(_PREEMPTION) if rescue is not None else None
    return said.detail if said is not None and isinstance(said.detail, PreemptionPlan) else None


def _verdict(verdict: NodeVerdict) -> dict[str, Any]:
    return {
        "filters": {
            name: {"code": status.code.label, "reasons": sorted(status.reasons)}
            for name, status in verdict.refusals.items()
        },
        "firstFailure": _status(verdict.first_failure),
    }


def _scores(ranking: Ranking, names: tuple[str, ...]) -> dict[str, Any]:
    columns = [
        (name, scores.raw.tolist(), scores.normalized.tolist(), scores.weight)
        for name, scores in ranking.plugins.items()
    ]
    totals = ranking.totals.tolist()
    found: dict[str, Any] = {}
    for index, row in enumerate(ranking.rows.tolist()):
        plugins = {
            name: {"raw": raw[index], "normalized": normal[index], "weighted": normal[index] * weight}
            for name, raw, normal, weight in columns
        }
        found[names[row]] = {"total": totals[index], "plugins": plugins}
    return dict(sorted(found.items()))
