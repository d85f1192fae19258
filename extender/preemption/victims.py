"""Which pods must go so that a pod fits: all that may are taken away, then as many as possible brought back.

Worked out for many nodes at a time: the k-th pod of every node is brought back in one step. Source: E014 to E019.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import Snapshot
from extender.preemption.budgets import Budget, violating
from extender.preemption.importance import most_important_first
from extender.preemption.plan import Candidate
from extender.preemption.trial import Question, Trial

NO_VICTIMS = "No preemption victims found for incoming pod"
"""Why evicting pods does not help on a node without pods of lower priority. Source: E014."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What evicting pods comes to, node by node.

    Attributes:
        candidates: a candidate, or None, for each row asked about.
        reasons: how many of the other nodes are refused for each reason.
        errors: what went wrong on some of them.
    """

    candidates: tuple[Candidate | None, ...]
    reasons: Counter[str] = field(default_factory=Counter)
    errors: tuple[str, ...] = ()


def evictable(pod: PodQuery, cluster: Snapshot, rows: IntArray) -> list[list[PlacedPod]]:
    """The pods on each of *rows* that may go for the sake of *pod*."""
    names, pods_on, below = cluster.names, cluster.pods_on, pod.priority
    # `may_be_evicted` spelled out: this is asked about every pod of the cluster
    return [[o for o in pods_on(names[row]).values() if o.shape.priority < below] for row in rows.tolist()]


def select(
    question: Question,
    rows: IntArray,
    evicted: Sequence[Sequence[PlacedPod]],
    budgets: tuple[Budget, ...],
    last: frozenset[str] = frozenset(),
) -> Selection:
    """The pods that must go on each of *rows*, each row for itself.

    Args:
        question: who asks.
        rows: rows of the cluster, each once, int64.
        evicted: for each row, the pods that may go.
        budgets: pods they protect are spared first.
        last: uids of pods that are spared only after all others.
    """
    lineup = _Lineup(rows, evicted)
    reasons: Counter[str] = Counter()
    if lineup.empty:
        reasons[NO_VICTIMS] += lineup.empty
    if not lineup.pods:
        return Selection((None,) * len(rows), reasons)
    trial = Trial(question, rows, lineup.pods, rows[lineup.node])
    trial.take_away(np.arange(len(lineup.pods)))
    asked = np.flatnonzero(lineup.counts)
    answer = trial.ask(rows[asked])
    reasons += answer.reasons()
    protected = violating(budgets, trial.batch, lineup.node)
    gone = lineup.spare(trial, asked[answer.fits], protected, last)
    fits = np.zeros(len(rows), dtype=np.bool_)
    fits[asked[answer.fits]] = True
    candidates: list[Candidate | None] = []
    errors = [*answer.errors(), *trial.faults.values()]
    broken = np.bincount(lineup.node, weights=gone & protected, minlength=len(rows)).astype(np.int64)
    victims = lineup.by_node(gone)
    for at, row in enumerate(rows.tolist()):
        if not fits[at] or row in trial.faults:
            candidates.append(None)
            continue
        name = question.cluster.names[row]
        if not victims[at]:
            errors.append(f'expected at least one victim pod on node "{name}"')
            candidates.append(None)
        else:
            candidates.append(Candidate(name, victims[at], int(broken[at])))
    return Selection(tuple(candidates), reasons, tuple(errors))


class _Lineup:
    """The pods that may go, by node and importance.

    Attributes:
        rows: rows of the cluster.
        pods: those of one row side by side, the most important first.
        node: for each pod the position of its row in `rows`, ascending, int64.
        counts: how many pods each row has.
        empty: how many rows have none.
    """

    __slots__ = ("counts", "empty", "node", "pods", "rows")

    def __init__(self, rows: IntArray, evicted: Sequence[Sequence[PlacedPod]]) -> None:
        self.rows = rows
        self.counts: IntArray = np.fromiter(map(len, evicted), dtype=np.int64, count=len(evicted))
        self.empty = int(np.count_nonzero(self.counts == 0))
        self.node: IntArray = np.repeat(np.arange(len(rows)), self.counts)
        pods = [pod for each in evicted for pod in each]
        self.pods = [pods[index] for index in most_important_first(pods, self.node).tolist()]

    def spare(self, trial: Trial, nodes: IntArray, protected: BoolArray, last: frozenset[str]) -> BoolArray:
        """Bring back all pods that need not go: which of the pods must, bool, shape (number of pods,).

        Args:
            trial: all pods are gone in it.
            nodes: positions of the rows that take the pod now; on the others nothing is tried.
            protected: pods whose eviction breaks a budget; brought back before the others.
            last: uids of pods that are brought back after all others.
        """
        gone = np.zeros(len(self.pods), dtype=np.bool_)
        later = np.zeros(len(self.pods), dtype=np.bool_)
        if last:
            later[:] = [pod.uid in last for pod in self.pods]
        turns = np.lexsort((~protected, later, self.node))
        starts = np.cumsum(self.counts) - self.counts
        for turn in range(int(self.counts[nodes].max(initial=0))):
            nodes = nodes[self.counts[nodes] > turn]
            back = turns[starts[nodes] + turn]
            trial.bring(back)
            refused = back[~trial.ask(self.rows[nodes]).fits]
            trial.take_away(refused)
            gone[refused] = True
        return gone

    def by_node(self, which: BoolArray) -> list[tuple[PlacedPod, ...]]:
        """Those of the pods that *which* says, for each row, the most important first."""
        found: list[list[PlacedPod]] = [[] for _ in self.counts]
        for index, at in zip(np.flatnonzero(which).tolist(), self.node[which].tolist(), strict=True):
            found[at].append(self.pods[index])
        return [tuple(each) for each in found]
