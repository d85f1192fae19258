"""What each Filter plugin says about each node, and who refuses a node first. Source: A061."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from extender.cluster.arrays import BoolArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.prefiltering import PreFilterOutcome
from extender.framework.columns import FilterColumn
from extender.framework.points import Filter
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Code, Reason, Rejection, Status, gravest


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Refusals of every Filter plugin asked, in the order of the profile. True until the next cycle.

    Attributes:
        asked: the rows that were asked about, bool, shape (number of nodes,).
        columns: by plugin; entries outside `asked` mean nothing.
    """

    asked: BoolArray
    columns: Mapping[str, FilterColumn]

    def feasible(self) -> BoolArray:
        """The rows asked about and refused by no plugin: bool, shape (number of nodes,). Never write to it."""
        ok = self.asked
        for column in self.columns.values():
            if column.groups:
                ok = ok & ~column.refused  # another array: `asked` stays
        return ok

    def first_failures(self) -> dict[str, BoolArray]:
        """By plugin, the rows it refuses and no plugin before it does."""
        left = self.asked.copy()
        found: dict[str, BoolArray] = {}
        for name, column in self.columns.items():
            if column.groups:
                mine = left & column.refused
                if mine.any():
                    found[name] = mine
                    left &= ~mine
        return found

    def all_failures(self) -> dict[str, BoolArray]:
        """By plugin, the rows it refuses, whoever else does."""
        found = {name: self.asked & column.refused for name, column in self.columns.items() if column.groups}
        return {name: rows for name, rows in found.items() if rows.any()}

    def status(self, plugin: str, row: int) -> Status | None:
        """What *plugin* says about *row*: None if it lets it pass."""
        column = self.columns[plugin]
        if not column.refused[row]:
            return None
        reasons = sorted((r for r, rows in column.groups.items() if rows[row]), key=lambda reason: reason.order)
        return Status(gravest([r.code for r in reasons]), tuple(r.text for r in reasons), plugin)

    def first_failure(self, row: int) -> Status | None:
        """The status with which *row* is refused when plugins run in order; None for a feasible row."""
        for name, column in self.columns.items():
            if column.refused[row]:
                status = self.status(name, row)
                if status is not None and status.code is Code.ERROR:
                    return PluginError(name, "Filter", status.message).status
                return status
        return None

    def fault(self, row: int) -> Status | None:
        """The first error that a plugin has about *row*, with the place it came from; None if there is none."""
        for name in self.columns:
            status = self.status(name, row)
            if status is not None and status.code is Code.ERROR:
                return PluginError(name, "Filter", status.message).status
        return None


def judge(
    pod: PodQuery,
    cluster: Snapshot,
    profile: Profile,
    engine: Engine,
    before: PreFilterOutcome,
    *,
    all_of_them: bool = False,
) -> Verdicts:
    """Ask the Filter plugins about the nodes PreFilter left over, pods as they are (see `nominated` for those to come).

    Args:
        pod: asks for a node.
        cluster: as it is.
        profile: whose plugins are asked.
        engine: asks them.
        before: the round before; its status is None.
        all_of_them: ask every plugin about every node, also nodes that another plugin refused already.
    """
    size = len(cluster)
    if before.nodes is None:
        asked = _everybody(size)
    else:
        asked = np.zeros(size, dtype=np.bool_)
        asked[[row for name in before.nodes if (row := cluster.row(name)) is not None]] = True
    columns: dict[str, FilterColumn] = {}
    left = asked
    for plugin in profile.filters:
        if plugin.name in before.skipped:
            continue
        column = _column(plugin, pod, cluster, engine, before.notes.get(plugin.name), left)
        columns[plugin.name] = column
        if column.groups and not all_of_them:
            left = left & ~column.refused
            if not left.any():
                break
    return Verdicts(asked, columns)


@lru_cache(maxsize=8)
def _everybody(size: int) -> BoolArray:
    """All rows; nobody can write to it."""
    rows = np.ones(size, dtype=np.bool_)
    rows.flags.writeable = False
    return rows


def _column(
    plugin: Filter, pod: PodQuery, cluster: Snapshot, engine: Engine, notes: Any, left: BoolArray
) -> FilterColumn:
    """What *plugin* says.

    Kept answers cover all rows, others are asked about the rows that are *left* if those are few.
    """
    try:
        if getattr(plugin, "filter_key", None) is None:
            rows = np.flatnonzero(left)
            if len(rows) * 2 < len(left):
                column = FilterColumn(np.zeros(len(left), dtype=np.bool_))
                column.write(rows, engine.run.filter(plugin, pod, cluster.view(rows), notes))
                return column
        return engine.columns.filter(plugin, pod, cluster, notes, engine.run)
    except PluginError as wrong:
        return failed(wrong, len(left))


def failed(wrong: PluginError, size: int) -> FilterColumn:
    """The column of a plugin that could not answer: every node refused with its error."""
    column = FilterColumn(np.zeros(size, dtype=np.bool_))
    column.write(slice(None), (Rejection(np.ones(size, dtype=np.bool_), Reason(wrong.detail, Code.ERROR)),))
    return column
