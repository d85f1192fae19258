"""One plugin's scores of the feasible nodes, and their sum over plugins; both are kept and brought up to date by row.

Kept and fresh answers are equal; a property test says so. Source: A064, A066, A067.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.framework.columns import ColumnCache, Crowd, KeptColumn
from extender.framework.profiles import WeightedScore
from extender.framework.runner import Runner, first_outlier

_MOST_SUMS = 16
"""Sums that are kept, each 8 bytes a node."""


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores of the feasible nodes, int64, in the order of `Ranking.rows`. True until the next cycle.

    Attributes:
        raw: as the plugin gave them.
        normalized: 0 to 100.
        weight: of the plugin in the profile.
        weighted: `normalized * weight`.
        outlier: the first position in `normalized` that is outside 0 to 100, None if none is.
    """

    raw: IntArray
    normalized: IntArray
    weight: int
    weighted: IntArray
    outlier: int | None = None


@dataclass(slots=True, eq=False)
class Part:
    """One plugin's part in a sum.

    Attributes:
        scores: of every node of the crowd.
        crowd: whose scores they are.
        version: of the kept column that they are worked out of; None if none is kept.
        changed: the places where they are not as they were one version ago, int64.
    """

    scores: PluginScores
    crowd: Crowd
    version: int | None = None
    changed: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def holds(self, column: KeptColumn, *, normalizes: bool) -> bool:
        """Whether this is what *column* comes to, after taking over what was written last if the plugin lets it.

        Args:
            column: as it is now.
            normalizes: the plugin does, so that one node's score may change those of others.
        """
        return self.version == column.version or (not normalizes and self._follow(column))

    def _follow(self, column: KeptColumn) -> bool:
        """False, and nothing is done, if more was written since, or a score that is out of range."""
        if self.version is None or column.version != self.version + 1 or self.scores.outlier is not None:
            return False
        rows = self.crowd.among(column.written)
        fresh: IntArray = column.value[rows]
        if first_outlier(fresh) is not None:
            return False
        places, scores = self.crowd.places(rows), self.scores
        scores.raw[places] = fresh
        if scores.weighted is not scores.raw:
            scores.weighted[places] = fresh * scores.weight
        self.version, self.changed = column.version, places
        return True


@dataclass(slots=True)
class _Sum:
    """Totals of parts at the versions they had."""

    totals: IntArray
    versions: list[int | None]

    def follow(self, parts: Sequence[Part]) -> bool:
        """Take over what changed in *parts*; False if that cannot be told, then the totals mean nothing any more."""
        written: IntArray | None = None
        for number, part in enumerate(parts):
            before = self.versions[number]
            if part.version == before:
                continue
            if before is None or part.version != before + 1:
                return False
            self.versions[number] = part.version
            if part.changed is not written:  # mostly all changed at the same places
                written = part.changed
                self._add_up(written, parts)
        return True

    def _add_up(self, places: IntArray, parts: Sequence[Part]) -> None:
        if len(places) == 1:  # after each placement
            place = places.item()
            self.totals[place] = sum(part.scores.weighted.item(place) for part in parts)
        elif len(places):
            self.totals[places] = sum(part.scores.weighted[places] for part in parts)


class Scoring:
    """Asks Score plugins about a crowd, and adds up. One per engine, not thread-safe.

    Args:
        run: calls plugins.
        columns: kept raw scores.
    """

    __slots__ = ("_columns", "_run", "_sums")

    def __init__(self, run: Runner, columns: ColumnCache) -> None:
        self._run, self._columns = run, columns
        self._sums: dict[tuple[Part, ...], _Sum] = {}

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
            return Part(self._finished(weighted, pod, self._run.score(plugin, pod, view, notes), view, notes), crowd)
        last: Part | None = column.derived
        alike = last is not None and last.crowd is crowd and last.scores.weight == weighted.weight
        if last is not None and alike and last.holds(column, normalizes=hasattr(plugin, "normalize")):
            return last
        scores = self._finished(weighted, pod, view.take(column.value), view, notes)
        part = column.derived = Part(scores, crowd, column.version)
        return part

    def total(self, parts: Sequence[Part], size: int) -> IntArray:
        """The sum of weighted scores of each of *size* nodes, int64. True until the next cycle; never write to it."""
        kept = tuple(part for part in parts if part.version is not None)
        known = self._sums.pop(kept, None)
        if known is None or not known.follow(kept):
            known = _Sum(_added(kept, np.zeros(size, dtype=np.int64)), [part.version for part in kept])
        if kept:
            while len(self._sums) >= _MOST_SUMS:
                del self._sums[next(iter(self._sums))]
            self._sums[kept] = known
        fresh = [part for part in parts if part.version is None]
        return _added(fresh, known.totals.copy()) if fresh else known.totals

    def _finished(self, weighted: WeightedScore, pod: PodQuery, raw: IntArray, view: Any, notes: Any) -> PluginScores:
        normalized = raw
        if hasattr(weighted.plugin, "normalize"):
            normalized = self._run.normalize(weighted.plugin, pod, raw, view, notes)
        weight = weighted.weight
        scores = normalized if weight == 1 else normalized * weight
        return PluginScores(raw, normalized, weight, scores, first_outlier(normalized))


def _added(parts: Sequence[Part], totals: IntArray) -> IntArray:
    """*totals* with the scores of *parts* added in place."""
    for part in parts:
        totals += part.scores.weighted
    return totals
