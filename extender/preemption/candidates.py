"""Where evicting pods makes room: looks at one node after another until enough are found. Source: E009 to E013."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.rescue import Attempt
from extender.preemption.budgets import budgets_of
from extender.preemption.plan import Candidate
from extender.preemption.trial import Question
from extender.preemption.victims import evictable, select

_AT_ONCE = 256
"""The fewest nodes that are worth looking at together."""


@dataclass(frozen=True, slots=True)
class Enough:
    """When to stop looking for nodes.

    Attributes:
        percentage: of the nodes that evicting pods may help with.
        absolute: the number of candidates that are enough if it is more than that.
    """

    percentage: int
    absolute: int

    def of(self, nodes: int) -> int:
        """How many candidates are enough where *nodes* may be helped. Source: E011."""
        return min(max(nodes * self.percentage // 100, self.absolute), nodes)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    Attributes:
        candidates: those that break no disruption budget first.
        failed: how many of the nodes looked at are no candidates.
        reasons: how many of those, for each reason.
        errors: what went wrong on some nodes.
    """

    candidates: tuple[Candidate, ...]
    failed: int
    reasons: Counter[str]
    errors: tuple[str, ...]


def search(pod: PodQuery, cluster: Snapshot, attempt: Attempt, enough: Enough) -> Found:
    """The nodes of *cluster* on which evicting pods makes room for *pod*.

    Args:
        pod: fits nowhere.
        cluster: as it is.
        attempt: how *pod* failed; says where to begin and whether to look at every node.
        enough: when to stop otherwise. At least one candidate must break no budget to stop early.
    """
    rows = np.flatnonzero(attempt.feasibility.merely_unschedulable())
    wanted = len(rows) if attempt.every_node else enough.of(len(rows))
    if len(rows) and attempt.chance is not None and not attempt.every_node:
        rows = np.roll(rows, -attempt.chance.randrange(len(rows)))
    question = Question(pod, cluster, attempt.profile, attempt.engine, attempt.feasibility.before)
    harmless: list[Candidate] = []
    harmful: list[Candidate] = []
    reasons: Counter[str] = Counter()
    errors: list[str] = []
    failed = 0
    budgets = budgets_of(cluster)
    looked_at = 0
    while looked_at < len(rows) and not (harmless and len(harmless) + len(harmful) >= wanted):
        # ever larger pieces, since each has its price: where the first nodes do not do, most others will not either
        some = rows[looked_at : looked_at + max(wanted, 3 * looked_at, _AT_ONCE)]
        looked_at += len(some)
        selection = select(question, some, evictable(pod, cluster, some), budgets)
        reasons += selection.reasons
        errors += selection.errors
        failed += int(np.count_nonzero(~selection.helps))
        for at in np.flatnonzero(selection.helps).tolist():
            kept = harmful if selection.violations[at] else harmless
            if len(kept) < wanted:
                kept.append(selection.candidate(at))
            if harmless and len(harmless) + len(harmful) >= wanted:
                break
    return Found((*harmless, *harmful), failed, reasons, tuple(errors))
