"""Format a comparison of two configurations as text, differences first, or convert it to plain values."""

from statistics import pstdev
from typing import Any, Final

from extender.analysis.simulate import PodPlacement
from extender.analysis.simulation_text import make_placement_values
from extender.analysis.text_table import format_amount, format_count, format_percent, format_table
from extender.analysis.utilization import PODS_RESOURCE, ClusterUsage
from extender.planning.compare import Comparison, Outcome

_MAX_LINES: Final = 20


def make_comparison_values(comparison: Comparison, seed: int) -> dict[str, Any]:
    """Return the complete comparison as plain values. A `node` of None means that the pod waits."""
    return {
        "seed": seed,
        "pods": comparison.pod_count,
        "different": [
            {
                "pod": difference.first.pod,
                "first": make_placement_values(difference.first),
                "second": make_placement_values(difference.second),
            }
            for difference in comparison.differences
        ],
        "first": _make_outcome_values(comparison.first),
        "second": _make_outcome_values(comparison.second),
    }


def _make_outcome_values(outcome: Outcome) -> dict[str, Any]:
    simulation = outcome.simulation
    usage = simulation.usage_after
    placed_count = len(simulation.placed_pods)
    return {
        "placed": placed_count,
        "waiting": len(simulation.placements) - placed_count,
        "evicted": list(simulation.evicted_pods),
        "usedNodes": _count_used_nodes(usage),
        "resources": {
            name: {
                "requested": total.requested,
                "allocatable": total.allocatable,
                "deviation": round(_calculate_deviation(usage, name), 4),
            }
            for name, total in usage.total.items()
        },
        "milliseconds": {
            "p50": round(outcome.get_milliseconds(0.5), 3),
            "p99": round(outcome.get_milliseconds(0.99), 3),
        },
    }


def _count_used_nodes(usage: ClusterUsage) -> int:
    return sum(PODS_RESOURCE in node.resources and node.resources[PODS_RESOURCE].requested > 0 for node in usage.nodes)


def _calculate_deviation(usage: ClusterUsage, resource: str) -> float:
    """Return the standard deviation of the used fraction over the nodes that have *resource*."""
    fractions = [node.resources[resource].fraction for node in usage.nodes if resource in node.resources]
    return pstdev(fractions) if fractions else 0.0


def format_comparison(comparison: Comparison, names: tuple[str, str]) -> str:
    """Return the report. *names* are the column titles of the two configurations."""
    count = len(comparison.differences)
    pods = format_count(comparison.pod_count, "pod")
    lines = [f"{count} of {pods} {'goes' if count == 1 else 'go'} elsewhere." if count else f"{pods}, no difference."]
    if count:
        rows = [("POD", *names)]
        rows += [
            (difference.first.pod, _format_node(difference.first), _format_node(difference.second))
            for difference in comparison.differences[:_MAX_LINES]
        ]
        lines += ["", *format_table(rows)]
    if count > _MAX_LINES:
        lines.append(f"  and {count - _MAX_LINES} more; -o json has all")
    lines += _format_totals(comparison, names)
    return "\n".join(lines) + "\n"


def _format_node(placement: PodPlacement) -> str:
    return placement.node or f"waits: {placement.reason}"


def _format_totals(comparison: Comparison, names: tuple[str, str]) -> list[str]:
    outcomes = (comparison.first, comparison.second)
    simulations = [outcome.simulation for outcome in outcomes]
    usages = [simulation.usage_after for simulation in simulations]
    rows: list[tuple[str, ...]] = [
        ("", *names),
        ("placed pods", *(str(len(simulation.placed_pods)) for simulation in simulations)),
        (
            "waiting pods",
            *(str(len(simulation.placements) - len(simulation.placed_pods)) for simulation in simulations),
        ),
        ("evicted pods", *(str(len(simulation.evicted_pods)) for simulation in simulations)),
        ("nodes with pods", *(str(_count_used_nodes(usage)) for usage in usages)),
    ]
    for name in usages[0].total:
        cells = [
            f"{format_amount(name, usage.total[name].requested)}, "
            f"{format_percent(usage.total[name].requested, usage.total[name].allocatable)}, "
            f"sd {100 * _calculate_deviation(usage, name):.1f}%"
            for usage in usages
        ]
        rows.append((name, *cells))
    for title, fraction in (("time per pod, median", 0.5), ("time per pod, p99", 0.99)):
        rows.append((title, *(f"{outcome.get_milliseconds(fraction):.2f} ms" for outcome in outcomes)))
    note = "  sd is the standard deviation of the used part over the nodes: the lower, the more even."
    return ["", "Totals", *format_table(rows, right_aligned=[1, 2]), "", note]
