"""Asks Score plugins about a crowd of nodes, and adds up; scores and sums are kept as far as they hold.

Source: A064, A066, A067.
"""

from collections.abc import Sequence
from typing import Any

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.decide.parts import Part, PluginScores
from extender.decide.totals import Totals
from extender.framework.columns import ColumnCache, Crowd
from extender.framework.profiles import WeightedScore
from extender.framework.runner import Runner, first_outlier

_MOST_SUMS = 16
"""Sums that are kept, each 8 bytes a node."""


class Scoring:
    """Asks Score plugins about a crowd, and adds up. One per engine, not thread-safe.

    Args:
        run: calls plugins.
        columns: kept raw scores.
    """

    __slots__ = ("_columns", "_run", "_sums")

    def __init__(self, run: Runner, columns: ColumnCache) -> None:
        self._run, self._columns = run, columns
        self._sums: dict[tuple[Part, ...], Totals] = {}

    def part(self, weighted: WeightedScore, pod: PodQuery, view: Any, notes: Any, crowd: Crowd) -> Part:
        """One plugin's scores; where raw scores are kept and the crowd is the same, the last ones as far as they hold.

        Args:
            weighted: the plugin and its weight.
            pod: asks for a node.
            view: the nodes of *crowd*.
            notes: for the plugin.
            crowd: the nodes to score.

        Raises:
            PluginError: the plugin is at fault.
        """
        plugin = weighted.plugin
        column = self._columns.score(plugin, pod, view.snapshot, notes, self._run)
        if column is None:
            raw = self._run.score(plugin, pod, view, notes)
            return Part(self._finished(weighted, pod, raw, view, notes, in_range=False), crowd)
        last: Part | None = column.derived
        alike = last is not None and last.crowd is crowd and last.scores.weight == weighted.weight
        if last is not None and alike and last.holds(column, plugin):
            return last
        scores = self._finished(weighted, pod, view.take(column.value), view, notes, in_range=column.in_range)
        part = column.derived = Part(scores, crowd, column.version)
        return part

    def total(self, parts: Sequence[Part], size: int) -> Totals:
        """The sums of weighted scores of each of *size* nodes."""
        kept = tuple([part for part in parts if part.version is not None])
        known = self._sums.pop(kept, None)
        if known is None or not known.follow(kept):
            known = Totals(kept, size)
        if kept:
            while len(self._sums) >= _MOST_SUMS:
                del self._sums[next(iter(self._sums))]
            self._sums[kept] = known
        return known if len(kept) == len(parts) else known.beside([part for part in parts if part.version is None])

    def _finished(
        self, weighted: WeightedScore, pod: PodQuery, raw: IntArray, view: Any, notes: Any, *, in_range: bool
    ) -> PluginScores:
        """The scores that *raw* ones come to, which are known to be from 0 to 100 if they are *in_range*."""
        normalized = raw
        if hasattr(weighted.plugin, "normalize"):
            normalized = self._run.normalize(weighted.plugin, pod, raw, view, notes)
            in_range = False
        weight = weighted.weight
        scores = normalized if weight == 1 else normalized * weight
        return PluginScores(raw, normalized, weight, scores, None if in_range else first_outlier(normalized))
