"""The node table: one dense row a node, its facts in columns. Rows move only when a node is deleted."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from extender.basics.intern import Pool
from extender.cluster.columns import Columns
from extender.cluster.images import ImageTable
from extender.cluster.vocabulary import Vocabulary
from extender.objects.node import ContainerImage, Node
from extender.objects.quantity import base_units

ABSENT = -1
"""The id in a label column of a node without that label."""


def is_heartbeat(old: Node, new: Node) -> bool:
    """Whether nothing but the version of the object changed, as far as it is read: the node says that it is alive."""
    return (
        new.status == old.status
        and new.spec == old.spec
        and replace(new.metadata, resource_version=old.metadata.resource_version) == old.metadata
    )


class NodeTable:
    """Nodes by row.

    Columns kept (int64 unless said): `allocatable` and `requested` (a line a resource, base units: milli-CPU,
    bytes, counts),
    `nonzero` (line 0 milli-CPU, line 1 bytes, with the defaults of pods that ask for nothing), `pod_count`,
    `allowed_pods`,
    `taint_set`, `feature_set` (ids of the vocabulary), `unschedulable` (bool).
    Source: A110, A111.

    `roll` stands for which names are in which rows: another object after each change of that.
    """

    __slots__ = (
        "_images_seen",
        "_label_columns",
        "_labels_owned",
        "_lists_owned",
        "columns",
        "images",
        "names",
        "objects",
        "roll",
        "row_of",
        "vocabulary",
    )

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.columns = Columns()
        for name in ("allocatable", "requested"):
            self.columns.add(name, rows=max(4, len(vocabulary.resources)))
        self.columns.add("nonzero", rows=2)
        for name in ("pod_count", "allowed_pods", "taint_set", "feature_set"):
            self.columns.add(name)
        self.columns.add("unschedulable", dtype=np.bool_)
        self.images = ImageTable()
        self._images_seen: Pool[ContainerImage] = Pool()
        self.names: list[str] = []
        self.objects: list[Node] = []
        self.row_of: dict[str, int] = {}
        self.roll = object()
        self._lists_owned = True
        self._label_columns: dict[str, NDArray[np.int64]] = {}
        self._labels_owned: set[str] = set()

    def fork(self) -> "NodeTable":
        """The same nodes, to be written without touching these."""
        child = object.__new__(NodeTable)
        child.vocabulary = self.vocabulary
        child.columns = self.columns.fork()
        child.images = self.images.fork()
        child._images_seen = self._images_seen
        child.names, child.objects, child.row_of = self.names, self.objects, self.row_of
        child.roll = self.roll
        child._lists_owned = False
        child._label_columns = dict(self._label_columns)
        child._labels_owned = set()
        return child

    def __len__(self) -> int:
        return len(self.names)

    def _own_lists(self) -> None:
        if not self._lists_owned:
            self.names, self.objects, self.row_of = list(self.names), list(self.objects), dict(self.row_of)
            self._lists_owned = True

    def put(self, node: Node) -> int:
        """Add *node* or replace the one of its name; returns its row."""
        self._own_lists()
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is None:
            row = len(self.names)
            self.columns.reserve(row + 1)
            self.names.append(name)
            self.objects.append(node)
            self.row_of[name] = row
            self.roll = object()
            self.images.add(row, node)
        else:
            if node.status.images != self.objects[row].status.images:
                self.images.remove(row, self.objects[row])
                self.images.add(row, node)
            self.objects[row] = node
        self._write_facts(row, node)
        return row

    def refresh(self, row: int, node: Node) -> None:
        """Replace the node of *row* by one that `is_heartbeat`."""
        self._own_lists()
        self.objects[row] = node

    def lean(self, node: Node) -> Node:
        """An equal of *node* that shares its images with the other nodes."""
        row = self.row_of.get(node.metadata.name)
        images = () if row is None else self.objects[row].status.images
        if images != node.status.images:
            images = tuple(map(self._images_seen.of, node.status.images))
        return replace(node, status=replace(node.status, images=images))

    def _write_facts(self, row: int, node: Node) -> None:
        words, columns = self.vocabulary, self.columns
        amounts: dict[int, int] = {}
        allowed_pods = 0
        for name, quantity in node.status.allocatable.items():
            if name == "pods":
                allowed_pods = base_units(name, quantity)
            else:
                amounts[words.resources.id(name)] = base_units(name, quantity)
        self.deepen()
        allocatable = columns.write("allocatable")
        allocatable[:, row] = 0
        for resource, amount in amounts.items():
            allocatable[resource, row] = amount
        columns.write("allowed_pods")[row] = allowed_pods
        columns.write("taint_set")[row] = words.taint_sets.id(node.spec.taints)
        columns.write("feature_set")[row] = words.feature_sets.id(frozenset(node.status.declared_features))
        columns.write("unschedulable")[row] = node.spec.unschedulable
        for key in self._label_columns:
            self._write_label(key, row, node)

    def deepen(self) -> None:
        """Make room for every resource of the vocabulary."""
        lines = len(self.vocabulary.resources)
        self.columns.deepen("allocatable", lines)
        self.columns.deepen("requested", lines)

    def drop(self, name: str) -> tuple[int, int]:
        """Remove the node *name*; the last row moves into its place.

        Returns:
            The row that was freed and the row that moved into it (equal if the node was the last).
        """
        self._own_lists()
        row, last = self.row_of.pop(name), len(self.names) - 1
        self.roll = object()
        self.images.remove(row, self.objects[row])
        if row != last:
            moved = self.objects[last]
            self.images.remove(last, moved)
            self.images.add(row, moved)
            self.names[row], self.objects[row] = self.names[last], moved
            self.row_of[self.names[row]] = row
        self.names.pop()
        self.objects.pop()
        self.columns.move(last, row)
        for key in self._label_columns:
            column = self._own_label(key)
            column[row], column[last] = column[last], ABSENT
        return row, last

    def label(self, key: str) -> NDArray[np.int64]:
        """The column of node label *key*: ids of `Vocabulary.label_values(key)`, ABSENT without.

        Spare rows included.
        """
        column = self._label_columns.get(key)
        if column is None or len(column) < self.columns.capacity:
            column = np.full(self.columns.capacity, ABSENT, dtype=np.int64)
            values = self.vocabulary.label_values(key)
            for row, node in enumerate(self.objects):
                value = node.metadata.labels.get(key)
                if value is not None:
                    column[row] = values.id(value)
            self._label_columns[key] = column
            self._labels_owned.add(key)
        return column

    def _own_label(self, key: str) -> NDArray[np.int64]:
        column = self.label(key)
        if key not in self._labels_owned:
            column = self._label_columns[key] = column.copy()
            self._labels_owned.add(key)
        return column

    def _write_label(self, key: str, row: int, node: Node) -> None:
        value = node.metadata.labels.get(key)
        number = ABSENT if value is None else self.vocabulary.label_values(key).id(value)
        if self.label(key)[row] != number:
            self._own_label(key)[row] = number

    def indexed_labels(self) -> Sequence[str]:
        """The label keys that have a column, because something asked for them."""
        return tuple(self._label_columns)
