"""How many pods that match a selector are on each node and in each topology domain, kept as pods come and go.

Counts are made the first time somebody asks for a matcher; from then on adding or removing a pod costs an increment
for each
matcher its class of labels meets, whatever the number of pods in the cluster. Source: B054, B055, B071.
"""

import numpy as np

from extender.basics.cow import CowDict
from extender.basics.intern import Interner
from extender.cluster.nodes import NodeTable
from extender.cluster.rowcounts import RowCounts
from extender.cluster.selecting import PodMatcher
from extender.cluster.vocabulary import PodClass

_MOST = 2048
"""Matchers kept at the most; the half that was not asked for longest is dropped when there are more."""

_Tally = dict[int, list[int]]
"""Row to [pods, terminating pods] of one class."""


def _copied(tally: _Tally) -> _Tally:
    return {row: list(pair) for row, pair in tally.items()}


class CountTable:
    """The counts of every matcher asked for, and the classes of all pods by node."""

    __slots__ = ("_classes", "_counts", "_epoch", "_matches", "_tallies", "_tick", "namespace_labels")

    def __init__(self, classes: Interner[PodClass]) -> None:
        self._epoch = object()
        self._classes = classes
        self._counts: dict[PodMatcher, RowCounts] = {}
        self._matches: dict[int, list[PodMatcher]] = {}
        self._tallies: CowDict[int, _Tally] = CowDict(_copied)
        self._tick = 0
        self.namespace_labels: dict[str, dict[str, str]] = {}

    def fork(self) -> "CountTable":
        """The same counts, to be written without touching these."""
        child = CountTable(self._classes)
        child._counts = dict(self._counts)
        child._matches = {number: list(found) for number, found in self._matches.items()}
        child._tallies = self._tallies.fork()
        child._tick = self._tick
        child.namespace_labels = self.namespace_labels
        return child

    def add(self, number: int, row: int, nodes: NodeTable, *, terminating: bool, sign: int = 1) -> None:
        """A pod of class *number* comes to *row* (*sign* 1) or leaves it (-1)."""
        tally = self._tallies.writable(number, dict)
        pair = tally.setdefault(row, [0, 0])
        pair[0] += sign
        pair[1] += sign * terminating
        if pair[0] == 0:
            del tally[row]
            if not tally:
                self._tallies.drop(number)
        matches = self._matches.get(number)
        if matches is None:
            matches = self._matches[number] = [m for m in self._counts if self._meets(m, number)]
        for matcher in matches:
            if not (terminating and matcher.live_only):
                self._writable(matcher).bump(row, sign, nodes)

    def _meets(self, matcher: PodMatcher, number: int) -> bool:
        pod_class = self._classes[number]
        return matcher.matches(
            pod_class.namespace, dict(pod_class.labels), self.namespace_labels.get(pod_class.namespace)
        )

    def _writable(self, matcher: PodMatcher) -> RowCounts:
        counts = self._counts[matcher]
        if counts.epoch is not self._epoch:
            counts = self._counts[matcher] = counts.forked(self._epoch)
        return counts

    def of(self, matcher: PodMatcher, nodes: NodeTable) -> RowCounts:
        """The counts of *matcher*, counted now if nobody asked before. Read them only."""
        counts = self._counts.get(matcher)
        if counts is None:
            if len(self._counts) >= _MOST:
                self._drop_oldest()
            counts = self._counts[matcher] = self._counted(matcher, nodes)
        self._tick += 1
        counts.stamp = self._tick
        return counts

    def known(self) -> list[tuple[PodMatcher, RowCounts]]:
        """Every matcher that is counted, with its counts."""
        return list(self._counts.items())

    def _counted(self, matcher: PodMatcher, nodes: NodeTable) -> RowCounts:
        rows = np.zeros(nodes.columns.capacity, dtype=np.int64)
        total = 0
        for number, tally in self._tallies.items():
            if not self._meets(matcher, number):
                continue
            for row, (pods, terminating) in tally.items():
                counted = pods - terminating if matcher.live_only else pods
                rows[row] += counted
                total += counted
            if number in self._matches:
                self._matches[number].append(matcher)
        # a class without pods now would never learn of the new matcher: it looks again when its next pod comes
        for number in [number for number in self._matches if number not in self._tallies]:
            del self._matches[number]
        return RowCounts(rows, self._epoch, total=total)

    def _drop_oldest(self) -> None:
        by_age = sorted(self._counts, key=lambda matcher: self._counts[matcher].stamp)
        for matcher in by_age[: len(by_age) // 2]:
            del self._counts[matcher]
        self._matches = {}

    def labels_changed(self, keys: set[str]) -> None:
        """Nodes came, went, moved or were relabelled: domains of topology *keys* are summed anew when asked for."""
        for matcher, counts in self._counts.items():
            # counts of another epoch are shared with older views, which may yet sum them by the labels
            # of their own time
            if counts.epoch is not self._epoch or keys & counts.domains.keys():
                self._counts[matcher] = counts.without_domains(keys)

    def namespaces_changed(self, labels: dict[str, dict[str, str]]) -> None:
        """Namespace labels are now *labels*: what reads them is counted anew when asked for."""
        self.namespace_labels = labels
        kept = {m: counts for m, counts in self._counts.items() if not m.reads_namespace_labels}
        if len(kept) != len(self._counts):
            self._counts = kept
            self._matches = {}
