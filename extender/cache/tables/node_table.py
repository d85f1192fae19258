"""The node table: one dense row for each node. Rows move only when a node is removed."""

from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from extender.api.kinds.node import ContainerImage, Node, NodeSystemInfo
from extender.api.pod_limits import MAX_RESOURCE_NAMES
from extender.api.quantity import to_base_units
from extender.basics.intern import InternPool
from extender.cache.tables.arrays import widen
from extender.cache.tables.images import ImageTable
from extender.cache.tables.symbols import MAX_UNUSED_VALUES, Symbols

ABSENT = -1
"""The id in a label column for nodes without the label."""

MAX_LABEL_COLUMNS = 256
"""Limit of the node labels with a column; a dropped column is made again."""

_MAX_UNUSED_LABEL_KEYS = 1024
"""Limit of the label keys of removed nodes that are known, beyond the number of those of nodes."""

_MAX_SHARED_RESOURCES = 1024
"""Limit of the resources of nodes, beyond one for each node. Each takes two numbers for each node."""

_INITIAL_CAPACITY = 64


class Columns:
    """Arrays whose last axis is the node row. Rows are dense: 0 to the number of nodes - 1.

    A two-dimensional column has one entry for each resource and row. Capacity grows by doubling; spare entries are 0.
    A fork shares all arrays with the original; the first write to an array copies it.
    """

    __slots__ = ("_arrays", "_owned_names", "capacity")

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}
        self._owned_names: set[str] = set()
        self.capacity = _INITIAL_CAPACITY

    def add(self, name: str, *, dtype: Any = np.int64, resource_count: int | None = None) -> None:
        """Add a column of zeros: shape (*resource_count*, capacity), or (capacity,) without *resource_count*."""
        shape = (self.capacity,) if resource_count is None else (resource_count, self.capacity)
        self._arrays[name] = np.zeros(shape, dtype=dtype)
        self._owned_names.add(name)

    def fork(self) -> "Columns":
        """Return a copy-on-write copy of the columns."""
        child = Columns()
        child._arrays = dict(self._arrays)
        child.capacity = self.capacity
        return child

    def get(self, name: str) -> NDArray[Any]:
        """Return the whole array, spare rows included, for reading only."""
        return self._arrays[name]

    def get_writable(self, name: str) -> NDArray[Any]:
        """Return the whole array for writing, spare rows included."""
        if name not in self._owned_names:
            self._arrays[name] = self._arrays[name].copy()
            self._owned_names.add(name)
        return self._arrays[name]

    def reserve_rows(self, row_count: int) -> None:
        """Grow all columns to at least *row_count* rows."""
        if row_count <= self.capacity:
            return
        while self.capacity < row_count:
            self.capacity *= 2
        for name, array in self._arrays.items():
            self._arrays[name] = widen(array, self.capacity)
            self._owned_names.add(name)

    def grow_resource_columns(self, name: str, resource_count: int) -> None:
        """Grow the two-dimensional column *name* to at least *resource_count* resources."""
        array = self._arrays[name]
        if array.shape[0] >= resource_count:
            return
        grown_array = np.zeros((max(resource_count, array.shape[0] * 2), self.capacity), dtype=array.dtype)
        grown_array[: array.shape[0]] = array
        self._arrays[name] = grown_array
        self._owned_names.add(name)

    def move_row(self, source: int, target: int) -> None:
        """Move row *source* to row *target* and clear *source*. If both are the same row, only clear it."""
        for name in self._arrays:
            array = self.get_writable(name)
            if source != target:
                array[..., target] = array[..., source]
            array[..., source] = 0


class RowMapVersion:
    """A version of the mapping of node names to rows. Two versions are equal only if they are one object."""

    __slots__ = ()


def is_heartbeat(old: Node, new: Node) -> bool:
    """Return whether *new* differs from *old* only in its resource version and fields that are not decoded."""
    return (
        new.status == old.status
        and new.spec == old.spec
        and replace(new.metadata, resource_version=old.metadata.resource_version) == old.metadata
    )


