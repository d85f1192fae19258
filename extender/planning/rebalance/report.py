"""Format a plan as text, or convert it to plain values. The three questions have the same fields."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec

from extender.analysis.text_table import format_count, format_section, format_table
from extender.planning.rebalance.empty_nodes import EmptyPlan
from extender.planning.rebalance.fix_violations import RULES, FixPlan
from extender.planning.rebalance.make_room import RoomPlan
from extender.planning.rebalance.plan import Action, Step

_format_section: Final = partial(format_section, max_lines=40)

RebalancePlan = RoomPlan | EmptyPlan | FixPlan
"""The answer to `--for`, `--empty` or `--fix`."""


def make_rebalance_values(plan: RebalancePlan) -> dict[str, Any]:
    """Return the plan as plain values, always with the same keys. Fields of other questions are empty."""
    values: dict[str, Any] = {
        "question": "",
        "moves": plan.proof.moves,
        "steps": [step.to_values() for step in plan.proof.steps],
        "complete": plan.is_complete,
        "placedBefore": msgspec.to_builtins(list(plan.placed_before)),
        "pods": [],
        "unplaced": [],
        "emptied": [],
        "retained": [],
        "saved": None,
        "violations": [],
        "remaining": [],
    }
    match plan:
        case RoomPlan():
            unplaced = [{"pod": pod, "message": message} for pod, message in plan.unplaced]
            return values | {"question": "for", "pods": list(plan.pods), "unplaced": unplaced}
        case EmptyPlan():
            prices = [entry.price for entry in plan.emptied if entry.price is not None]
            nodes = msgspec.to_builtins({"emptied": list(plan.emptied), "retained": list(plan.retained)})
            return values | {"question": "empty", **nodes, "saved": round(sum(prices), 6) if prices else None}
    remaining = [{**msgspec.to_builtins(entry), "obstacle": obstacle} for entry, obstacle in plan.remaining]
    violations = msgspec.to_builtins(list(plan.violations))
    return values | {"question": "fix", "violations": violations, "remaining": remaining}


def format_rebalance(plan: RebalancePlan) -> str:
    """Return the report: a summary, the steps, and what the plan does not reach. Commands are not included."""
    if isinstance(plan, RoomPlan):
        lines, rest = [_summarize_room(plan)], _format_section("Without a plan", plan.unplaced)
    elif isinstance(plan, EmptyPlan):
        lines, rest = [_summarize_empty(plan), *_format_emptied(plan)], _format_retained(plan)
    else:
        lines, rest = [_summarize_fix(plan), *_format_violations(plan)], _format_remaining(plan)
    lines += _format_section(
        "Placed without any move", [(entry.pod, f"on {entry.node}") for entry in plan.placed_before]
    )
    if not plan.is_complete:
        rest = [*rest, "", "The search reached its limits. A longer one may find more: --max-moves, --max-attempts"]
    return "\n".join([*lines, *_format_steps(plan.proof.steps), *rest]) + "\n"


def _summarize_room(plan: RoomPlan) -> str:
    names = plan.pods[0] if len(plan.pods) == 1 else format_count(len(plan.pods), "pod")
    if plan.unplaced:
        reached = len(plan.pods) - len(plan.unplaced)
        reach = f" {format_count(reached, 'other pod')} can run." if reached else ""
        what = f"{plan.unplaced[0][0]}" if len(plan.unplaced) == 1 else f"{len(plan.unplaced)} of {names}"
        return f"No plan was found for {what}.{reach}"
    verb = "runs" if len(plan.pods) == 1 else "run"
    if not plan.proof.moves:
        return f"{names} {verb} without any move."
    return f"{names} {verb} after {format_count(plan.proof.moves, 'move')}."


def _summarize_empty(plan: EmptyPlan) -> str:
    if not plan.emptied:
        return "No node can be emptied."
    nodes = format_count(len(plan.emptied), "node")
    prices = [entry.price for entry in plan.emptied if entry.price is not None]
    saved = f" This saves {sum(prices):.2f}." if prices else ""
    return f"{nodes} can be emptied with {format_count(plan.proof.moves, 'move')}.{saved}"


def _format_emptied(plan: EmptyPlan) -> list[str]:
    rows = [
        (entry.node, format_count(entry.moves, "move"), "" if entry.price is None else f"price {entry.price:.2f}")
        for entry in plan.emptied
    ]
    return _format_section("Nodes that can be emptied", rows)


def _format_retained(plan: EmptyPlan) -> list[str]:
    rows = [(entry.node, f"{entry.pod or ''} {entry.reason}".strip()) for entry in plan.retained]
    return _format_section("Nodes that stay", rows)


def _summarize_fix(plan: FixPlan) -> str:
    if not plan.violations:
        return "No pod's node violates its taints, affinity or spread."
    pods = "1 pod's node violates" if len(plan.violations) == 1 else f"{len(plan.violations)} pods' nodes violate"
    moves = format_count(plan.proof.moves, "move")
    if plan.remaining:
        return f"{pods} their rules; {len(plan.remaining)} remain after {moves}."
    return f"{pods} their rules; {moves} {'ends' if plan.proof.moves == 1 else 'end'} this."


def _format_violations(plan: FixPlan) -> list[str]:
    rows = [(entry.pod, f"on {entry.node}", RULES[entry.plugin], entry.reason) for entry in plan.violations]
    return _format_section("Violations", rows)


def _format_remaining(plan: FixPlan) -> list[str]:
    rows = [(entry.pod, f"on {entry.node}", obstacle) for entry, obstacle in plan.remaining]
    return _format_section("Violations that remain", rows)


def _format_steps(steps: Sequence[Step]) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for number, step in enumerate(steps, 1):
        change = step.change
        if change.action is Action.EVICT:
            others = len(step.equal_targets) - 1
            target = f"to {step.target}" + (f" or {format_count(others, 'equal node')}" if others > 0 else "")
            rows.append((str(number), f"evict {change.name}", f"from {step.source}", target))
        else:
            rows.append((str(number), f"{change.action.value} {change.name}"))
        rows += [("", "", "", f"{entry.pod} goes to {entry.node}") for entry in step.placed]
    return ["", "Steps", *format_table(rows, right_aligned=[0])] if rows else []
