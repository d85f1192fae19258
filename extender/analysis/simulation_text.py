"""Format a simulation as text, or convert it to plain values."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from extender.analysis.required_kinds import get_plural
from extender.analysis.simulate import Simulation
from extender.analysis.text_table import format_amount, format_count, format_percent, format_table, join_first
from extender.analysis.utilization import PODS_RESOURCE, ClusterUsage
from extender.answers.simulation import NodeUse

_MAX_NODES: Final = 3
_MAX_PREEMPTIONS: Final = 10


def make_simulation_values(simulation: Simulation, seed: int) -> dict[str, Any]:
    """Return the complete simulation as dicts, lists, strings, numbers and None. Placements are in queue order."""
    usage_before, usage_after = simulation.usage_before, simulation.usage_after
    return {
        "seed": seed,
        "nodes": len(usage_after.nodes),
        "pods": {
            "waiting": len(simulation.placements),
            "placed": simulation.placed_count,
            "unplaced": len(simulation.placements) - simulation.placed_count,
        },
        "placements": msgspec.to_builtins(list(simulation.placements)),
        "unplaced": msgspec.to_builtins(simulation.group_unplaced_by_reason()),
        "evicted": list(simulation.evicted_pods),
        "utilisation": {
            name: {
                "allocatable": usage.allocatable,
                "before": usage_before.total[name].requested,
                "after": usage.requested,
            }
            for name, usage in usage_after.total.items()
        },
        "fullest": msgspec.to_builtins(usage_after.list_fullest_nodes(_MAX_NODES)),
        "emptiest": msgspec.to_builtins(usage_after.list_emptiest_nodes(_MAX_NODES)),
        "notRecorded": [get_plural(kind) for kind in simulation.missing_kinds],
        "warnings": simulation.warnings,
    }


def format_simulation(simulation: Simulation, seed: int) -> str:
    """Return the report: placed pods, reasons of unplaced pods, utilization, fullest and emptiest nodes."""
    pod_count, placed_count = len(simulation.placements), simulation.placed_count
    pods_text, unplaced_count = format_count(pod_count, "pod"), pod_count - placed_count
    counts = f"{pods_text} waiting, {placed_count} placed, {unplaced_count} not placed"
    if simulation.evicted_pods:
        counts += f", {len(simulation.evicted_pods)} evicted"
    lines = [f"{counts} (seed {seed})", *simulation.warnings]
    lines += _format_unplaced_lines(simulation)
    lines += _format_preemption_lines(simulation)
    if simulation.usage_after.nodes:
        lines += _format_utilization_table(simulation.usage_before, simulation.usage_after)
        for title, nodes in simulation.usage_after.list_nodes_by_title(_MAX_NODES).items():
            lines += _format_node_table(title, nodes, simulation.usage_after)
    return "\n".join(lines) + "\n"


def _format_unplaced_lines(simulation: Simulation) -> list[str]:
    rows: list[tuple[str, str]] = []
    for group in simulation.group_unplaced_by_reason():
        rows += [(str(group.count), group.reason), ("", join_first(group.pods))]
    return ["", "Not placed", *format_table(rows, right_aligned=[0])] if rows else []


def _format_preemption_lines(simulation: Simulation) -> list[str]:
    """Return a line for each pod that was placed after evictions, or that could be placed after evictions."""
    preemptions = [(each.pod, each.preemption) for each in simulation.placements if each.preemption is not None]
    if not preemptions:
        return []
    title = "Placed after evictions" if simulation.evicted_pods else "Could be placed after evictions (--preempt)"
    lines = ["", title]
    lines += (
        f"  {pod} on {preemption.node}, in place of {join_first(preemption.victims)}"
        for pod, preemption in preemptions[:_MAX_PREEMPTIONS]
    )
    if len(preemptions) > _MAX_PREEMPTIONS:
        lines.append(f"  {format_count(len(preemptions) - _MAX_PREEMPTIONS, 'other pod')} likewise")
    return lines


def _format_utilization_table(usage_before: ClusterUsage, usage_after: ClusterUsage) -> list[str]:
    rows = [("RESOURCE", "BEFORE", "", "AFTER", "", "OF")]
    for name, usage in usage_after.total.items():
        requested_before = usage_before.total[name].requested
        rows.append(
            (
                name,
                format_amount(name, requested_before),
                format_percent(requested_before, usage.allocatable),
                format_amount(name, usage.requested),
                format_percent(usage.requested, usage.allocatable),
                format_amount(name, usage.allocatable),
            )
        )
    return ["", "Requested in the cluster", *format_table(rows, right_aligned=[1, 2, 3, 4, 5])]


def _format_node_table(title: str, nodes: Iterable[NodeUse], cluster: ClusterUsage) -> list[str]:
    names = list(cluster.total)
    rows = [("NODE", *(name for name in names if name != PODS_RESOURCE), PODS_RESOURCE)]
    for node in nodes:
        cells = [_format_percent_cell(node, name) for name in names if name != PODS_RESOURCE]
        pods = node.resources.get(PODS_RESOURCE)
        rows.append((node.name, *cells, f"{pods.requested}/{pods.allocatable}" if pods else "-"))
    return ["", title, *format_table(rows, right_aligned=range(1, len(names) + 1))]


def _format_percent_cell(node: NodeUse, name: str) -> str:
    usage = node.resources.get(name)
    return format_percent(usage.requested, usage.allocatable) if usage else "-"
