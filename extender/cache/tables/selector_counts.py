"""Count the assigned pods that match a selector, by node and topology domain.

The first use of a matcher counts all pods. From then on, adding or removing a pod updates the counts of the matchers
that match its namespace and labels. The cost of an update does not depend on the number of pods in the cluster.

Source: kube-scheduler/framework/types.go, AffinityTerm.Matches;
pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, preFilterState;
pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector (1.36).
"""

import numpy as np

from extender.basics.copy_on_write import CopyOnWriteDict
from extender.cache.tables.node_counts import NodeCounts, NodeCountsByKey
from extender.cache.tables.node_table import NodeTable
from extender.cache.tables.pod_selectors import PodMatcher
from extender.cache.tables.symbols import PodLabels

_MAX_MATCHERS = 2048
"""Above this number of matchers, the least recently used half is evicted."""

_MAX_EMPTIED_MATCHERS = 256
"""Limit of the matchers that matched pods which are gone, such as those of an old ReplicaSet.

Each takes 80 KB for 5,000 nodes, and is compared with the labels of each new kind of pod. Matchers that never matched
a pod are often those of pending pods, which need them again.
"""

_MAX_UNUSED_LISTS = 256
"""Limit of the lists of matchers for labels that no pod has. Later pods may have the same labels.

A higher limit makes memory grow and shrink: with labels unique to each Job, 4,096 lists with their labels took 3 MB.
"""

_MAX_LISTED_MATCHERS = 1 << 22
"""Limit of the matchers in the lists of all labels together; each takes 8 bytes.

Without it, 23 pods with 90 anti-affinity terms each took 1 GB in a cluster of 20,000 pods with different labels.
"""

_MAX_UNREAD_UPDATES = 512
"""Counts that were updated so often since they were read are dropped: to count all pods again takes about as long."""

_PodCountsByRow = dict[int, tuple[int, int]]
"""By node row, the numbers of pods and of terminating pods with the same namespace and labels.

The values are tuples, so that a hypothesis copies the whole mapping quickly.
"""


