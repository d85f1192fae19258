"""Render a timeline as a live screen, as lines, and as a summary."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from extender.demo.timeline import EntryKind, NodeUsage, Timeline, TimelineEntry

_FIXED_LINES: Final = 9
"""Lines of the screen other than nodes, entries, pending pods and the footer."""
_MAX_LINES: Final = 16
"""The maximum number of lines for nodes and entries."""
_MIN_LINES: Final = 4
_MAX_PENDING_LINES: Final = 6
_BAR_WIDTH: Final = 10
_MIN_WIDE_COLUMNS: Final = 110
"""A narrower terminal shows no bars and no numbers of pods, so that recent entries have room for their pod and node."""
_STYLES: Final = {
    EntryKind.MESSAGE: "bold",
    EntryKind.CREATED: "dim",
    EntryKind.SCHEDULED: "green",
    EntryKind.PENDING: "yellow",
    EntryKind.PREEMPTED: "bold red",
    EntryKind.ENDED: "dim",
    EntryKind.NODE: "cyan",
}
_KINDS_NOT_LISTED: Final = frozenset({EntryKind.CREATED, EntryKind.ENDED})
"""Kinds of entries that the list of recent entries omits."""


@dataclass(slots=True)
class Screen:
    """Renders a timeline.

    Attributes:
        title: the title in the first line.
        footer: the lines at the bottom.
        recent_entries: the entries in the list of recent entries, oldest first.
    """

    timeline: Timeline
    title: str
    footer: Sequence[str] = ()
    recent_entries: deque[TimelineEntry] = field(default_factory=lambda: deque(maxlen=_MAX_LINES))

    def add_entry(self, entry: TimelineEntry) -> None:
        """Add an entry to the list of recent entries, unless the list omits the entry's kind."""
        if entry.kind not in _KINDS_NOT_LISTED:
            self.recent_entries.append(entry)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the screen, at most as high as the terminal."""
        pending = list(self.timeline.pending_reasons.items())
        used_lines = _FIXED_LINES + len(self.footer) + min(len(pending), _MAX_PENDING_LINES)
        line_count = max(_MIN_LINES, min(_MAX_LINES, console.height - used_lines))
        is_wide = options.max_width >= _MIN_WIDE_COLUMNS
        columns = Table.grid(padding=(0, 3 if is_wide else 1), expand=True)
        columns.add_column(no_wrap=True)
        columns.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        columns.add_row(
            self._make_node_table(line_count, is_wide=is_wide),
            Group(*(_truncate(format_entry(entry)) for entry in list(self.recent_entries)[-line_count:])),
        )
        sections: list[RenderableType] = [self._format_counts(), Text(), columns]
        if pending:
            sections.append(_make_pending_table(pending))
        sections += [Text(text, style="dim", no_wrap=True, overflow="ellipsis") for text in self.footer]
        yield Panel(Group(*sections), title=self.title, title_align="left", border_style="blue")

    def _format_counts(self) -> Text:
        counts = self.timeline.counts
        texts = (
            (f"{self.timeline.get_elapsed_seconds():5.1f} s", "bold"),
            (f"{counts[EntryKind.CREATED]} arrived", ""),
            (f"{counts[EntryKind.SCHEDULED]} placed", "green"),
            (f"{len(self.timeline.pending_reasons)} waiting", "yellow"),
            (f"{counts[EntryKind.PREEMPTED]} preempted", "red"),
        )
        return Text("   ").join(Text(text, style=style) for text, style in texts)

    def _make_node_table(self, line_count: int, *, is_wide: bool) -> Table:
        table = Table(box=None, header_style="bold", padding=(0, 1))
        for name in ("NODE", "ZONE", "CPU", "MEMORY", "PODS")[: 5 if is_wide else 4]:
            table.add_column(name, justify="right" if name == "PODS" else "left", no_wrap=True)
        usages = self.timeline.list_node_usages()
        shown_usages = usages
        if len(usages) >= line_count:
            shown_usages = sorted(usages, key=_compute_max_utilization, reverse=True)[: line_count - 2]
        for usage in shown_usages:
            if is_wide:
                amounts: Sequence[RenderableType] = _format_bar(*usage.cpu), _format_bar(*usage.memory), str(usage.pods)
            else:
                amounts = _format_percentage(*usage.cpu), _format_percentage(*usage.memory)
            table.add_row(usage.name, usage.zone, *amounts)
        if len(usages) > len(shown_usages):
            table.add_row(Text(f"{len(usages) - len(shown_usages)} less full", style="dim"))
        return table


def format_entry(entry: TimelineEntry) -> Text:
    """Format an entry as a line."""
    line = Text(f"{entry.at_seconds:5.1f}s  ", style="dim")
    line.append(f"{entry.kind.value:<9}  ", style=_STYLES[entry.kind])
    line.append(" ".join(word for word in (entry.subject, entry.text) if word), style=_STYLES[entry.kind])
    return line


def format_summary(timeline: Timeline) -> Table:
    """Format the numbers of created, scheduled, preempted and pending pods, and the reasons of pending pods."""
    counts = timeline.counts
    table = Table(title="\nSummary", title_justify="left", title_style="bold", box=None, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    table.add_row("arrived", str(counts[EntryKind.CREATED]), "")
    table.add_row(
        "placed", str(counts[EntryKind.SCHEDULED]), _format_latencies(sorted(timeline.latencies)), style="green"
    )
    table.add_row("preempted", str(counts[EntryKind.PREEMPTED]), "; ".join(timeline.preemptions), style="red")
    table.add_row("waiting", str(len(timeline.pending_reasons)), "", style="yellow")
    for pod, reason in sorted(timeline.pending_reasons.items()):
        table.add_row(f"  {pod}", "", reason)
    return table


def _make_pending_table(pending: Sequence[tuple[str, str]]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1), expand=True)
    table.add_column("WAITING", no_wrap=True)
    table.add_column("WHY", no_wrap=True, overflow="ellipsis", ratio=1)
    for pod, reason in pending[:_MAX_PENDING_LINES]:
        table.add_row(Text(pod, style="yellow"), reason)
    if len(pending) > _MAX_PENDING_LINES:
        table.add_row(Text(f"and {len(pending) - _MAX_PENDING_LINES} more", style="dim"), "")
    return table


def _truncate(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _format_latencies(latencies: list[float]) -> str:
    """Format the median and the 99th percentile of the latency from creation to binding."""
    if not latencies:
        return ""
    median, percentile_99 = (latencies[int(share * (len(latencies) - 1))] for share in (0.5, 0.99))
    return f"bound in {median * 1000:.0f} ms (median), {percentile_99 * 1000:.0f} ms (99th percentile)"


def _compute_max_utilization(usage: NodeUsage) -> float:
    return max(_compute_share(*usage.cpu), _compute_share(*usage.memory))


def _format_bar(requested: int, allocatable: int) -> Text:
    filled_width = min(_BAR_WIDTH, round(_compute_share(requested, allocatable) * _BAR_WIDTH))
    percentage = _format_percentage(requested, allocatable)
    bar = Text("█" * filled_width, style=percentage.style)
    return bar.append("░" * (_BAR_WIDTH - filled_width), style="bright_black").append(f" {percentage.plain}")


def _format_percentage(requested: int, allocatable: int) -> Text:
    share = _compute_share(requested, allocatable)
    return Text(f"{share:4.0%}", style="red" if share > 0.9 else "yellow" if share > 0.7 else "green")


def _compute_share(requested: int, allocatable: int) -> float:
    return requested / allocatable if allocatable else 0.0
