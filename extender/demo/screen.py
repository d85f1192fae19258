"""How a chronicle looks: a screen that is drawn again and again, lines, and a summary in the end."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from extender.demo.chronicle import Chronicle, Fact, Use, What

_BESIDE: Final = 9
"""Lines of the screen that are there whatever is shown."""
_MOST: Final = 16
"""Lines of nodes and facts on a high terminal."""
_LEAST: Final = 4
_WAITING: Final = 6
_BAR: Final = 10
_STYLES: Final = {
    What.SAID: "bold",
    What.ARRIVED: "dim",
    What.PLACED: "green",
    What.WAITS: "yellow",
    What.PREEMPTED: "bold red",
    What.ENDED: "dim",
    What.NODE: "cyan",
}
_PASSING: Final = frozenset({What.ARRIVED, What.ENDED})
"""Left out of the screen's list, which is short; they are counted above it."""


@dataclass(slots=True)
class Screen:
    """Draws one chronicle.

    Attributes:
        chronicle: what to draw.
        title: the first line.
        footer: lines at the bottom.
        recent: the last facts worth a line.
    """

    chronicle: Chronicle
    title: str
    footer: Sequence[str] = ()
    recent: deque[Fact] = field(default_factory=lambda: deque(maxlen=_MOST))

    def hear(self, fact: Fact) -> None:
        """A fact that happened."""
        if fact.what not in _PASSING:
            self.recent.append(fact)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The screen as it stands, as high as the terminal allows."""
        waiting = list(self.chronicle.waiting.items())
        taken = _BESIDE + len(self.footer) + min(len(waiting), _WAITING)
        lines = max(_LEAST, min(_MOST, console.height - taken))
        sides = Table.grid(padding=(0, 3), expand=True)
        sides.add_column(no_wrap=True)
        sides.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        sides.add_row(self._nodes(lines), Group(*(_cut(line(fact)) for fact in list(self.recent)[-lines:])))
        parts: list[RenderableType] = [self._counts(), Text(), sides]
        if waiting:
            parts.append(_waiting(waiting))
        parts += [Text(each, style="dim", no_wrap=True, overflow="ellipsis") for each in self.footer]
        yield Panel(Group(*parts), title=self.title, title_align="left", border_style="blue")

    def _counts(self) -> Text:
        counts = self.chronicle.counts
        told = (
            (f"{self.chronicle.time():5.1f} s", "bold"),
            (f"{counts[What.ARRIVED]} arrived", ""),
            (f"{counts[What.PLACED]} placed", "green"),
            (f"{len(self.chronicle.waiting)} waiting", "yellow"),
            (f"{counts[What.PREEMPTED]} preempted", "red"),
        )
        return Text("   ").join(Text(text, style=style) for text, style in told)

    def _nodes(self, lines: int) -> Table:
        table = Table(box=None, header_style="bold", padding=(0, 1))
        for name in ("NODE", "ZONE", "CPU", "MEMORY", "PODS"):
            table.add_column(name, justify="right" if name == "PODS" else "left", no_wrap=True)
        uses = self.chronicle.uses()
        shown = uses if len(uses) < lines else sorted(uses, key=_fullness, reverse=True)[: lines - 2]
        for use in shown:
            table.add_row(use.name, use.zone, _bar(*use.cpu), _bar(*use.memory), str(use.pods))
        if len(uses) > len(shown):
            table.add_row(Text(f"{len(uses) - len(shown)} less full", style="dim"))
        return table


def line(fact: Fact) -> Text:
    """A fact as one line."""
    words = Text(f"{fact.at:5.1f}s  ", style="dim")
    words.append(f"{fact.what.value:<9}  ", style=_STYLES[fact.what])
    words.append(" ".join(part for part in (fact.who, fact.text) if part), style=_STYLES[fact.what])
    return words


def summary(chronicle: Chronicle) -> Table:
    """What came of it all: placed, preempted, waiting and why."""
    counts = chronicle.counts
    table = Table(title="\nWhat came of it", title_justify="left", title_style="bold", box=None, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    table.add_row("arrived", str(counts[What.ARRIVED]), "")
    table.add_row("placed", str(counts[What.PLACED]), _speed(sorted(chronicle.took)), style="green")
    table.add_row("preempted", str(counts[What.PREEMPTED]), "; ".join(chronicle.preempted), style="red")
    table.add_row("waiting", str(len(chronicle.waiting)), "", style="yellow")
    for who, why in sorted(chronicle.waiting.items()):
        table.add_row(f"  {who}", "", why)
    return table


def _waiting(waiting: Sequence[tuple[str, str]]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1), expand=True)
    table.add_column("WAITING", no_wrap=True)
    table.add_column("WHY", no_wrap=True, overflow="ellipsis", ratio=1)
    for who, why in waiting[:_WAITING]:
        table.add_row(Text(who, style="yellow"), why)
    if len(waiting) > _WAITING:
        table.add_row(Text(f"and {len(waiting) - _WAITING} more", style="dim"), "")
    return table


def _cut(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _speed(took: list[float]) -> str:
    """From created to bound, in the middle and at the slow end."""
    if not took:
        return ""
    middle, most = (took[int(share * (len(took) - 1))] for share in (0.5, 0.99))
    return f"bound in {middle * 1000:.0f} ms (median), {most * 1000:.0f} ms (99th percentile)"


def _fullness(use: Use) -> float:
    return max((asked / there for asked, there in (use.cpu, use.memory) if there), default=0.0)


def _bar(asked: int, there: int) -> Text:
    share = asked / there if there else 0.0
    filled = min(_BAR, round(share * _BAR))
    style = "red" if share > 0.9 else "yellow" if share > 0.7 else "green"
    bar = Text("█" * filled, style=style).append("░" * (_BAR - filled), style="bright_black")
    return bar.append(f" {share:4.0%}", style="")
