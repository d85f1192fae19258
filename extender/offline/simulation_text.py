"""A simulation as text for people, and as plain values."""

from collections.abc import Iterable
from typing import Any, Final

from extender.offline.amounts import percent, readable
from extender.offline.layout import columns, counted
from extender.offline.simulate import Simulation
from extender.offline.usage import PODS, NodeUsage, Usage

_SHOWN_NODES: Final = 3
_SHOWN_PODS: Final = 3


def values(simulation: Simulation, seed: int) -> dict[str, Any]:
    """Everything, with every placement in the order of the queue: dicts, lists, strings, numbers and None."""
    before, after = simulation.before, simulation.after
    unplaced = simulation.unplaced()
    placed = len(simulation.placed)
    return {
        "seed": seed,
        "nodes": len(after.nodes),
        "pods": {
            "waiting": len(simulation.placements),
            "placed": placed,
            "unplaced": len(simulation.placements) - placed,
        },
        "placements": [
            {"pod": each.pod, "node": each.node or None, "message": each.message or None}
            for each in simulation.placements
        ],
        "unplaced": [
            {"reason": reason, "count": len(group), "pods": [each.pod for each in group]}
            for reason, group in unplaced.items()
        ],
        "utilisation": {
            name: {
                "allocatable": share.allocatable,
                "before": before.total[name].requested,
                "after": share.requested,
            }
            for name, share in after.total.items()
        },
        "fullest": [_node(node) for node in after.fullest(_SHOWN_NODES)],
        "emptiest": [_node(node) for node in after.emptiest(_SHOWN_NODES)],
    }


def _node(node: NodeUsage) -> dict[str, Any]:
    shares = {
        name: {"requested": share.requested, "allocatable": share.allocatable} for name, share in node.shares.items()
    }
    return {"name": node.name, "resources": shares}


def text(simulation: Simulation, seed: int) -> str:
    """The report: what was placed, what was not and why, how full the cluster gets, its fullest and emptiest nodes."""
    all_pods, placed = len(simulation.placements), len(simulation.placed)
    lines = [f"{counted(all_pods, 'pod')} waiting, {placed} placed, {all_pods - placed} not placed (seed {seed})"]
    lines += _unplaced(simulation)
    if simulation.after.nodes:
        lines += _utilisation(simulation.before, simulation.after)
        lines += _nodes("Fullest nodes", simulation.after.fullest(_SHOWN_NODES), simulation.after)
        lines += _nodes("Emptiest nodes", simulation.after.emptiest(_SHOWN_NODES), simulation.after)
    return "\n".join(lines) + "\n"


def _unplaced(simulation: Simulation) -> list[str]:
    groups = simulation.unplaced()
    if not groups:
        return []
    lines = ["", "Not placed"]
    width = len(str(max(len(group) for group in groups.values())))
    for reason, group in groups.items():
        names = ", ".join(each.pod for each in group[:_SHOWN_PODS])
        more = len(group) - _SHOWN_PODS
        lines.append(f"  {len(group):>{width}}  {reason}")
        lines.append(f"  {'':{width}}  {names} and {more} more" if more > 0 else f"  {'':{width}}  {names}")
    return lines


def _utilisation(before: Usage, after: Usage) -> list[str]:
    rows = [("RESOURCE", "BEFORE", "", "AFTER", "", "OF")]
    for name, share in after.total.items():
        was = before.total[name].requested
        rows.append(
            (
                name,
                readable(name, was),
                percent(was, share.allocatable),
                readable(name, share.requested),
                percent(share.requested, share.allocatable),
                readable(name, share.allocatable),
            )
        )
    return ["", "Requested in the cluster", *columns(rows, right=[1, 2, 3, 4, 5])]


def _nodes(title: str, nodes: Iterable[NodeUsage], cluster: Usage) -> list[str]:
    names = list(cluster.total)
    rows = [("NODE", *(name for name in names if name != PODS), PODS)]
    for node in nodes:
        cells = [_cell(node, name) for name in names if name != PODS]
        pods = node.shares.get(PODS)
        rows.append((node.name, *cells, f"{pods.requested}/{pods.allocatable}" if pods else "-"))
    return ["", title, *columns(rows, right=range(1, len(names) + 1))]


def _cell(node: NodeUsage, name: str) -> str:
    share = node.shares.get(name)
    return percent(share.requested, share.allocatable) if share else "-"
