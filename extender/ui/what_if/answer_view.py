"""The contents of the page What if below the form: what the changes do to the pods, and the totals."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from extender.analysis.text_table import format_amounts, format_percent
from extender.answers.planning import ScenarioOutcome
from extender.planning.what_if_report import format_summary, make_what_if_values
from extender.ui.cluster_document import sort_resources
from extender.ui.scheduler_pages import LiveCell

MAX_ROWS: Final = 100
"""The number of pods of a table on the page. The document has all."""


@dataclass(frozen=True, slots=True)
class PodTable:
    """A table of the first pods. The title counts all of them, and `omitted` those that are not in `rows`.

    The page folds a table of pods for which nothing changes, so that the changes are in view.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[LiveCell, ...], ...]
    omitted: int
    is_folded: bool = False


@dataclass(frozen=True, slots=True)
class TotalsRow:
    """A line of the totals: texts before and after, and whether they differ."""

    name: str
    before: str
    after: str

    @property
    def differs(self) -> bool:
        """Whether the changes have an effect on it."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class AnswerView:
    """The contents of the answer.

    Attributes:
        summary: one sentence.
        is_good: whether no pod is left without a node, lost or blocked.
        tables: the tables of pods, the problems first, without empty ones.
        totals: the totals before and after.
    """

    summary: str
    is_good: bool
    tables: tuple[PodTable, ...]
    totals: tuple[TotalsRow, ...]


def make_answer_view(outcome: ScenarioOutcome, pods: Container[str], nodes: Container[str]) -> AnswerView:
    """Return the contents, made from the values that `extender what-if -o json` prints.

    *pods* and *nodes* have pages. Other pods, which the scenario adds, are not links.
    """
    view = _make_view(outcome)
    known = {"pods": pods, "nodes": nodes}
    tables = tuple(
        replace(
            table,
            rows=tuple(
                tuple(LiveCell(cell.text) if cell.kind and cell.text not in known[cell.kind] else cell for cell in row)
                for row in table.rows
            ),
        )
        for table in view.tables
    )
    return replace(view, tables=tables)


def _make_view(outcome: ScenarioOutcome) -> AnswerView:
    values = make_what_if_values(outcome)
    waiting = [pod for pod in values["waiting"] if not pod["wasWaiting"]]
    still_waiting = [pod for pod in values["waiting"] if pod["wasWaiting"]]
    moved = [pod for pod in values["moved"] if pod["from"]]
    placed = [pod for pod in values["moved"] if not pod["from"]]
    tables = (
        _make_table("Left without a node", ("Pod", "Was on", "Why"), map(_make_waiting, waiting)),
        _make_table(
            "Not evicted, because a budget does not allow it",
            ("Pod", "Node", "Budgets"),
            ((_pod(pod), _node(pod["node"]), LiveCell(", ".join(pod["budgets"]))) for pod in values["blocked"]),
        ),
        _make_table(
            "Lost, because no controller creates a new pod",
            ("Pod", "Was on"),
            ((_pod(pod), _node(pod["node"])) for pod in values["lost"]),
        ),
        _make_table(
            "Evicted by preemption",
            ("Pod", "Was on", "By"),
            ((_pod(pod), _node(pod["node"]), LiveCell(pod["by"], "pods")) for pod in values["evicted"]),
        ),
        _make_table(
            "Violated budgets",
            ("Budget", "Pods"),
            ((LiveCell(entry["budget"]), LiveCell(", ".join(entry["pods"]))) for entry in values["violatedBudgets"]),
        ),
        _make_table(
            "Moves", ("Pod", "From", "To"), ((_pod(pod), _node(pod["from"]), _node(pod["to"])) for pod in moved)
        ),
        _make_table("Placed", ("Pod", "On"), ((_pod(pod), _node(pod["to"])) for pod in placed)),
        _make_table("Removed by scaling", ("Pod",), ((LiveCell(key, "pods"),) for key in values["removed"])),
        _make_table(
            "Waiting before and after",
            ("Pod", "Why"),
            ((pod, why) for pod, _, why in map(_make_waiting, still_waiting)),
            is_folded=True,
        ),
    )
    return AnswerView(
        format_summary(outcome),
        not (waiting or values["blocked"] or values["lost"]),
        tuple(table for table in tables if table.rows),
        tuple(_make_totals(values["before"], values["after"])),
    )


def _make_table(
    title: str, columns: tuple[str, ...], rows: Iterable[tuple[LiveCell, ...]], *, is_folded: bool = False
) -> PodTable:
    all_rows = tuple(rows)
    omitted_count = max(len(all_rows) - MAX_ROWS, 0)
    return PodTable(f"{title} ({len(all_rows)})", columns, all_rows[:MAX_ROWS], omitted_count, is_folded)


def _pod(values: Mapping[str, Any]) -> LiveCell:
    return LiveCell(values["pod"], "pods")


def _node(name: str | None) -> LiveCell:
    return LiveCell(name or "", "nodes" if name else "")


def _make_waiting(values: Mapping[str, Any]) -> tuple[LiveCell, ...]:
    text = ", ".join(values["reasons"])
    if values["preemption"]:
        victims: Sequence[str] = values["preemption"]["victims"]
        text += f"; would evict {', '.join(victims)} on {values['preemption']['node']}, with preemption allowed"
    return _pod(values), _node(values["from"]), LiveCell(text)


def _make_totals(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[TotalsRow]:
    yield TotalsRow("nodes", str(before["nodes"]), str(after["nodes"]))
    yield TotalsRow("waiting pods", str(before["waiting"]), str(after["waiting"]))
    for name in sort_resources({**before["resources"], **after["resources"]}):
        yield TotalsRow(name, *(_format_use(name, totals["resources"].get(name)) for totals in (before, after)))


def _format_use(resource: str, usage: Mapping[str, int] | None) -> str:
    if usage is None:
        return "none"
    requested, allocatable = usage["requested"], usage["allocatable"]
    amounts = " of ".join(format_amounts(resource, requested, allocatable))
    return f"{amounts} ({format_percent(requested, allocatable)})"
