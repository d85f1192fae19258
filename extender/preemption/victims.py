"""Which pods must go so that a pod fits: all that may are taken away, then as many as possible brought back.

Worked out for many nodes at a time: the k-th pod of every node is brought back in one step. Source: E014 to E019.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, compress

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import Snapshot
from extender.preemption.budgets import Budgets, violating
from extender.preemption.importance import most_important_first
from extender.preemption.plan import Candidate
from extender.preemption.trial import Question, Trial

NO_VICTIMS = "No preemption victims found for incoming pod"
"""Why evicting pods does not help on a node without pods of lower priority. Source: E014."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What evicting pods comes to, node by node.

    Attributes:
        names: the nodes asked about.
        helps: whether evicting pods makes room there: bool, one entry a node.
        violations: how many of the victims there a disruption budget protects: int64. Source: E017.
        reasons: how many of the other nodes are refused for each reason.
        errors: what went wrong on some of them.
    """

    names: tuple[str, ...]
    helps: BoolArray
    violations: IntArray
    reasons: Counter[str]
    errors: tuple[str, ...]
    _lineup: "_Lineup"
    _gone: BoolArray

    def candidate(self, at: int) -> Candidate:
        """The candidate at position *at* of the nodes, which is helped."""
        return Candidate(self.names[at], self._lineup.on(at, self._gone), int(self.violations[at]))

    def candidates(self) -> Iterator[Candidate | None]:
        """A candidate, or None, for each of the nodes."""
        return (self.candidate(at) if helps else None for at, helps in enumerate(self.helps.tolist()))


def evictable(pod: PodQuery, cluster: Snapshot, rows: IntArray) -> PodBatch:
    """The pods on *rows* that may go for the sake of *pod*, those of one row side by side."""
    there = cluster.pods_by_row(rows)
    counts = np.fromiter(map(len, there), dtype=np.int64, count=len(there))
    batch = PodBatch(list(chain.from_iterable(there)), np.repeat(rows, counts))
    # `may_be_evicted`, asked once a shape
    return batch.only(np.flatnonzero(batch.by_shape(lambda shape: shape.priority) < pod.priority))


def select(
    question: Question,
    rows: IntArray,
    evicted: PodBatch,
    budgets: Budgets,
    last: frozenset[str] = frozenset(),
) -> Selection:
    """The pods that must go on each of *rows*, each row for itself.

    Args:
        question: who asks.
        rows: rows of the cluster, each once, int64.
        evicted: the pods on these rows that may go.
        budgets: pods they protect are spared first.
        last: uids of pods that are spared only after all others.
    """
    lineup = _Lineup(rows, evicted)
    names = tuple(map(question.cluster.names.__getitem__, rows.tolist()))
    helps = np.zeros(len(rows), dtype=np.bool_)
    reasons: Counter[str] = Counter()
    if lineup.empty:
        reasons[NO_VICTIMS] += lineup.empty
    trial = Trial(question, rows, lineup.batch)
    trial.take_away(np.arange(len(lineup.batch)))
    asked = np.flatnonzero(lineup.counts)
    answer = trial.ask(rows[asked])
    reasons += answer.reasons()
    protected = violating(budgets, lineup.batch, lineup.node)
    gone = lineup.spare(trial, asked[answer.fits], protected, last)
    helps[asked[answer.fits]] = True
    helps &= ~np.isin(rows, list(trial.faults))
    unharmed = helps & (lineup.sums(gone) == 0)
    errors = [*answer.errors(), *trial.faults.values()]
    errors += [f'expected at least one victim pod on node "{names[at]}"' for at in np.flatnonzero(unharmed).tolist()]
    violations = lineup.sums(gone & protected)
    return Selection(names, helps & ~unharmed, violations, reasons, tuple(errors), lineup, gone)


class _Lineup:
    """The pods that may go, by node and importance.

    Attributes:
        rows: rows of the cluster.
        batch: those of one row side by side, the most important first.
        node: for each pod the position of its row in `rows`, ascending, int64.
        counts: how many pods each row has.
        starts: where in `batch` those of each row begin.
        empty: how many rows have none.
    """

    __slots__ = ("batch", "counts", "empty", "node", "rows", "starts")

    def __init__(self, rows: IntArray, evicted: PodBatch) -> None:
        self.rows = rows
        position: IntArray = np.zeros(int(rows.max(initial=0)) + 1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        node = position[evicted.rows]
        order = most_important_first(evicted, node)
        self.batch, self.node = evicted.only(order), node[order]
        self.counts: IntArray = np.bincount(node, minlength=len(rows))
        self.starts: IntArray = np.cumsum(self.counts) - self.counts
        self.empty = int(np.count_nonzero(self.counts == 0))

    def spare(self, trial: Trial, nodes: IntArray, protected: BoolArray, last: frozenset[str]) -> BoolArray:
        """Bring back all pods that need not go: which of the pods must, bool, shape (number of pods,).

        Args:
            trial: all pods are gone in it.
            nodes: positions of the rows that take the pod now; on the others nothing is tried.
            protected: pods whose eviction breaks a budget; brought back before the others.
            last: uids of pods that are brought back after all others.
        """
        gone = np.zeros(len(self.batch), dtype=np.bool_)
        later = np.zeros(len(self.batch), dtype=np.bool_)
        if last:
            later[:] = [pod.uid in last for pod in self.batch.pods]
        turns = np.lexsort((~protected, later, self.node))
        for turn in range(int(self.counts[nodes].max(initial=0))):
            nodes = nodes[self.counts[nodes] > turn]
            back = turns[self.starts[nodes] + turn]
            trial.bring(back)
            refused = back[~trial.ask(self.rows[nodes]).fits]
            trial.take_away(refused)
            gone[refused] = True
        return gone

    def sums(self, which: BoolArray) -> IntArray:
        """How many of the pods that *which* says are on each row: int64."""
        return np.bincount(self.node[which], minlength=len(self.rows))

    def on(self, at: int, which: BoolArray) -> tuple[PlacedPod, ...]:
        """Those of the pods that *which* says on the row at position *at*, the most important first."""
        first = int(self.starts[at])
        there = slice(first, first + int(self.counts[at]))
        return tuple(compress(self.batch.pods[there], which[there].tolist()))