class SelectorCountTable(NodeCountsByKey[PodMatcher]):
    """The number of pods by node, for each matcher in use and for each combination of namespace and labels."""

    def __init__(self) -> None:
        super().__init__()
        # A list may also have matchers without counts, which are skipped.
        self._matchers_by_pod_labels: dict[PodLabels, tuple[PodMatcher, ...]] = {}
        self._listed_matchers = 0
        self._unused_labels: dict[PodLabels, None] = {}  # labels with a list that no pod has, in order of removal
        self._row_counts_by_pod_labels: CopyOnWriteDict[PodLabels, _PodCountsByRow] = CopyOnWriteDict(dict)
        self._use_counter = 0
        self._emptied_matchers: set[PodMatcher] = set()

    def fork(self) -> "SelectorCountTable":
        """Return a copy-on-write copy of the table."""
        child = SelectorCountTable()
        child._counts = dict(self._counts)
        child._matchers_by_pod_labels = dict(self._matchers_by_pod_labels)
        child._listed_matchers = self._listed_matchers
        child._unused_labels = dict(self._unused_labels)
        child._row_counts_by_pod_labels = self._row_counts_by_pod_labels.fork()
        child._use_counter, child._emptied_matchers = self._use_counter, set(self._emptied_matchers)
        child.namespace_labels = self.namespace_labels
        return child

    def add_or_remove(
        self, pod_labels: PodLabels, row: int, nodes: NodeTable, *, terminating: bool, sign: int = 1
    ) -> None:
        """Add a pod with the labels *pod_labels* to *row* (*sign* 1) or remove it (-1)."""
        counts_by_row = self._row_counts_by_pod_labels.get_writable(pod_labels, dict)
        if not counts_by_row:
            self._unused_labels.pop(pod_labels, None)
        pod_count, terminating_count = counts_by_row.get(row, (0, 0))
        if pod_count + sign:
            counts_by_row[row] = pod_count + sign, terminating_count + sign * terminating
        else:
            del counts_by_row[row]
            if not counts_by_row:
                self._row_counts_by_pod_labels.remove(pod_labels)
                self._unused_labels[pod_labels] = None
        for matcher in self._list_matchers(pod_labels):
            if matcher in self._counts and not (terminating and matcher.ignore_terminating_pods):
                self._update_counts(matcher, row, sign, nodes)
        if len(self._emptied_matchers) > _MAX_EMPTIED_MATCHERS:
            self._remove_emptied_matchers()
        if len(self._unused_labels) > _MAX_UNUSED_LISTS:
            self._remove_unused_list(next(iter(self._unused_labels)))

    def _list_matchers(self, pod_labels: PodLabels) -> tuple[PodMatcher, ...]:
        matchers = self._matchers_by_pod_labels.get(pod_labels)
        if matchers is None:
            matchers = tuple(matcher for matcher in self._counts if self._matches_labels(matcher, pod_labels))
            if self._listed_matchers + len(matchers) > _MAX_LISTED_MATCHERS:
                self._remove_lists()
            self._matchers_by_pod_labels[pod_labels] = matchers
            self._listed_matchers += len(matchers)
        return matchers

    def _update_counts(self, matcher: PodMatcher, row: int, sign: int, nodes: NodeTable) -> None:
        counts = self._counts[matcher]
        if counts.unread_updates >= _MAX_UNREAD_UPDATES:
            del self._counts[matcher]
            return
        if counts.owner is not self._owner_token:
            counts = self._counts[matcher] = counts.fork(self._owner_token)
        counts.add(row, sign, nodes)
        counts.unread_updates += 1
        if sign < 0 and not counts.total:
            self._emptied_matchers.add(matcher)

    def _matches_labels(self, matcher: PodMatcher, pod_labels: PodLabels) -> bool:
        namespace = pod_labels.namespace
        return matcher.matches(namespace, pod_labels.labels, self.namespace_labels.get(namespace))

    def get(self, matcher: PodMatcher, nodes: NodeTable) -> NodeCounts:
        """Return the counts of *matcher*. The first call counts the pods. Do not modify the result."""
        counts = self._counts.get(matcher)
        if counts is None:
            if len(self._counts) >= _MAX_MATCHERS:
                self._evict()
            counts = self._counts[matcher] = self._count_matcher(matcher, nodes)
        self._use_counter += 1
        counts.last_used, counts.unread_updates = self._use_counter, 0
        return counts

    def _count_matcher(self, matcher: PodMatcher, nodes: NodeTable) -> NodeCounts:
        rows: list[int] = []
        amounts: list[int] = []
        selected_labels = matcher.select(self._row_counts_by_pod_labels, self.namespace_labels)
        for counts_by_row in self._row_counts_by_pod_labels.get_all(selected_labels):
            for row, (pod_count, terminating_count) in (counts_by_row or {}).items():
                rows.append(row)
                amounts.append(pod_count - terminating_count if matcher.ignore_terminating_pods else pod_count)
        for pod_labels in selected_labels:
            if pod_labels in self._matchers_by_pod_labels:
                self._remove_list(pod_labels)  # it lacks the new matcher
        for pod_labels in list(self._unused_labels):  # the loop above skips them
            self._remove_unused_list(pod_labels)
        row_counts = np.zeros(nodes.columns.capacity, dtype=np.int64)
        np.add.at(row_counts, np.array(rows, dtype=np.int64), np.array(amounts, dtype=np.int64))
        return NodeCounts(row_counts, self._owner_token, total=sum(amounts))

    def _remove_unused_list(self, pod_labels: PodLabels) -> None:
        """Remove the list of matchers for labels that no pod has."""
        del self._unused_labels[pod_labels]
        self._remove_list(pod_labels)

    def _remove_list(self, pod_labels: PodLabels) -> None:
        self._listed_matchers -= len(self._matchers_by_pod_labels.pop(pod_labels, ()))

    def _remove_lists(self) -> None:
        self._matchers_by_pod_labels, self._listed_matchers = {}, 0

    def _remove_emptied_matchers(self) -> None:
        emptied_matchers, self._emptied_matchers = self._emptied_matchers, set()
        self._counts = {
            matcher: counts
            for matcher, counts in self._counts.items()
            if counts.total or matcher not in emptied_matchers
        }
        self._remove_lists()

    def _evict(self) -> None:
        matchers_by_last_use = sorted(self._counts, key=lambda matcher: self._counts[matcher].last_used)
        for matcher in matchers_by_last_use[: len(matchers_by_last_use) // 2]:
            del self._counts[matcher]
        self._remove_lists()

    def set_namespace_labels(self, labels_by_namespace: dict[str, dict[str, str]]) -> None:
        """Set the labels of all namespaces, by namespace.

        Matchers that read these labels count all pods again on next use.
        """
        self.namespace_labels = labels_by_namespace
        valid_counts = {
            matcher: counts for matcher, counts in self._counts.items() if not matcher.reads_namespace_labels
        }
        if len(valid_counts) != len(self._counts):
            self._counts = valid_counts
            self._remove_lists()
