"""Groups of nodes on which a search for devices has the same result.

Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate (1.36).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from extender.api.kinds.node import Node
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, widen
from extender.cache.tables.history import HistoryPosition
from extender.cache.tables.node_table import RowMapVersion
from extender.dra.device_pools import Pool, SliceIndex
from extender.dra.errors import AllocationError
from extender.dra.resource_slices import PoolId

_UNKNOWN: Final = -1
_NODES_PER_TIMEOUT_CHECK: Final = 64


class NodeGroups:
    """The groups of the nodes, as small integers.

    Nodes with the same pools are one group if all these pools are shared. Each other node is a group.

    Attributes:
        versions: a number for each group that changes when a search may have another result: int64. The last entry is
            that of no group, so that the index -1 is valid.
        count: the number of groups, also of removed nodes.
    """

    def __init__(self, slice_index: SliceIndex) -> None:
        self._slice_index = slice_index
        self.versions: IntArray = np.zeros(16, dtype=np.int64)
        self.count = 0
        self._node_groups: dict[str, tuple[Node, int]] = {}
        self._groups_by_key: dict[tuple[str, tuple[Pool, ...]], int] = {}
        self._groups_by_pool: dict[PoolId, list[int]] = {}
        self._position: HistoryPosition | None = None
        self._groups_by_row: IntArray = np.empty(0, dtype=np.int64)
        self._row_map_version: RowMapVersion | None = None
        self._rows_by_name: Mapping[str, int] = {}

    def find(self, node: Node) -> int:
        """Return the group of *node*.

        Raises:
            AllocationError: a node selector of a slice is invalid.
        """
        name = node.metadata.name
        known = self._node_groups.get(name)
        if known is not None and known[0] is node:
            return known[1]
        pools = self._slice_index.get_pools_for_node(node)
        is_shared = all(pool.is_shared for pool in pools)
        key = ("" if is_shared else name, pools)
        group = self._groups_by_key.get(key)
        if group is None:
            group = self._groups_by_key[key] = self._add_group(pools)
        elif not is_shared:
            self.versions[group] += 1  # the result depends on the labels and features of the node
        self._node_groups[name] = node, group
        return group

    def _add_group(self, pools: Sequence[Pool]) -> int:
        group = self.count
        self.count += 1
        if self.count == len(self.versions):
            self.versions = widen(self.versions, 2 * self.count)
        for pool in pools:
            self._groups_by_pool.setdefault(pool.id, []).append(group)
        return group

    def find_all(self, nodes: NodeView, candidates: BoolArray, timed_out: Callable[[], bool]) -> IntArray:
        """Return the group of each node of *nodes*: int64; -1 for nodes whose group is not known.

        The groups of the *candidates* are known, except after a timeout and for nodes for which `find` fails.
        """
        snapshot = nodes.snapshot
        groups_by_row = self._update_rows(snapshot)
        unknown = candidates & (nodes.take(groups_by_row) == _UNKNOWN)
        rows = np.flatnonzero(unknown) if nodes.rows is None else nodes.rows[unknown]
        for number, row in enumerate(rows.tolist(), 1):
            if not number % _NODES_PER_TIMEOUT_CHECK and timed_out():
                break
            try:
                groups_by_row[row] = self.find(snapshot.nodes[row])
            except AllocationError:
                continue
        return nodes.take(groups_by_row)

    def _update_rows(self, snapshot: Snapshot) -> IntArray:
        position = self._position
        changed_rows = None if position is None else snapshot.find_changed_rows(position, nodes_only=True)
        if changed_rows is None or len(self._groups_by_row) != len(snapshot):
            self._groups_by_row = np.full(len(snapshot), _UNKNOWN)
        else:
            self._groups_by_row[changed_rows] = _UNKNOWN
        self._position = snapshot.position
        return self._groups_by_row

    def get_rows_by_name(self, snapshot: Snapshot) -> Mapping[str, int]:
        """Return the row of each node of *snapshot*. Later changes of the cluster do not change the result."""
        if self._row_map_version is not snapshot.row_map_version:
            self._row_map_version = snapshot.row_map_version
            self._rows_by_name = {name: row for row, name in enumerate(snapshot.names)}
        return self._rows_by_name

    def invalidate(self, pools: Sequence[PoolId] | None) -> None:
        """Change the versions of the groups with one of *pools*; None: of all groups."""
        if pools is None:
            self.versions += 1
            return
        for pool in set(pools):
            groups = self._groups_by_pool.get(pool)
            if groups is not None:
                self.versions[groups] += 1
