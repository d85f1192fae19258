"""How well each feasible node suits the pod: raw, normalised and weighted scores, and their sum.

Source: A063 to A067, A100, A101.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.decide.engine import Engine
from extender.decide.foregone import before_score
from extender.decide.parts import Part, PluginScores
from extender.decide.prefiltering import PreFilterOutcome
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError, out_of_range
from extender.framework.verdict import Status


@dataclass(frozen=True, slots=True)
class Ranking:
    """The feasible nodes with their totals. True until the next cycle; nobody writes to it.

    Attributes:
        rows: the feasible rows, int64, ascending.
        totals: the sum of weighted scores of each, int64.
        plugins: the scores by plugin, plugins that had nothing to say left out.
        error: set if scoring failed; then the rest is empty.
        leaders: the places in `rows` with the highest total, ascending; None where they were not counted.
    """

    rows: IntArray
    totals: IntArray
    plugins: Mapping[str, PluginScores] = field(default_factory=dict)
    error: Status | None = None
    leaders: Sequence[int] | None = None

    def best(self) -> IntArray:
        """The rows with the highest total, int64, ascending."""
        if not len(self.rows):
            return self.rows
        if self.leaders is not None:
            return self.rows[self.leaders]
        top = self.totals[self.totals.argmax()]
        best: IntArray = (self.totals == top).nonzero()[0]
        everybody = self.rows.item(-1) == len(self.rows) - 1  # as rows ascend; places are rows then
        return best if everybody else self.rows[best]


def rank(
    pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine, feasible: BoolArray, before: PreFilterOutcome
) -> Ranking:
    """Score feasible nodes.

    Args:
        pod: asks for a node.
        cluster: as it is.
        profile: whose plugins are asked.
        engine: asks them.
        feasible: the nodes to score, bool, shape (number of nodes,).
        before: PreFilter's outcome. Its notes go to plugins that score and have no PreScore.
    """
    crowd = engine.columns.crowd(feasible)
    rows, view = crowd.rows, crowd.view(cluster)
    if not profile.scores:  # then PreScore is not asked either
        return Ranking(rows, np.ones(len(rows), dtype=np.int64))
    parts: dict[str, Part] = {}
    point, began = "PreScore", engine.run.begin()
    try:
        skipped, notes = _pre_score(pod, view, profile, engine)
        engine.run.passed(profile.scheduler_name, point, None, began)
        point, began = "Score", engine.run.begin()
        for weighted in profile.scores:
            name = weighted.plugin.name
            if name not in skipped:
                source = notes if hasattr(weighted.plugin, "pre_score") else before.notes
                parts[name] = engine.scoring.part(weighted, pod, view, source.get(name), crowd)
        plugins = {name: part.scores for name, part in parts.items()}
        _check_range(profile, plugins)
    except PluginError as wrong:
        engine.run.passed(profile.scheduler_name, point, wrong.status, began)
        none = np.empty(0, dtype=np.int64)
        return Ranking(none, none, error=wrong.status)
    engine.run.passed(profile.scheduler_name, point, None, began)
    totals = engine.scoring.total(tuple(parts.values()), len(rows))
    return Ranking(rows, totals.sums, plugins, leaders=totals.leaders)


def _check_range(profile: Profile, plugins: Mapping[str, PluginScores]) -> None:
    """Final scores are looked at when all are there, node by node. Source: A066.

    Raises:
        PluginError: of the first node with a score that is out of range, its first such plugin.
    """
    wrong = [(scores.outlier, name) for name, scores in plugins.items() if scores.outlier is not None]
    if wrong:
        place, culprit = min(wrong, key=lambda each: each[0])
        plugin = next(weighted.plugin for weighted in profile.scores if weighted.plugin.name == culprit)
        raise out_of_range(plugin, int(plugins[culprit].normalized[place]))


def _pre_score(pod: PodQuery, view: NodeView, profile: Profile, engine: Engine) -> tuple[set[str], dict[str, Any]]:
    known, run = before_score(pod, profile.pre_scores, keep=engine.columns.enabled), engine.run
    notes, skipped = dict(known.notes), set(known.skipped)
    for plugin in known.asked:
        answer = run.pre_score(plugin, pod, view)
        known.learn(run, plugin, pod, "PreScore", answer)
        if answer.status is not None and not answer.status.ok:
            raise PluginError(plugin.name, "PreScore", answer.status.message)
        if answer.skip:
            skipped.add(plugin.name)
        else:
            notes[plugin.name] = answer.notes
    known.over()
    return skipped, notes
