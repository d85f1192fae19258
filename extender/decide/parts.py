"""One plugin's scores of a crowd of nodes, kept from one pod to the next like it and brought up to date by row.

Kept and fresh answers are equal; a property test says so. Source: A066.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extender.cluster.arrays import IntArray
from extender.framework.columns import Crowd, KeptColumn


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

    def holds(self, column: KeptColumn, plugin: Any) -> bool:
        """Whether this is what *column* comes to, after taking over what was written last if *plugin* lets it.

        It does not if it normalizes: one node's score may then change those of others.
        """
        return self.version == column.version or (not hasattr(plugin, "normalize") and self._follow(column))

    def _follow(self, column: KeptColumn) -> bool:
        """False, and nothing is done, if more was written since, or ever a score that is out of range."""
        if self.version is None or column.version != self.version + 1 or not column.in_range:
            return False
        rows = self.crowd.among(column.written)
        fresh: IntArray = column.value[rows]
        places, scores = self.crowd.places(rows), self.scores
        scores.raw[places] = fresh
        if scores.weighted is not scores.raw:
            scores.weighted[places] = fresh * scores.weight
        self.version, self.changed = column.version, places
        return True
