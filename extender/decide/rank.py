"""How well each feasible node suits the pod: raw, normalised and weighted scores, and their sum.

Source: A063 to A067, A100, A101.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.decide.engine import Engine
from extender.framework.normalize import MAX_SCORE
from extender.framework.points import Score
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Status


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores of the feasible nodes, int64, in the order of `Ranking.rows`.

    Attributes:
        raw: as the plugin gave them.
        normalized: 0 to 100.
        weight: of the plugin in the profile; the weighted score is `normalized * weight`.
    """

    raw: IntArray
    normalized: IntArray
    weight: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The feasible nodes with their totals.

    Attributes:
        rows: the feasible rows, int64, ascending.
        totals: the sum of weighted scores of each, int64.
        plugins: the scores by plugin, plugins that had nothing to say left out.
        error: set if scoring failed; then the rest is empty.
    """

    rows: IntArray
    totals: IntArray
    plugins: Mapping[str, PluginScores] = field(default_factory=dict)
    error: Status | None = None

    def best(self) -> IntArray:
        """The rows with the highest total, int64."""
        if not len(self.rows):
            return self.rows
        best: IntArray = self.rows[self.totals == self.totals.max()]
        return best


def rank(pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine, feasible: BoolArray) -> Ranking:
    """Score the nodes marked in *feasible* (bool, shape (number of nodes,))."""
    everywhere = bool(feasible.all())
    rows = np.arange(len(feasible), dtype=np.int64) if everywhere else np.flatnonzero(feasible)
    view = cluster.view(None if everywhere else rows)
    try:
        skipped, notes = _pre_score(pod, view, profile, engine)
        totals = np.zeros(len(rows), dtype=np.int64)
        plugins: dict[str, PluginScores] = {}
        for weighted in profile.scores:
            plugin = weighted.plugin
            if plugin.name in skipped:
                continue
            scores = _scores_of(plugin, weighted.weight, pod, view, engine, notes.get(plugin.name))
            plugins[plugin.name] = scores
            totals += scores.normalized * weighted.weight
    except PluginError as wrong:
        none = np.empty(0, dtype=np.int64)
        return Ranking(none, none, error=wrong.status)
    if not profile.scores:
        totals += 1
    return Ranking(rows, totals, plugins)


def _pre_score(pod: PodQuery, view: NodeView, profile: Profile, engine: Engine) -> tuple[set[str], dict[str, Any]]:
    skipped: set[str] = set()
    notes: dict[str, Any] = {}
    for plugin in profile.pre_scores:
        answer = engine.run.pre_score(plugin, pod, view)
        if answer.status is not None and not answer.status.ok:
            raise PluginError(plugin.name, "PreScore", answer.status.message)
        if answer.skip:
            skipped.add(plugin.name)
        else:
            notes[plugin.name] = answer.notes
    return skipped, notes


def _scores_of(plugin: Score, weight: int, pod: PodQuery, view: NodeView, engine: Engine, notes: Any) -> PluginScores:
    kept = engine.columns.score(plugin, pod, view.snapshot, notes, engine.run)
    raw = engine.run.score(plugin, pod, view, notes) if kept is None else view.take(kept)
    normalized = raw
    if getattr(plugin, "normalize", None) is not None:
        normalized = engine.run.normalize(plugin, pod, raw, view, notes)
    low, high = int(normalized.min()), int(normalized.max())
    if low < 0 or high > MAX_SCORE:
        wrong = low if low < 0 else high
        raise PluginError(
            plugin.name,
            "Score",
            f'plugin "{plugin.name}" returns an invalid score {wrong}, '
            f"it should in the range of [0, {MAX_SCORE}] after normalizing",
        )
    return PluginScores(raw, normalized, weight)
