"""A table of the scenarios of a sweep, those with the worst outcome first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from extender.analysis.text_table import format_count, format_percent, format_table

_MAX_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class SweepRow:
    """The outcome of one scenario in numbers.

    Attributes:
        waiting: the number of pods that are left without a node, except pods that were pending before.
        blocked, lost, evicted, moved: the numbers of pods in these lists of `make_what_if_values`.
        cpu: the requested and allocatable CPU afterwards, in milli-CPU.
    """

    scenario: str
    waiting: int
    blocked: int
    lost: int
    evicted: int
    moved: int
    cpu: tuple[int, int]

    @property
    def is_harmless(self) -> bool:
        """Whether no pod is left without a node, blocked, lost or evicted."""
        return not (self.waiting or self.blocked or self.lost or self.evicted)


def make_sweep_row(values: Mapping[str, Any]) -> SweepRow:
    """Return the numbers of a line of `make_sweep_values`."""
    cpu = values["after"]["resources"].get("cpu", {"requested": 0, "allocatable": 0})
    return SweepRow(
        values["scenario"] if values["config"] is None else f"{values['scenario']} --config {values['config']}",
        sum(not pod["wasWaiting"] for pod in values["waiting"]),
        len(values["blocked"]),
        len(values["lost"]),
        len(values["evicted"]),
        len(values["moved"]),
        (cpu["requested"], cpu["allocatable"]),
    )


def format_sweep_table(rows: list[SweepRow]) -> str:
    """Return a summary and the twenty scenarios with the most pods left, then blocked, lost, evicted, moved."""
    harmless_count = sum(row.is_harmless for row in rows)
    verb = "leaves" if harmless_count == 1 else "leave"
    summary = f"{format_count(len(rows), 'scenario')}; {harmless_count} {verb} every pod on a node."
    sorted_rows = sorted(
        rows, key=lambda row: (-row.waiting, -row.blocked, -row.lost, -row.evicted, -row.moved, row.scenario)
    )
    table = [("SCENARIO", "LEFT", "BLOCKED", "LOST", "EVICTED", "MOVED", "CPU")]
    for row in sorted_rows[:_MAX_ROWS]:
        counts = (row.waiting, row.blocked, row.lost, row.evicted, row.moved)
        cells = [str(count) for count in counts]
        table.append((row.scenario, cells[0], cells[1], cells[2], cells[3], cells[4], format_percent(*row.cpu)))
    omitted_count = len(rows) - _MAX_ROWS
    more = [f"and {format_count(omitted_count, 'scenario')} more"] if omitted_count > 0 else []
    lines = format_table(table, right_aligned=range(1, 7), indent="") if rows else []
    return "\n".join([summary, "", *lines, *more]) + "\n"
