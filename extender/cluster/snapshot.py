"""The frozen view of a cluster that a decision is made on, and the part of it that a plugin is shown.

A snapshot costs nothing to take: it reads the live tables in place, and the writer copies what it is about to change
only while somebody
still holds the snapshot (see `state.ClusterState`).
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.groups import GroupMembers
from extender.cluster.images import ImageState
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.rowcounts import RowCounts
from extender.cluster.selecting import PodMatcher
from extender.cluster.store import Thing
from extender.cluster.tables import Tables
from extender.cluster.terms import CarriedTerm
from extender.cluster.vocabulary import Vocabulary
from extender.objects.node import Node
from extender.objects.pod import Pod

A = TypeVar("A", bound=np.generic)
T = TypeVar("T", bound=Thing)


class Snapshot:
    """A cluster at one moment. Rows are dense: 0 to `len(snapshot)` - 1.

    Attributes:
        lineage: which history this is a moment of; journal positions of one lineage can be compared.
        node_position, pod_position: how far the journals had come; cached columns are brought up to here.
    """

    __slots__ = ("__weakref__", "_changed", "_tables", "lineage", "node_position", "pod_position")

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.lineage = tables.lineage
        self.node_position = tables.node_journal.position
        self.pod_position = tables.pod_journal.position
        self._changed: dict[tuple[int, int | None], IntArray | None] = {}

    @property
    def tables(self) -> Tables:
        """The tables behind the view; for the cluster room only, and never to be written."""
        return self._tables

    @property
    def vocabulary(self) -> Vocabulary:
        """The interned words."""
        return self._tables.nodes.vocabulary

    @property
    def object_history(self) -> object:
        """Which history of objects this is a moment of; revisions of one history can be compared."""
        return self._tables.objects.history

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
    def roll(self) -> object:
        """Which names are in which rows; as long as it is the same object, `rows` answers the same."""
        return self._tables.nodes.roll

    def row(self, name: str) -> int | None:
        """The row of node *name*, or None if it is unknown."""
        return self._tables.nodes.row_of.get(name)

    def rows(self, names: Sequence[str]) -> IntArray:
        """The row of each name, -1 where it is unknown: int64, shape (len(names),)."""
        found = map(self._tables.nodes.row_of.get, names, repeat(-1))
        return np.fromiter(found, dtype=np.int64, count=len(names))

    def changed_rows(self, *, node_position: int, pod_position: int | None) -> IntArray | None:
        """Rows written since those positions of this lineage (pods' writes too, unless that is None).

        None: all may have been.
        """
        asked = node_position, pod_position
        if asked not in self._changed:  # the columns of one shape of pods ask alike
            self._changed[asked] = self._written_since(node_position, pod_position)
        return self._changed[asked]

    def _written_since(self, node_position: int, pod_position: int | None) -> IntArray | None:
        tables = self._tables
        nodes = tables.node_journal.since(node_position)
        if nodes is None or pod_position is None:
            return nodes
        pods = tables.pod_journal.since(pod_position)
        if pods is None or not len(nodes):
            return pods
        return np.union1d(nodes, pods)

    @property
    def is_latest(self) -> bool:
        """Whether nothing was written to this lineage since."""
        tables = self._tables
        return (tables.node_journal.position, tables.pod_journal.position) == (self.node_position, self.pod_position)

    def pods_on(self, name: str) -> Mapping[str, PlacedPod]:
        """The pods on node *name*, by uid."""
        return self._tables.on_node.get(name) or {}

    def pods_by_row(self, rows: IntArray) -> list[Collection[PlacedPod]]:
        """The pods on each of *rows* (int64)."""
        names = map(self._tables.nodes.names.__getitem__, rows.tolist())
        return [pods.values() if pods else () for pods in self._tables.on_node.get_all(names)]

    def placed_pods(self) -> list[PlacedPod]:
        """Every pod on a node that is known."""
        rows = self._tables.nodes.row_of
        return [pod for name, pods in self._tables.on_node.items() if name in rows for pod in pods.values()]

    def nominated(self, name: str) -> tuple[PodQuery, ...]:
        """The waiting pods nominated for node *name*. Source: A095."""
        return self._tables.nominated.get(name, ())

    @property
    def nominations(self) -> Mapping[str, tuple[PodQuery, ...]]:
        """All nominated pods by node name."""
        return self._tables.nominated

    def query(self, pod: Pod) -> PodQuery:
        """*pod* compiled against this cluster's vocabulary."""
        return PodQuery(pod, self._tables.shapes.of(pod))

    def counts(self, matcher: PodMatcher) -> RowCounts:
        """How many pods that match *matcher* are where; read only. Made on first use, kept from then on."""
        return self._tables.counts.of(matcher, self._tables.nodes)

    def count_rows(self, counts: RowCounts) -> IntArray:
        """*counts* by row: int64, shape (number of nodes,)."""
        return counts.fitted(self._tables.nodes)

    def count_domains(self, counts: RowCounts, topology_key: str) -> IntArray:
        """*counts* by domain: int64, by the id of the label value, one entry a known value at least."""
        return counts.in_domains(topology_key, self._tables.nodes)

    def terms_about(self, number: int) -> tuple[tuple[CarriedTerm, RowCounts], ...]:
        """The affinity terms of placed pods that talk about pods of class *number*, with where their carriers are."""
        return self._tables.terms.about(number)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """The labels of namespace *name*, or None if it is unknown."""
        return self._tables.counts.namespace_labels.get(name)

    def image(self, name: str) -> ImageState | None:
        """Which nodes hold image *name*, or None if none does."""
        return self._tables.nodes.images.get(name)

    def port_conflicts(self, pod: PodQuery, rows: Sequence[int] | None = None) -> set[int]:
        """The rows on which a host port of *pod* is taken, of *rows* if given."""
        return self._tables.ports.conflicts(pod.shape.host_ports, rows)

    def is_claimed(self, key: str) -> bool:
        """Whether a pod on a node names the claim *key* (`namespace/name`); generated claims do not count."""
        return self._tables.volumes.is_claimed(key)

    def claim_rows(self, key: str) -> set[int]:
        """The rows with pods that use the claim *key*, generated or not."""
        return self._tables.volumes.claim_rows(key)

    def claim_users(self, key: str) -> Mapping[int, frozenset[str]]:
        """By row, the uids of the pods that take node resources through the resource claim *key* (`namespace/name`)."""
        return self._tables.claims.users(key)

    def disk_conflicts(self, pod: PodQuery) -> set[int]:
        """The rows on which a disk that *pod* names itself is in use in a way that excludes it."""
        return self._tables.volumes.conflicts(pod.shape.volumes)

    def group(self, key: str) -> GroupMembers:
        """The members of the pod group *key* (`namespace/name`), those that wait too; nobody if none is known."""
        return self._tables.groups.get(key)

    def objects(self, kind: type[T]) -> Mapping[str, T]:
        """Objects of *kind* (neither nodes nor pods) by `namespace/name` or name."""
        return self._tables.objects.all(kind)

    def find(self, kind: type[T], key: str) -> T | None:
        """One such object, or None."""
        return self._tables.objects.get(kind, key)

    def revision(self, kind: type[Any]) -> int:
        """Grows with every write to objects of *kind*."""
        return self._tables.objects.revision(kind)

    def written(self, kind: type[Any], since: int) -> frozenset[str] | None:
        """The keys of objects of *kind* that were written or dropped after revision *since* of this history.

        None: perhaps all.
        """
        return self._tables.objects.written(kind, since)

    def view(self, rows: IntArray | None = None) -> "NodeView":
        """The nodes of *rows*, or all."""
        return NodeView(self, rows)


class NodeView:
    """The nodes a plugin is asked about. Every array has one entry a node of the view, in its order.

    Attributes:
        snapshot: the whole cluster.
        rows: the rows of the view, int64, or None for all rows in order (then columns are not copied).
        only: the row, if `rows` names just one: plain numbers, see `amounts_of`, are quicker then than arrays of one.
    """

    __slots__ = ("_part", "only", "rows", "snapshot")

    def __init__(self, snapshot: Snapshot, rows: IntArray | None = None) -> None:
        self.snapshot = snapshot
        self.rows = rows
        self.only: int | None = None
        self._part: IntArray | slice  # a slice wherever it does, which is faster
        if rows is None:
            self._part = slice(len(snapshot))
        elif len(rows) == 1:
            self.only = row = int(rows[0])
            self._part = slice(row, row + 1)
        else:
            self._part = rows

    def __len__(self) -> int:
        return len(self.snapshot) if self.rows is None else len(self.rows)

    def take(self, column: NDArray[A]) -> NDArray[A]:
        """The entries of the view from an array over rows (last axis.

        Spare entries past the number of nodes are fine).
        """
        part = self._part
        return column[..., part] if isinstance(part, slice) else column.take(part, axis=-1)

    def amounts_of(self, row: int, resource: int) -> tuple[int, int]:
        """`requested` and `allocatable` of one row."""
        columns = self.snapshot.tables.nodes.columns
        requested, allocatable = columns.read("requested"), columns.read("allocatable")
        if resource >= len(allocatable):
            return 0, 0
        return requested.item(resource, row), allocatable.item(resource, row)

    def nonzero_of(self, row: int, line: int) -> int:
        """`nonzero_requested` of one row."""
        amount: int = self.snapshot.tables.nodes.columns.read("nonzero").item(line, row)
        return amount

    def pods_of(self, row: int) -> tuple[int, int]:
        """`pod_count` and `allowed_pods` of one row."""
        columns = self.snapshot.tables.nodes.columns
        return columns.read("pod_count").item(row), columns.read("allowed_pods").item(row)

    def _column(self, name: str) -> NDArray[Any]:
        return self.take(self.snapshot.tables.nodes.columns.read(name))

    def _amounts(self, name: str, resource: int) -> IntArray:
        lines = self.snapshot.tables.nodes.columns.read(name)
        # A resource that only a waiting pod has named so far has no line yet.
        return self.take(lines[resource]) if resource < len(lines) else np.zeros(len(self), dtype=np.int64)

    def allocatable(self, resource: int) -> IntArray:
        """What each node offers of a resource (id of the vocabulary): milli-CPU, bytes, counts."""
        return self._amounts("allocatable", resource)

    def requested(self, resource: int) -> IntArray:
        """What the pods on each node ask for of a resource."""
        return self._amounts("requested", resource)

    def nonzero_requested(self, line: int) -> IntArray:
        """As `requested` with the defaults for containers that ask for nothing.

        Line 0: milli-CPU, 1: bytes of memory.
        """
        return self.take(self.snapshot.tables.nodes.columns.read("nonzero")[line])

    @property
    def pod_count(self) -> IntArray:
        """Pods on each node."""
        return self._column("pod_count")

    @property
    def allowed_pods(self) -> IntArray:
        """The most pods each node takes."""
        return self._column("allowed_pods")

    @property
    def taint_set(self) -> IntArray:
        """The id of each node's taints in `Vocabulary.taint_sets`."""
        return self._column("taint_set")

    @property
    def feature_set(self) -> IntArray:
        """The id of each node's declared features in `Vocabulary.feature_sets`."""
        return self._column("feature_set")

    @property
    def unschedulable(self) -> BoolArray:
        """Whether each node is cordoned."""
        return self._column("unschedulable")

    def label(self, key: str) -> IntArray:
        """The id of each node's value of label *key* in `Vocabulary.label_values(key)`, -1 without the label."""
        return self.take(self.snapshot.tables.nodes.label(key))

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
