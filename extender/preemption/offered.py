"""Victims that somebody else chose: checked by our filters, spared where they need not go, completed, or declined.

The core of the `preempt` verb. Source: E023 to E027, F044, F045.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.prefiltering import pre_filter
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status
from extender.preemption.budgets import Budgets, budgets_of, violating
from extender.preemption.eligibility import may_be_evicted
from extender.preemption.importance import most_important_first
from extender.preemption.plan import Candidate
from extender.preemption.trial import Question, Trial
from extender.preemption.victims import evictable, select


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of an offer.

    Attributes:
        candidates: the nodes on which evicting pods helps, by name, with the victims that must go.
        unknown: by the name of such a node, uids that were offered for it and are not known to be there: kept as
            they are, since nothing can be said about them.
        error: why nothing could be said; then there are no candidates.
    """

    candidates: Mapping[str, Candidate]
    unknown: Mapping[str, tuple[str, ...]]
    error: Status | None = None


def settle(
    pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine, offers: Mapping[str, Sequence[str]]
) -> Settled:
    """Each offer settled by the Filter plugins of *profile*.

    An offer is trimmed: victims that need not go are spared, those a disruption budget protects first. If the offered
    victims are not enough, other pods of lower priority on that node are added, as few as possible. Where that is not
    enough either, and on nodes that are unknown, the offer is declined. An offer of which nothing would have to go
    stands as it is: whoever made it has reasons that these plugins do not know.

    Args:
        pod: wants room.
        cluster: as it is.
        profile: whose plugins are asked.
        engine: asks them.
        offers: uids of the victims by node name.
    """
    before = pre_filter(pod, cluster, profile, engine)
    if before.status is not None and not before.status.rejected:
        return Settled({}, {}, before.status)
    if before.status is not None and before.status.code is not Code.UNSCHEDULABLE:
        return Settled({}, {})
    names = [name for name in offers if cluster.row(name) is not None]
    if before.nodes is not None:
        names = [name for name in names if name in before.nodes]
    unknown = {name: strangers for name in names if (strangers := _strangers(cluster, name, offers[name]))}
    question = Question(pod, cluster, profile, engine, before)
    budgets = budgets_of(cluster)
    found: dict[str, Candidate] = {}
    rows = cluster.rows(names)
    offered = [_known(pod, cluster, name, offers[name]) for name in names]
    if names:
        fits = _fits(question, rows, offered)
        enough = np.flatnonzero(fits)
        trimmed = select(question, rows[enough], _batch(rows[enough], [offered[at] for at in enough.tolist()]), budgets)
        for at, candidate in zip(enough.tolist(), trimmed.candidates(), strict=True):
            if candidate is not None or offered[at]:
                found[names[at]] = candidate or Candidate(names[at], tuple(offered[at]), 0)
            elif names[at] in unknown:
                found[names[at]] = Candidate(names[at], (), 0)
        short = np.flatnonzero(~fits)
        last = frozenset(other.uid for others in offered for other in others)
        completed = select(question, rows[short], evictable(pod, cluster, rows[short]), budgets, last)
        for at, candidate in zip(short.tolist(), completed.candidates(), strict=True):
            if candidate is not None:
                found[names[at]] = candidate
    ordered = {name: _recounted(found[name], budgets) for name in names if name in found}
    return Settled(ordered, {name: uids for name, uids in unknown.items() if name in ordered})


def _known(pod: PodQuery, cluster: Snapshot, name: str, uids: Sequence[str]) -> list[PlacedPod]:
    """The pods of these uids on node *name* that may go for the sake of *pod*, each once."""
    there = cluster.pods_on(name)
    others = (there[uid] for uid in dict.fromkeys(uids) if uid in there)
    return [other for other in others if may_be_evicted(other, pod)]


def _strangers(cluster: Snapshot, name: str, uids: Sequence[str]) -> tuple[str, ...]:
    there = cluster.pods_on(name)
    return tuple(uid for uid in dict.fromkeys(uids) if uid not in there)


def _fits(question: Question, rows: IntArray, offered: Sequence[Sequence[PlacedPod]]) -> BoolArray:
    """Which of *rows* take the pod without the pods offered for them."""
    batch = _batch(rows, offered)
    trial = Trial(question, rows, batch)
    trial.take_away(np.arange(len(batch)))
    return trial.ask(rows).fits


def _batch(rows: IntArray, offered: Sequence[Sequence[PlacedPod]]) -> PodBatch:
    return PodBatch([pod for each in offered for pod in each], np.repeat(rows, [len(each) for each in offered]))


def _recounted(candidate: Candidate, budgets: Budgets) -> Candidate:
    """*candidate* with its victims in order and the budgets broken by them alone."""
    together = np.zeros(len(candidate.victims), dtype=np.int64)
    batch = PodBatch(candidate.victims, together)
    ordered = batch.only(most_important_first(batch, together))
    broken = violating(budgets, ordered, together)
    return Candidate(candidate.node, tuple(ordered.pods), int(np.count_nonzero(broken)))
