"""Format a comparison of two configurations as text, differences first, or convert it to plain values."""

from typing import Any, Final

import msgspec

from extender.analysis.text_table import format_amount, format_count, format_percent, format_table
from extender.answers.simulation import PlacementInOneConfiguration
from extender.planning.compare import Comparison

_MAX_LINES: Final = 20


def make_comparison_values(comparison: Comparison, seed: int) -> dict[str, Any]:
    """Return the complete comparison as plain values. A `node` of None means that the pod waits."""
    return {
        "seed": seed,
        "pods": comparison.pod_count,
        "different": msgspec.to_builtins(comparison.differences),
        "first": msgspec.to_builtins(comparison.first),
        "second": msgspec.to_builtins(comparison.second),
    }


def format_comparison(comparison: Comparison, names: tuple[str, str]) -> str:
    """Return the report. *names* are the column titles of the two configurations."""
    count = len(comparison.differences)
    pods = format_count(comparison.pod_count, "pod")
    lines = [f"{count} of {pods} {'goes' if count == 1 else 'go'} elsewhere." if count else f"{pods}, no difference."]
    if count:
        rows = [("POD", *names)]
        rows += [
            (difference.pod, _format_node(difference.first), _format_node(difference.second))
            for difference in comparison.differences[:_MAX_LINES]
        ]
        lines += ["", *format_table(rows)]
    if count > _MAX_LINES:
        lines.append(f"  and {count - _MAX_LINES} more; -o json has all")
    lines += _format_totals(comparison, names)
    return "\n".join(lines) + "\n"


def _format_node(placement: PlacementInOneConfiguration) -> str:
    return placement.node or f"waits: {', '.join(placement.reasons)}"


def _format_totals(comparison: Comparison, names: tuple[str, str]) -> list[str]:
    outcomes = (comparison.first, comparison.second)
    rows: list[tuple[str, ...]] = [
        ("", *names),
        ("placed pods", *(str(outcome.placed) for outcome in outcomes)),
        ("waiting pods", *(str(outcome.waiting) for outcome in outcomes)),
        ("evicted pods", *(str(len(outcome.evicted)) for outcome in outcomes)),
        ("nodes with pods", *(str(outcome.used_nodes) for outcome in outcomes)),
    ]
    for name in comparison.first.resources:
        uses = [outcome.resources[name] for outcome in outcomes]
        cells = [
            f"{format_amount(name, use.requested)}, {format_percent(use.requested, use.allocatable)}, "
            f"sd {100 * use.deviation:.1f}%"
            for use in uses
        ]
        rows.append((name, *cells))
    times = [outcome.milliseconds for outcome in outcomes]
    rows.append(("time per pod, median", *(f"{each.p50:.2f} ms" for each in times)))
    rows.append(("time per pod, p99", *(f"{each.p99:.2f} ms" for each in times)))
    note = "  sd is the standard deviation of the used part over the nodes: the lower, the more even."
    return ["", "Totals", *format_table(rows, right_aligned=[1, 2]), "", note]
