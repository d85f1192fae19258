"""Everything every plugin has to say about one pod: the long answer to "why?".

Slower than `cycle.decide`, and never cached.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.admission import held_back
from extender.decide.engine import Engine
from extender.decide.feasible import Feasibility, conclude, feasible
from extender.decide.filtering import judge
from extender.decide.nominated import beside_nominated
from extender.decide.rank import Ranking, rank
from extender.decide.rescue import Attempt, Rescue, rescue
from extender.framework.profiles import Profile
from extender.framework.verdict import Status


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """What was said about one node.

    Attributes:
        refusals: by plugin, every plugin asked on its own; plugins that accept the node are absent.
        first_failure: the status with which the node is refused when plugins run in order; None for a feasible node.
    """

    refusals: Mapping[str, Status]
    first_failure: Status | None


@dataclass(frozen=True, slots=True)
class Examination:
    """One pod examined.

    Attributes:
        pod: who asked.
        held_back: what keeps it out of the queue; then nothing else was asked.
        attempt: PreFilter's outcome, the feasible nodes and the grouped refusals.
        nodes: every node that was filtered, by name.
        ranking: the feasible nodes' scores.
        names: node names by row, for `attempt` and `ranking`.
        rescue: what PostFilter came to; None if it was not asked.
    """

    pod: PodQuery
    held_back: Status | None = None
    attempt: Feasibility | None = None
    nodes: Mapping[str, NodeVerdict] = field(default_factory=dict)
    ranking: Ranking | None = None
    names: tuple[str, ...] = ()
    rescue: Rescue | None = None

    @property
    def message(self) -> str | None:
        """The text of the pod's FailedScheduling event; None if a node is feasible or nothing was asked."""
        if self.attempt is None:
            return None
        if self.ranking is not None and self.ranking.error is not None and self.attempt.count > 1:
            return self.ranking.error.message
        if self.attempt.any:
            return None
        return self.attempt.message(self.rescue.status.message if self.rescue else "")

    @property
    def filter_message(self) -> str | None:
        """As `message`, without what PostFilter plugins added."""
        if self.attempt is None or self.attempt.any:
            return self.message
        return self.attempt.message()


def examine(pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine) -> Examination:
    """Ask every plugin of *profile* about *pod* and every node, each on its own."""
    held = held_back(pod, cluster, profile, engine)
    if held is not None:
        return Examination(pod, held_back=held)
    names = tuple(cluster.names)
    attempt = feasible(pod, cluster, profile, engine, reasons=True)
    if attempt.size == 0 or attempt.before.status is not None:
        return Examination(pod, attempt=attempt, names=names, rescue=_rescued(pod, cluster, profile, engine, attempt))
    before = attempt.before
    verdicts = judge(pod, cluster, profile, engine, before, all_of_them=True)
    verdicts = beside_nominated(verdicts, pod, cluster, profile, engine, before)
    attempt = conclude(verdicts, cluster, before, reasons=True, every=profile.check_all_filters)
    nodes = {}
    for row in np.flatnonzero(verdicts.asked).tolist():
        refusals = {name: status for name in verdicts.columns if (status := verdicts.status(name, row)) is not None}
        nodes[names[row]] = NodeVerdict(refusals, verdicts.first_failure(row))
    ranking = rank(pod, cluster, profile, engine, attempt.feasible, before) if attempt.any else None
    return Examination(pod, None, attempt, nodes, ranking, names, _rescued(pod, cluster, profile, engine, attempt))


def _rescued(pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine, attempt: Feasibility) -> Rescue | None:
    if attempt.any or attempt.error is not None or attempt.size == 0 or not profile.post_filters:
        return None
    return rescue(pod, cluster, Attempt(attempt, profile, engine, every_node=True))
