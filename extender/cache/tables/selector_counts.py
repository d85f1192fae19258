"""Count the assigned pods that match a selector, by node and topology domain.

The first use of a matcher counts all pods. From then on, adding or removing a pod increments the counts of the
matchers that match its namespace and labels, at a cost independent of the number of pods in the cluster.

Source: kube-scheduler/framework/types.go, AffinityTerm.Matches;
pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState;
pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector (1.36).
"""

import numpy as np

from extender.basics.cow import CowDict
from extender.basics.intern import Interner
from extender.cache.tables.node_counts import NodeCounts
from extender.cache.tables.node_table import NodeTable
from extender.cache.tables.pod_selectors import PodMatcher
from extender.cache.tables.symbols import PodLabels

_MAX_MATCHERS = 2048
"""When there are more matchers, the least recently used half is evicted."""

_PodCountsByRow = dict[int, list[int]]
"""[pods, terminating pods] with the same namespace and labels, by node row."""


def _copy_counts(counts_by_row: _PodCountsByRow) -> _PodCountsByRow:
    return {row: list(pod_counts) for row, pod_counts in counts_by_row.items()}


class SelectorCountTable:
    """The counts of each matcher in use, and the pods with the same namespace and labels, by node."""

    __slots__ = (
        "_counts",
        "_matchers_by_pod_labels_id",
        "_owner_token",
        "_pod_labels",
        "_row_counts_by_pod_labels_id",
        "_use_counter",
        "namespace_labels",
    )

    def __init__(self, pod_labels: Interner[PodLabels]) -> None:
        self._owner_token = object()
        self._pod_labels = pod_labels
        self._counts: dict[PodMatcher, NodeCounts] = {}
        self._matchers_by_pod_labels_id: dict[int, list[PodMatcher]] = {}
        self._row_counts_by_pod_labels_id: CowDict[int, _PodCountsByRow] = CowDict(_copy_counts)
        self._use_counter = 0
        self.namespace_labels: dict[str, dict[str, str]] = {}

    def fork(self) -> "SelectorCountTable":
        """Return a copy-on-write copy of the table."""
        child = SelectorCountTable(self._pod_labels)
        child._counts = dict(self._counts)
        child._matchers_by_pod_labels_id = {
            pod_labels_id: list(matchers) for pod_labels_id, matchers in self._matchers_by_pod_labels_id.items()
        }
        child._row_counts_by_pod_labels_id = self._row_counts_by_pod_labels_id.fork()
        child._use_counter = self._use_counter
        child.namespace_labels = self.namespace_labels
        return child

    def count(self, pod_labels_id: int, row: int, nodes: NodeTable, *, terminating: bool, sign: int = 1) -> None:
        """Count a pod with the labels *pod_labels_id* on *row* (*sign* 1) or stop counting it (-1)."""
        counts_by_row = self._row_counts_by_pod_labels_id.get_writable(pod_labels_id, dict)
        pod_counts = counts_by_row.setdefault(row, [0, 0])
        pod_counts[0] += sign
        pod_counts[1] += sign * terminating
        if pod_counts[0] == 0:
            del counts_by_row[row]
            if not counts_by_row:
                self._row_counts_by_pod_labels_id.remove(pod_labels_id)
        matchers = self._matchers_by_pod_labels_id.get(pod_labels_id)
        if matchers is None:
            matchers = [matcher for matcher in self._counts if self._matches_labels(matcher, pod_labels_id)]
            self._matchers_by_pod_labels_id[pod_labels_id] = matchers
        for matcher in matchers:
            if not (terminating and matcher.live_only):
                self._get_writable_counts(matcher).add(row, sign, nodes)

    def _matches_labels(self, matcher: PodMatcher, pod_labels_id: int) -> bool:
        pod_labels = self._pod_labels[pod_labels_id]
        return matcher.matches(
            pod_labels.namespace, dict(pod_labels.labels), self.namespace_labels.get(pod_labels.namespace)
        )

    def _get_writable_counts(self, matcher: PodMatcher) -> NodeCounts:
        counts = self._counts[matcher]
        if counts.owner is not self._owner_token:
            counts = self._counts[matcher] = counts.fork(self._owner_token)
        return counts

    def get(self, matcher: PodMatcher, nodes: NodeTable) -> NodeCounts:
        """Return the counts of *matcher*. The first call counts the pods. Do not modify the result."""
        counts = self._counts.get(matcher)
        if counts is None:
            if len(self._counts) >= _MAX_MATCHERS:
                self._evict()
            counts = self._counts[matcher] = self._count_matcher(matcher, nodes)
        self._use_counter += 1
        counts.last_used = self._use_counter
        return counts

    def items(self) -> list[tuple[PodMatcher, NodeCounts]]:
        """Return all matchers with their counts."""
        return list(self._counts.items())

    def _count_matcher(self, matcher: PodMatcher, nodes: NodeTable) -> NodeCounts:
        row_counts = np.zeros(nodes.columns.capacity, dtype=np.int64)
        total = 0
        for pod_labels_id, counts_by_row in self._row_counts_by_pod_labels_id.items():
            if not self._matches_labels(matcher, pod_labels_id):
                continue
            for row, (pod_count, terminating_count) in counts_by_row.items():
                count = pod_count - terminating_count if matcher.live_only else pod_count
                row_counts[row] += count
                total += count
            if pod_labels_id in self._matchers_by_pod_labels_id:
                self._matchers_by_pod_labels_id[pod_labels_id].append(matcher)
        # Drop the lists of classes without pods, which lack the new matcher; the next pod of a class creates its list.
        for unused_id in self._matchers_by_pod_labels_id.keys() - set(self._row_counts_by_pod_labels_id):
            del self._matchers_by_pod_labels_id[unused_id]
        return NodeCounts(row_counts, self._owner_token, total=total)

    def _evict(self) -> None:
        matchers_by_last_use = sorted(self._counts, key=lambda matcher: self._counts[matcher].last_used)
        for matcher in matchers_by_last_use[: len(matchers_by_last_use) // 2]:
            del self._counts[matcher]
        self._matchers_by_pod_labels_id = {}

    def invalidate_domains(self, keys: set[str]) -> None:
        """Drop the sums by domain of topology *keys*; they are recomputed on next use."""
        for matcher, counts in self._counts.items():
            # Older snapshots share the counts of another owner and sum them by their own node labels.
            if counts.owner is not self._owner_token or keys & counts.domain_counts.keys():
                self._counts[matcher] = counts.drop_domains(keys)

    def set_namespace_labels(self, labels_by_namespace: dict[str, dict[str, str]]) -> None:
        """Set the labels of all namespaces, by namespace. Matchers that read them count again on next use."""
        self.namespace_labels = labels_by_namespace
        valid_counts = {
            matcher: counts for matcher, counts in self._counts.items() if not matcher.reads_namespace_labels
        }
        if len(valid_counts) != len(self._counts):
            self._counts = valid_counts
            self._matchers_by_pod_labels_id = {}
