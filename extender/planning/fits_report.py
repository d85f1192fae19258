"""Format the number of copies that fit as text."""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.analysis.text_table import format_count, format_table, join_first
from extender.answers.planning import FitCount, StoppingNodes

_MAX_GROUPS: Final = 10


def format_fit(result: FitCount, note: str = "") -> str:
    """Return the report about one pod: the number, *note*, what stops the next copy, and the copies by node."""
    lines = [_format_first_line(result), *([note] if note else [])]
    if result.last is not None:
        lines.append(f"The last copy is on {result.last}.")
    if result.message is not None:
        lines += ["", "What stops the next copy", *format_node_groups(result.stopped_by), "", result.message]
    if result.placed:
        lines += ["", "Copies by node", *_format_copies(result.placed)]
    return "\n".join(lines) + "\n"


def _format_first_line(result: FitCount) -> str:
    key = result.pod
    if result.limit_reached:
        return f"At least {format_copies(result.fits, key)}; the count stopped at the limit."
    if not result.fits:
        return f"No copy of {key} fits."
    return f"{format_copies(result.fits, key)}."


def format_copies(count: int, key: str) -> str:
    """Return a sentence without a full stop: `3 more copies of default/web fit`."""
    return f"1 more copy of {key} fits" if count == 1 else f"{count} more copies of {key} fit"


def format_node_groups(groups: Sequence[StoppingNodes]) -> list[str]:
    """Return one line for each group of nodes: the number of nodes, their reasons, and the first names."""
    rows = [
        (
            format_count(len(group.nodes), "node") if group.nodes else "",
            ", ".join(group.reasons),
            join_first(group.nodes),
        )
        for group in groups[:_MAX_GROUPS]
    ]
    omitted_count = len(groups) - _MAX_GROUPS
    more = [f"  and {format_count(omitted_count, 'group')} more"] if omitted_count > 0 else []
    return format_table(rows, right_aligned=[0]) + more


def _format_copies(copies_by_node: Mapping[str, int]) -> list[str]:
    """Return one line for each number of copies: the nodes with that number."""
    nodes_by_count: dict[int, list[str]] = {}
    for node, count in copies_by_node.items():
        nodes_by_count.setdefault(count, []).append(node)
    rows = [
        (str(count), f"on each of {len(nodes)} nodes" if len(nodes) > 1 else "on 1 node", join_first(nodes))
        for count, nodes in nodes_by_count.items()
    ]
    omitted_count = len(rows) - _MAX_GROUPS
    more = [f"  and {format_count(omitted_count, 'other number')} of copies"] if omitted_count > 0 else []
    return format_table(rows[:_MAX_GROUPS], right_aligned=[0]) + more


def format_fit_table(results: Sequence[FitCount]) -> str:
    """Return a table with one line for each pod: the number of copies, the last node, and the most frequent reason."""
    rows = [("POD", "FITS", "LAST NODE", "STOPPED BY")]
    for result in results:
        first_group = result.stopped_by[0] if result.stopped_by else None
        reason = "the limit" if first_group is None else ", ".join(first_group.reasons)
        if first_group is not None and first_group.nodes:
            reason += f" on {format_count(len(first_group.nodes), 'node')}"
        other_count = len(result.stopped_by) - 1
        if other_count > 0:
            reason += f", and {format_count(other_count, 'other group')} of nodes"
        rows.append((result.pod, str(result.fits), result.last or "-", reason))
    return "\n".join(format_table(rows, right_aligned=[1], indent="")) + "\n"
