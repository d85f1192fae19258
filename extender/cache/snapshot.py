"""An immutable snapshot of the cluster, and views of some of its nodes for plugins.

A snapshot copies nothing: it reads the tables of the cache. While a read scope is open, the cache copies an array
before it writes it (see `cache.Cache`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup, PodGroup
from extender.cache.cluster_tables import ClusterTables
from extender.cache.group_hierarchy import Group, GroupKey
from extender.cache.pod_groups import PodGroupMembers
from extender.cache.pod_info import AssignedPodInfo, PodInfo, sum_requests
from extender.cache.tables.affinity_terms import AffinityTerm
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cache.tables.closed_tables import CLOSED_TABLES
from extender.cache.tables.history import HistoryPosition
from extender.cache.tables.images import ImageState
from extender.cache.tables.node_counts import NodeCounts, sum_by_domain
from extender.cache.tables.node_table import RowMapVersion
from extender.cache.tables.object_store import KindVersion
from extender.cache.tables.pod_selectors import PodMatcher
from extender.cache.tables.symbols import PodLabels, Symbols

A = TypeVar("A", bound=np.generic)
T = TypeVar("T", bound=KubernetesObject)


class Snapshot:
    """The state of a cluster at one time. Rows are dense: 0 to `len(snapshot)` - 1.

    Attributes:
        position: the position in the history of writes to the tables.
        pod_group_cycle: as in `ClusterTables`.
        returned_rows: whether an HTTP extender returned the node of each row; for Score, these nodes have no pods.
    """

    __slots__ = (
        "_changed_rows",
        "_tables",
        "pod_group_cycle",
        "position",
        "returned_rows",
    )

    def __init__(self, tables: ClusterTables) -> None:
        self._tables, self.pod_group_cycle = tables, tables.pod_group_cycle
        node_log, pod_log = tables.node_change_log, tables.pod_change_log
        self.position = HistoryPosition(tables.history_id, node_log, pod_log, node_log.position, pod_log.position)
        self.returned_rows: BoolArray | None = None
        self._changed_rows: dict[tuple[HistoryPosition, bool], IntArray | None] = {}

    def close(self) -> None:
        """Make each later use of the snapshot raise `ClosedSnapshotError`, because its tables are about to change."""
        self._tables = CLOSED_TABLES

    @property
    def tables(self) -> ClusterTables:
        """The tables of the snapshot. Use them only in this package, and do not write them."""
        return self._tables

    @property
    def symbols(self) -> Symbols:
        """The interned resource names, label values, taints and other values with their ids."""
        return self._tables.nodes.symbols

    def __len__(self) -> int:
        return len(self._tables.nodes.names)

    @property
    def names(self) -> Sequence[str]:
        """Node names by row."""
        return self._tables.nodes.names

    @property
    def nodes(self) -> Sequence[Node]:
        """Node objects by row."""
        return self._tables.nodes.objects

    @property
    def row_map_version(self) -> RowMapVersion:
        """The version of the mapping of names to rows. Snapshots with the same version have the same mapping."""
        return self._tables.nodes.row_map_version

    def row(self, name: str) -> int | None:
        """Return the row of node *name*, or None if it is unknown."""
        return self._tables.nodes.row_by_name.get(name)

    def rows(self, names: Sequence[str]) -> IntArray:
        """Return the row of each name, -1 for unknown names: int64, shape (len(names),)."""
        rows = map(self._tables.nodes.row_by_name.get, names, repeat(-1))
        return np.fromiter(rows, dtype=np.int64, count=len(names))

    def find_changed_rows(self, position: HistoryPosition, *, nodes_only: bool = False) -> IntArray | None:
        """Return the rows that may differ from those at *position*; see `HistoryPosition.find_changed_rows`."""
        key = position, nodes_only
        if key not in self._changed_rows:  # many tables have the same position
            rows = self.position.find_changed_rows(position, nodes_only=nodes_only)
            if rows is not None and len(rows) and rows[-1] >= len(self):  # of nodes added after this snapshot
                rows = rows[rows < len(self)]
            self._changed_rows[key] = rows
        return self._changed_rows[key]

    @property
    def lowest_priority(self) -> int:
        """The lowest priority of a pod on a node; see `ClusterTables.lowest_priority`."""
        return self._tables.lowest_priority

    def pods_on(self, name: str) -> Mapping[str, AssignedPodInfo]:
        """Return the pods on node *name* by uid."""
        return self._tables.pods_by_node.get(name) or {}

    def pods_by_row(self, rows: IntArray) -> list[Collection[AssignedPodInfo]]:
        """Return the pods on the node of each of *rows* (int64)."""
        names = map(self._tables.nodes.names.__getitem__, rows.tolist())
        return [pods.values() if pods else () for pods in self._tables.pods_by_node.get_all(names)]

    def assigned_pods(self) -> list[AssignedPodInfo]:
        """Return all pods on the nodes of the snapshot."""
        row_by_name = self._tables.nodes.row_by_name
        return [pod for name, pods in self._tables.pods_by_node.items() if name in row_by_name for pod in pods.values()]

    def nominated_pods(self, name: str) -> tuple[PodInfo, ...]:
        """Return the pods nominated for node *name*.

        Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPluginsWithNominatedPods (1.36).
        """
        return self._tables.nominated_pods.get(name, ())

    @property
    def nominated_pods_by_node(self) -> Mapping[str, tuple[PodInfo, ...]]:
        """All nominated pods by node name."""
        return self._tables.nominated_pods

    def make_pod_info(self, pod: Pod) -> PodInfo:
        """Make the `PodInfo` of *pod* with its signature in this cluster."""
        return PodInfo(pod, self._tables.signatures.get_signature(pod))

    def pod_counts(self, matcher: PodMatcher) -> NodeCounts:
        """Return the counts of assigned pods that *matcher* matches. Do not modify them.

        The first call counts the pods; from then on the cache keeps the counts up to date.
        """
        return self._tables.selector_counts.get(matcher, self._tables.nodes)

    def counts_by_row(self, counts: NodeCounts) -> IntArray:
        """Return *counts* by row: int64, shape (number of nodes,)."""
        return counts.get_by_row(self._tables.nodes)

    def counts_by_domain(self, counts: NodeCounts, topology_key: str) -> IntArray:
        """Return *counts* by topology domain: int64, indexed by the id of the label value."""
        return counts.get_by_domain(topology_key, self._tables.nodes)

    def sum_by_domain(self, weighted_counts: Iterable[tuple[str, NodeCounts, int]]) -> dict[str, IntArray]:
        """Return `node_counts.sum_by_domain` for the nodes of this snapshot."""
        return sum_by_domain(weighted_counts, self._tables.nodes)

    def affinity_terms_matching(self, pod_labels: PodLabels) -> tuple[tuple[AffinityTerm, NodeCounts], ...]:
        """Return the assigned pods' affinity terms that match pods with these labels, with counts of pods by term."""
        return self._tables.affinity_terms.find_matching_terms(pod_labels)

    def listed_affinity_terms_matching(self, pod_labels: PodLabels) -> tuple[tuple[AffinityTerm, NodeCounts], ...]:
        """Return the result of `affinity_terms_matching`; if there are `NodeLists`, count only on the nodes in them."""
        terms, lists = self.affinity_terms_matching(pod_labels), self._tables.node_lists
        return terms if lists is None else lists.select(terms, self._tables.nodes)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of namespace *name*, or None if it is unknown."""
        return self._tables.selector_counts.namespace_labels.get(name)

    def image_state(self, name: str) -> ImageState | None:
        """Return the size and the nodes of image *name*, or None if no node has it."""
        return self._tables.nodes.images.get(name)

    def rows_with_port_conflict(self, pod: PodInfo, rows: Sequence[int] | None = None) -> set[int]:
        """Return the rows among *rows* (None: all rows) on which a host port of *pod* is in use."""
        return self._tables.host_ports.find_conflicting_rows(pod.signature.host_ports, rows)

    def is_pvc_used_by_pods(self, key: str) -> bool:
        """Return whether a pod on a node refers to the PVC *key* (`namespace/name`); ephemeral volumes do not count."""
        lists = self._tables.node_lists
        return (self._tables if lists is None else lists).volume_uses.is_pvc_used_by_pods(key)

    def rows_using_pvc(self, key: str) -> set[int]:
        """Return the rows with pods that use the PVC *key*, also through an ephemeral volume."""
        return self._tables.volume_uses.find_rows_using_pvc(key)

    def node_allocatable_claim_users(self, key: str) -> Mapping[int, frozenset[str]]:
        """Return, by row, the uids of the pods that take node resources through the resource claim *key*."""
        return self._tables.claim_uses.get_users(key)

    def rows_with_disk_conflict(self, pod: PodInfo) -> set[int]:
        """Return the rows on which an inline disk of *pod* conflicts with a disk in use."""
        return self._tables.volume_uses.find_conflicting_rows(pod.signature.volume_uses)

    def pod_group(self, key: str) -> PodGroupMembers:
        """Return the pending and assigned members of the pod group *key* (`namespace/name`)."""
        return self._tables.pod_groups.get(key)

    def get_group(self, key: GroupKey) -> Group | None:
        """Return the pod group or composite pod group *key*; None if it does not exist."""
        kind: type[Group] = CompositePodGroup if key.is_composite else PodGroup
        return self._tables.objects.get(kind, key.object_key)

    def child_groups(self, key: GroupKey) -> Collection[GroupKey]:
        """Return the keys of the groups that name the composite pod group *key* as their parent."""
        return self._tables.pod_groups.get_children(key)

    def assigned_group_members(self) -> Iterator[AssignedPodInfo]:
        """Return the assigned members of all pod groups."""
        return self._tables.pod_groups.assigned_members()

    def objects(self, kind: type[T]) -> Mapping[str, T]:
        """Return the objects of *kind* (neither nodes nor pods) by `namespace/name` or name."""
        return self._tables.objects.get_by_kind(kind)

    def get_object(self, kind: type[T], key: str) -> T | None:
        """Return the object of *kind* with this key, or None."""
        return self._tables.objects.get(kind, key)

    def kind_version(self, kind: type[Any]) -> KindVersion:
        """Return the version of the objects of *kind*. Snapshots with equal versions have equal objects."""
        return self._tables.objects.get_version(kind)

    def list_version(self, kind: type[Any]) -> str:
        """Return the resource version of the last complete list of *kind*, which the snapshot includes; 0: no list."""
        return self._tables.objects.list_versions.get(kind, "0")

    def keys_written_since(self, kind: type[Any], version: KindVersion | None) -> frozenset[str] | None:
        """Return the keys of objects of *kind* that were written or removed after *version*.

        Return None if any object may have been written, also if *version* is None.
        """
        return self._tables.objects.get_keys_written_since(kind, version)

    def view(self, rows: IntArray | None = None) -> "NodeView":
        """Return a view of the nodes of *rows*, or of all nodes if it is None."""
        return NodeView(self, rows)


class NodeView:
    """The nodes that a plugin evaluates. Every array has one entry for each node of the view, in the order of `rows`.

    Attributes:
        snapshot: the snapshot that contains the nodes.
        rows: the rows of the view, int64. None means all rows in order; columns are then not copied.
        single_row: the row of the node if the view has one node, else None. For one node, methods that return plain
            numbers, such as `requested_and_allocatable`, are faster than arrays.
    """

    __slots__ = ("_selection", "rows", "single_row", "snapshot")

    def __init__(self, snapshot: Snapshot, rows: IntArray | None = None) -> None:
        self.snapshot = snapshot
        self.rows = rows
        self.single_row: int | None = None
        self._selection: IntArray | slice  # a slice if possible, which is faster
        if rows is None:
            self._selection = slice(len(snapshot))
        elif len(rows) == 1:
            self.single_row = row = int(rows[0])
            self._selection = slice(row, row + 1)
        else:
            self._selection = rows

    def __len__(self) -> int:
        return len(self.snapshot) if self.rows is None else len(self.rows)

    def take(self, column: NDArray[A]) -> NDArray[A]:
        """Select the entries of the view's nodes from an array with one entry for each row. Spare rows are ignored."""
        selection = self._selection
        return column[..., selection] if isinstance(selection, slice) else column.take(selection, axis=-1)

    def requested_and_allocatable(self, row: int, resource_id: int) -> tuple[int, int]:
        """Return `requested` and `allocatable` of one row."""
        nodes = self.snapshot.tables.nodes
        if resource_id >= nodes.counted_resources:
            return NodeView(self.snapshot, np.array([row])).requested(resource_id).item(), 0
        columns = nodes.columns
        return columns.get("requested").item(resource_id, row), columns.get("allocatable").item(resource_id, row)

    def nonzero_requested_of(self, row: int, resource_id: int) -> int:
        """Return `nonzero_requested` of one row."""
        amount: int = self.snapshot.tables.nodes.columns.get("nonzero_requested").item(resource_id, row)
        return amount

    def pod_count_and_limit(self, row: int) -> tuple[int, int]:
        """Return `pod_count` and `allowed_pods` of one row."""
        columns = self.snapshot.tables.nodes.columns
        return columns.get("pod_count").item(row), columns.get("allowed_pods").item(row)

    def _take_column(self, name: str) -> NDArray[Any]:
        return self.take(self.snapshot.tables.nodes.columns.get(name))

    def _take_resource_column(self, name: str, resource_id: int) -> IntArray:
        amounts = self.snapshot.tables.nodes.columns.get(name)
        # The column may not contain a resource that no node has had.
        return self.take(amounts[resource_id]) if resource_id < len(amounts) else np.zeros(len(self), dtype=np.int64)

    def allocatable(self, resource_id: int) -> IntArray:
        """Return each node's allocatable amount of a resource (id of `Symbols.resources`): milli-CPU, bytes, counts."""
        return self._take_resource_column("allocatable", resource_id)

    def requested(self, resource_id: int) -> IntArray:
        """Return the amount of a resource that the pods on each node request."""
        nodes = self.snapshot.tables.nodes
        if nodes.counted_resources <= resource_id < len(nodes.symbols.resources):  # no node has had it until now
            return self.sum_requests(nodes.symbols.resources[resource_id])
        return self._take_resource_column("requested", resource_id)

    def sum_requests(self, resource: str) -> IntArray:
        """Return the same as `requested` for a resource without an id."""
        pods = map(self.snapshot.tables.pods_by_node.get, self.names)
        return np.array([sum_requests((each or {}).values(), resource) for each in pods], dtype=np.int64)

    def nonzero_requested(self, resource_id: int) -> IntArray:
        """Return the requested `CPU` or `MEMORY` on each node, with defaults for containers without requests."""
        return self.take(self.snapshot.tables.nodes.columns.get("nonzero_requested")[resource_id])

    @property
    def pod_count(self) -> IntArray:
        """The number of pods on each node."""
        return self._take_column("pod_count")

    @property
    def allowed_pods(self) -> IntArray:
        """The maximum number of pods on each node."""
        return self._take_column("allowed_pods")

    @property
    def taint_set_ids(self) -> IntArray:
        """The id of each node's taints in `Symbols.taint_sets`."""
        return self._take_column("taint_set_id")

    @property
    def feature_set_ids(self) -> IntArray:
        """The id of each node's declared features in `Symbols.feature_sets`."""
        return self._take_column("feature_set_id")

    @property
    def unschedulable(self) -> BoolArray:
        """Whether each node is cordoned."""
        return self._take_column("unschedulable")

    def label_value_ids(self, key: str) -> IntArray:
        """Return the id of each node's value of label *key* (see `Symbols.get_label_values`), -1 without the label."""
        return self.take(self.snapshot.tables.nodes.get_label_column(key))

    @property
    def names(self) -> list[str]:
        """Node names."""
        names = self.snapshot.names
        return list(names) if self.rows is None else [names[row] for row in self.rows]

    @property
    def nodes(self) -> list[Node]:
        """Node objects."""
        nodes = self.snapshot.nodes
        return list(nodes) if self.rows is None else [nodes[row] for row in self.rows]