class NodeTable:
    """Nodes by row.

    Columns, int64 unless noted:
    - `allocatable`, `requested`: by resource id and row, in base units: milli-CPU, bytes, counts.
    - `nonzero_requested`: only `CPU` and `MEMORY`, with defaults for containers without requests.
    - `pod_count`, `allowed_pods`.
    - `taint_set_id`, `feature_set_id`: ids of `Symbols.taint_sets` and `Symbols.feature_sets`.
    - `unschedulable`: bool.

    `row_map_version` is replaced by a new object whenever the mapping of names to rows changes. `counted_resources` is
    the number of resources, from the first id, whose requests are counted in `requested`.

    Source: pkg/scheduler/framework/types.go, NodeInfo; pkg/scheduler/util/utils.go, IsScalarResourceName (1.36).
    """

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.columns = Columns()
        for name in ("allocatable", "requested"):
            self.columns.add(name, resource_count=max(4, len(symbols.resources)))
        self.counted_resources = len(symbols.resources)
        self.columns.add("nonzero_requested", resource_count=2)
        for name in ("pod_count", "allowed_pods", "taint_set_id", "feature_set_id"):
            self.columns.add(name)
        self.columns.add("unschedulable", dtype=np.bool_)
        self.images = ImageTable()
        self._image_pool: InternPool[ContainerImage] = InternPool()
        self._node_info_pool: InternPool[NodeSystemInfo] = InternPool()
        self.names: list[str] = []
        self.objects: list[Node] = []
        self.row_by_name: dict[str, int] = {}
        self.row_map_version = RowMapVersion()
        self._owns_lists = True
        self._label_columns: dict[str, NDArray[np.int64]] = {}
        self._owned_label_columns: set[str] = set()
        self._label_keys: set[str] = set()  # those of all nodes, and of some that are gone
        self._max_label_keys = _MAX_UNUSED_LABEL_KEYS
        self._absent_column: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def fork(self) -> "NodeTable":
        """Return a copy-on-write copy of the table."""
        child = object.__new__(NodeTable)
        child.symbols = self.symbols
        child.columns = self.columns.fork()
        child.counted_resources = self.counted_resources
        child.images = self.images.fork()
        child._image_pool = self._image_pool
        child._node_info_pool = self._node_info_pool
        child.names, child.objects, child.row_by_name = self.names, self.objects, self.row_by_name
        child.row_map_version = self.row_map_version
        child._owns_lists = False
        child._label_columns = dict(self._label_columns)
        child._owned_label_columns = set()
        child._label_keys, child._max_label_keys = self._label_keys, self._max_label_keys
        child._absent_column = self._absent_column
        return child

    def __len__(self) -> int:
        return len(self.names)

    def _copy_shared_lists(self) -> None:
        if not self._owns_lists:
            self.names, self.objects, self.row_by_name = list(self.names), list(self.objects), dict(self.row_by_name)
            self._label_keys = set(self._label_keys)
            self._owns_lists = True

    def add_or_update(self, node: Node) -> int:
        """Add *node* or replace the node of the same name, and return the row of the node."""
        self._copy_shared_lists()
        name = node.metadata.name
        row = self.row_by_name.get(name)
        if row is None:
            row = len(self.names)
            name = name.encode().decode()  # a copy: the names of a list then lie in few memory pages
            self.columns.reserve_rows(row + 1)
            self.names.append(name)
            self.objects.append(node)
            self.row_by_name[name] = row
            self.row_map_version = RowMapVersion()
            self.images.add(row, node)
        else:
            if node.status.images != self.objects[row].status.images:
                self.images.remove(row, self.objects[row])
                self.images.add(row, node)
            self.objects[row] = node
        self._label_keys.update(node.metadata.labels)
        if len(self._label_keys) > self._max_label_keys:
            self._label_keys = {key for each in self.objects for key in each.metadata.labels}
            self._max_label_keys = 2 * len(self._label_keys) + _MAX_UNUSED_LABEL_KEYS
        self._write_row(row, node)
        return row

    def replace_object(self, row: int, node: Node) -> None:
        """Replace the object of *row* after a heartbeat, which changes no column: see `is_heartbeat`."""
        self._copy_shared_lists()
        self.objects[row] = node

    def deduplicate(self, node: Node) -> Node:
        """Return a node equal to *node*. It shares equal images and system information with others, to save memory."""
        row = self.row_by_name.get(node.metadata.name)
        images = () if row is None else self.objects[row].status.images
        if images != node.status.images:
            images = tuple(map(self._image_pool.intern, node.status.images))
        node_info = self._node_info_pool.intern(node.status.node_info)
        return replace(node, status=replace(node.status, images=images, node_info=node_info))

    def _write_row(self, row: int, node: Node) -> None:
        symbols, columns = self.symbols, self.columns
        amounts: dict[int, int] = {}
        allowed_pods = 0
        # A compromised node may have names without end. What it adds beyond the limits is as if no node had it.
        max_count = min(len(symbols.resources) + MAX_RESOURCE_NAMES, len(self.names) + _MAX_SHARED_RESOURCES)
        for name, quantity in node.status.allocatable.items():
            if name == "pods":
                allowed_pods = to_base_units(name, quantity)
            elif len(symbols.resources) < max_count or symbols.resources.get(name) is not None:
                amounts[symbols.resources.intern(name)] = to_base_units(name, quantity)
        self.grow_resource_columns()
        allocatable = columns.get_writable("allocatable")
        allocatable[:, row] = 0
        for resource_id, amount in amounts.items():
            allocatable[resource_id, row] = amount
        columns.get_writable("allowed_pods")[row] = allowed_pods
        columns.get_writable("unschedulable")[row] = node.spec.unschedulable
        self._write_set_ids(row, node)
        for key in self._label_columns:
            value = node.metadata.labels.get(key)
            value_id = ABSENT if value is None else self.symbols.get_label_values(key).intern(value)
            if self.get_label_column(key)[row] != value_id:
                self._get_writable_label_column(key)[row] = value_id

    def _write_set_ids(self, row: int, node: Node) -> None:
        symbols, columns = self.symbols, self.columns
        columns.get_writable("taint_set_id")[row] = symbols.taint_sets.intern(node.spec.taints)
        declared_features = frozenset(node.status.declared_features)
        columns.get_writable("feature_set_id")[row] = symbols.feature_sets.intern(declared_features)

    def has_many_unused_values(self, row: int) -> bool:
        """Return whether an id of the node in *row*, which was written last, shows that most values are unused.

        Each node has one list of taints, one set of features, and at most one value of a label.
        """
        set_columns = (self.columns.get("taint_set_id"), self.columns.get("feature_set_id"))
        largest_id: int = max(column.item(row) for column in (*set_columns, *self._label_columns.values()))
        return largest_id > 2 * len(self.names) + MAX_UNUSED_VALUES or self.symbols.has_many_label_keys

    def drop_unused_values(self) -> None:
        """Replace `symbols` by new ones without the taints, features and label values that no node has.

        All ids of these values change. Forks of the table keep the earlier symbols and ids.
        """
        self.symbols = self.symbols.without_node_values()
        self._label_columns, self._owned_label_columns = {}, set()  # a column is made when it is next read
        for row, node in enumerate(self.objects):
            self._write_set_ids(row, node)

    def grow_resource_columns(self) -> None:
        """Grow the columns `allocatable` and `requested` to all resources in `symbols`."""
        resource_count = len(self.symbols.resources)
        self.columns.grow_resource_columns("allocatable", resource_count)
        self.columns.grow_resource_columns("requested", resource_count)

    def remove(self, name: str) -> None:
        """Remove the node *name*; the last row moves into its row."""
        self._copy_shared_lists()
        row, last_row = self.row_by_name.pop(name), len(self.names) - 1
        self.row_map_version = RowMapVersion()
        self.images.remove(row, self.objects[row])
        if row != last_row:
            moved_node = self.objects[last_row]
            self.images.add(row, moved_node)  # first, so that its images keep their sizes
            self.images.remove(last_row, moved_node)
            self.names[row], self.objects[row] = self.names[last_row], moved_node
            self.row_by_name[self.names[row]] = row
        self.names.pop()
        self.objects.pop()
        self.columns.move_row(last_row, row)
        for key in self._label_columns:
            column = self._get_writable_label_column(key)
            column[row], column[last_row] = column[last_row], ABSENT

    def may_have_label(self, key: str) -> bool:
        """Return whether a node has the label *key*, or perhaps an earlier node had it."""
        return key in self._label_keys or key in self._label_columns

    def get_label_column(self, key: str) -> NDArray[np.int64]:
        """Return the column of node label *key* with spare rows: ids of its label values, or `ABSENT`."""
        column = self._label_columns.get(key)
        if column is None and key not in self._label_keys:
            # The rules of one pod may name a thousand labels that no node has.
            if len(self._absent_column) < self.columns.capacity:
                self._absent_column = np.full(self.columns.capacity, ABSENT, dtype=np.int64)
                self._absent_column.setflags(write=False)
            return self._absent_column
        if column is None or len(column) < self.columns.capacity:
            column = np.full(self.columns.capacity, ABSENT, dtype=np.int64)
            values = self.symbols.get_label_values(key)
            for row, node in enumerate(self.objects):
                value = node.metadata.labels.get(key)
                if value is not None:
                    column[row] = values.intern(value)
            if key not in self._label_columns and len(self._label_columns) >= MAX_LABEL_COLUMNS:
                oldest_key = next(iter(self._label_columns))
                del self._label_columns[oldest_key]
                self._owned_label_columns.discard(oldest_key)
            self._label_columns[key] = column
            self._owned_label_columns.add(key)
        return column

    def _get_writable_label_column(self, key: str) -> NDArray[np.int64]:
        column = self.get_label_column(key)
        if key not in self._owned_label_columns:
            column = self._label_columns[key] = column.copy()
            self._owned_label_columns.add(key)
        return column
