"""Format the outcome of a scenario as text, differences first, or convert it to plain values."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec

from extender.analysis.text_table import (
    format_amounts,
    format_count,
    format_percent,
    format_section,
    format_table,
    join_first,
)
from extender.answers.planning import ScenarioOutcome, Totals, WaitingPodResult

_format_section: Final = partial(format_section, max_lines=10)


def make_what_if_values(outcome: ScenarioOutcome) -> dict[str, Any]:
    """Return the complete outcome as plain values, always with the same keys.

    `from` is None for a pod that had no node. The `wasWaiting` of a pod in `waiting` is true if the pod had no node in
    the recorded cluster either. Its `preemption` is None if it would evict no other pods.
    """
    values: dict[str, Any] = msgspec.to_builtins(outcome)
    values["violatedBudgets"].sort(key=lambda violated: violated["budget"])
    return values


def format_what_if(outcome: ScenarioOutcome) -> str:
    """Return the report: a summary, then each difference, then the totals before and after."""
    new_waiting = [pod for pod in outcome.waiting if not pod.was_waiting]
    old_waiting = [pod for pod in outcome.waiting if pod.was_waiting]
    lines = [format_summary(outcome)]
    lines += _format_waiting("Left without a node", new_waiting)
    lines += _format_section(
        "Not evicted, because a budget does not allow it",
        ((pod.pod, f"on {pod.node}", f"budget {', '.join(pod.budgets)}") for pod in outcome.blocked),
    )
    lines += _format_section(
        "Lost, because no controller creates a new pod", ((pod.pod, f"on {pod.node}") for pod in outcome.lost)
    )
    lines += _format_section(
        "Evicted by preemption", ((pod.pod, f"on {pod.node}", f"by {pod.by}") for pod in outcome.evicted)
    )
    lines += _format_section(
        "Violated budgets",
        (
            (violated.budget, f"{format_count(len(violated.pods), 'pod')} too many", join_first(violated.pods))
            for violated in outcome.violated_budgets
        ),
    )
    lines += _format_section("Removed by --scale", ((pod,) for pod in outcome.removed))
    lines += _format_section(
        "Moves", ((pod.pod, f"from {pod.source}", f"to {pod.to}") for pod in outcome.moved if pod.source)
    )
    lines += _format_section("Placed", ((pod.pod, f"on {pod.to}") for pod in outcome.moved if not pod.source))
    lines += _format_totals(outcome.before, outcome.after)
    lines += _format_waiting("Waiting before and after", old_waiting)
    return "\n".join(lines) + "\n"


def format_summary(outcome: ScenarioOutcome) -> str:
    """Return one sentence with the numbers of the pods that move, are placed, wait or are lost."""
    new_waiting_count = sum(not pod.was_waiting for pod in outcome.waiting)
    parts = [
        _count(sum(bool(pod.source) for pod in outcome.moved), "moves", "move"),
        _count(sum(not pod.source for pod in outcome.moved), "is placed", "are placed"),
        _count(new_waiting_count, "is left without a node", "are left without a node"),
        _count(len(outcome.blocked), "cannot be evicted", "cannot be evicted"),
        _count(len(outcome.lost), "is lost", "are lost"),
        _count(len(outcome.evicted), "is evicted", "are evicted"),
        _count(len(outcome.removed), "is removed", "are removed"),
    ]
    texts = [part for part in parts if part]
    if not texts:
        return "No pod moves, and none is left without a node."
    number, _, rest = texts[0].partition(" ")
    texts[0] = f"{number} {'pod' if number == '1' else 'pods'} {rest}"
    return f"{', '.join(texts)}."


def _count(number: int, singular: str, plural: str) -> str:
    if not number:
        return ""
    return f"{number} {singular if number == 1 else plural}"


def _format_waiting(title: str, pods: Sequence[WaitingPodResult]) -> list[str]:
    """Return the waiting pods in groups of equal reasons, the largest group first."""
    groups: dict[str, list[WaitingPodResult]] = {}
    for pod in pods:
        groups.setdefault(", ".join(pod.reasons), []).append(pod)
    rows = []
    for reason, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        rows.append((str(len(group)), reason))
        rows.append(("", join_first([pod.pod for pod in group])))
        preemption = next((pod.preemption for pod in group if pod.preemption is not None), None)
        if preemption is not None:
            rows.append(("", f"would evict {join_first(preemption.victims)} on {preemption.node}; --preempt does it"))
    return ["", title, *format_table(rows, right_aligned=[0])] if rows else []


def _format_totals(before: Totals, after: Totals) -> list[str]:
    rows: list[tuple[str, ...]] = [("", "BEFORE", "", "AFTER", "")]
    rows.append(("nodes", str(before.nodes), "", str(after.nodes), ""))
    rows.append(("waiting pods", str(before.waiting), "", str(after.waiting), ""))
    for name in dict.fromkeys((*before.resources, *after.resources)):
        cells = []
        for totals in (before, after):
            usage = totals.resources.get(name)
            amounts = (usage.requested, usage.allocatable) if usage else (0, 0)
            cells += [
                " of ".join(format_amounts(name, *amounts)),
                format_percent(*amounts),
            ]
        rows.append((name, *cells))
    if before.cost is not None and after.cost is not None:
        rows.append(("cost", f"{before.cost:.2f}", "", f"{after.cost:.2f}", ""))
        if before.unpriced_nodes or after.unpriced_nodes:
            counts = (str(before.unpriced_nodes), str(after.unpriced_nodes))
            rows.append(("nodes without a price", counts[0], "", counts[1], ""))
    return ["", "Totals", *format_table(rows, right_aligned=[1, 2, 3, 4])]
