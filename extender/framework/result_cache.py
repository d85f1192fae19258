"""Cache the results of Filter and Score plugins across scheduling cycles, in tables.

A table has the results of several plugins for the pods with equal cache keys: one row per plugin and one column per
node. Only changed nodes are evaluated again. Cached and fresh results are equal; a property test compares them.
Only results of plugins that implement `CacheableFilter` or `CacheableScore` are cached.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, TypeVar

import numpy as np

from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_errors import plugin_exceptions
from extender.framework.plugin_runner import PluginError, PluginRunner
from extender.framework.status import Reason, Rejection

_MAX_BYTES = 48 << 20
"""The approximate limit of the size of all tables of one kind, in bytes."""

_TABLE_BYTES = 2048
"""The approximate size of a table and its key without the entries of the nodes, in bytes."""

_MAX_POD_BYTES = 8 << 10
"""The size of a pod's signature in bytes above which its tables are not stored: their keys may be as large."""

_MAX_NODE_SETS = 4
"""The number of cached sets of feasible nodes."""

_MAX_PLANS = 64
"""The number of cached plans: a profile has one for each set of plugins that PreFilter or PreScore skips."""

TableT = TypeVar("TableT", bound="ResultTable")

TableKey = tuple[Any, ...]
"""The key of a table: a `PluginGroup`, and the cache key of a pod for each of its plugins."""


@dataclass(slots=True)
class FilterColumn:
    """The nodes that one plugin rejects for the pods of one cache key.

    Attributes:
        rejected: whether each node is rejected, bool, shape (number of nodes,).
        masks_by_reason: the nodes rejected for each reason, bool, shape (number of nodes,).
    """

    rejected: BoolArray
    masks_by_reason: dict[Reason, BoolArray] = field(default_factory=dict)

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.rejected)

    def write(self, rows: IntArray | slice, rejections: tuple[Rejection, ...]) -> None:
        """Replace the results of *rows* by *rejections*, whose masks have one entry per row."""
        if isinstance(rows, slice):
            self.masks_by_reason.clear()
        self.rejected[rows] = False
        for mask in self.masks_by_reason.values():
            mask[rows] = False
        for nodes, reason in rejections:
            reason_mask = self.masks_by_reason.get(reason)
            if reason_mask is None:
                if not nodes.any():
                    continue
                reason_mask = self.masks_by_reason[reason] = np.zeros(self.node_count, dtype=np.bool_)
            reason_mask[rows] |= nodes
            self.rejected[rows] |= nodes


@dataclass(frozen=True, slots=True, eq=False)
class NodeSet:
    """A set of nodes. Equal sets from one `ResultCache` are one object, so that callers can compare by identity.

    Attributes:
        mask: the nodes of the set, bool, shape (number of nodes,).
        rows: their rows, int64, ascending.
        is_all_nodes: whether the set has all nodes.
    """

    mask: BoolArray
    rows: IntArray
    is_all_nodes: bool

    @classmethod
    def from_mask(cls, mask: BoolArray) -> "NodeSet":
        """Create the set of the nodes in *mask*, which is copied if it is writable."""
        is_all_nodes = bool(np.count_nonzero(mask) == len(mask))
        rows = np.arange(len(mask), dtype=np.int64) if is_all_nodes else mask.nonzero()[0]
        return cls(mask.copy() if mask.flags.writeable else mask, rows, is_all_nodes)

    @property
    def selection(self) -> IntArray | slice:
        """An index that selects the nodes of the set from an array with one entry per node."""
        return slice(None) if self.is_all_nodes else self.rows

    def take(self, values: IntArray) -> IntArray:
        """Select the entries of the nodes of the set from *values*, with one entry per node. Do not modify them."""
        return values if self.is_all_nodes else values.take(self.rows)

    def copy(self, values: IntArray) -> IntArray:
        """Return a copy of the columns of the nodes of the set from *values*, shape (..., number of nodes)."""
        return values.copy() if self.is_all_nodes else values.take(self.rows, axis=-1)

    def view(self, snapshot: Snapshot) -> NodeView:
        """Return a view of these nodes in *snapshot*."""
        return snapshot.view(None if self.is_all_nodes else self.rows)


class ResultTable:
    """The results of some plugins, and the snapshot for which they are current.

    Args:
        depends_on: what the plugins depend on. Either all or none of them depend on pods.
        snapshot: the snapshot for which the results are current.
        entries_byte_count: the approximate size of the entries of the nodes.

    Attributes:
        byte_count: the approximate size of the table in bytes.
    """

    __slots__ = ("_depends_on_all_nodes", "_position", "byte_count", "depends_on_pods", "node_count")

    def __init__(self, depends_on: Iterable[DependsOn], snapshot: Snapshot, entries_byte_count: int) -> None:
        kinds = frozenset(depends_on)
        self.depends_on_pods = DependsOn.NODE_AND_PODS in kinds
        self._depends_on_all_nodes = DependsOn.ALL_NODES in kinds
        self._position, self.node_count = snapshot.position, len(snapshot)
        self.byte_count = _TABLE_BYTES + entries_byte_count

    def is_current(self, snapshot: Snapshot) -> bool:
        """Return whether the results are those of *snapshot*."""
        position, current = self._position, snapshot.position
        return (
            position.history_id is current.history_id
            and position.node_log_position == current.node_log_position
            and (not self.depends_on_pods or position.pod_log_position == current.pod_log_position)
        )

    def mark_current(self, snapshot: Snapshot) -> None:
        """Record that the results are those of *snapshot*."""
        self._position = snapshot.position

    def find_stale_rows(self, snapshot: Snapshot) -> IntArray | None:
        """Return the nodes to evaluate again for *snapshot*, as rows (int64); None: all nodes."""
        if self.node_count != len(snapshot):
            return None
        if self._depends_on_all_nodes:
            changed_nodes = snapshot.find_changed_rows(self._position, nodes_only=True)
            if changed_nodes is None or len(changed_nodes):
                return None
        stale_rows = snapshot.find_changed_rows(self._position, nodes_only=not self.depends_on_pods)
        return None if stale_rows is None or len(stale_rows) * 2 > self.node_count + 2 else stale_rows

    def update(self, pod: Any, snapshot: Snapshot, states: Mapping[str, Any], runner: PluginRunner) -> bool:
        """Evaluate the stale nodes again; return False if all nodes are stale.

        Raises:
            PluginError: a plugin failed. The table is unchanged.
        """
        rows = self.find_stale_rows(snapshot)
        if rows is None:
            return False
        if len(rows):
            self._evaluate(rows, pod, snapshot.view(rows), states, runner)
        self.mark_current(snapshot)
        return True

    def _evaluate(
        self, rows: IntArray, pod: Any, view: NodeView, states: Mapping[str, Any], runner: PluginRunner
    ) -> None:
        """Run the plugins on the nodes of *rows*, which are those of *view*, and write the results.

        Raises:
            NotImplementedError: the class of the table does not define this method.
            PluginError: a plugin failed. The table is unchanged.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class PluginGroup:
    """The plugins of the tables of one kind.

    Attributes:
        entries: the plugins, or other entries of a profile, by row of a table.
        get_keys: the methods that return the plugins' cache keys.
    """

    entries: tuple[Any, ...]
    get_keys: tuple[Callable[[Any], Hashable | None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """The division of the plugins of an extension point into tables.

    Plugins that depend on pods and plugins that do not are in different tables, because their results become stale at
    different times.

    Attributes:
        source: the entries of the profile.
        entries: the entries of the plugins that run, in order.
        groups: the plugins of each table.
        uncached: the entries of plugins without a table, in order.
    """

    source: tuple[Any, ...]
    entries: tuple[Any, ...]
    groups: tuple[PluginGroup, ...]
    uncached: tuple[Any, ...]


FoundTables = tuple[TablePlan, list[tuple[TableKey, TableT | None]], dict[str, PluginError]]
"""The result of `TableStore.find`."""


class TableStore(Generic[TableT]):
    """The tables of one extension point.

    *point* is `Filter` or `Score`; *get_plugin* returns the plugin of an entry of a profile.
    """

    def __init__(self, point: str, runner: PluginRunner, get_plugin: Callable[[Any], Any]) -> None:
        self._point, self._runner, self._get_plugin = point, runner, get_plugin
        self._plans: dict[Hashable, TablePlan] = {}
        self._tables: dict[TableKey, TableT] = {}
        self._rng = Random(0)  # noqa: S311  the choice of evicted tables changes no result

    def find(self, entries: tuple[Any, ...], skipped: frozenset[str], pod: Any) -> FoundTables[TableT]:
        """Return the tables for *pod*.

        *entries* are those of the profile, always the same tuple for one profile. The plugins named in *skipped* do not
        run.

        Returns:
            The plan that the tables follow; the key of each table with the table, or with None if there is none yet;
            and the errors of plugins without a valid key, by plugin name. These plugins have no table.
        """
        plan = self._get_plan(entries, skipped, frozenset())
        found: list[tuple[TableKey, TableT | None]] = []
        try:
            for group in plan.groups:
                key = (group, *[get_key(pod) for get_key in group.get_keys])
                if None in key:
                    break
                found.append((key, self._tables.get(key)))
            else:
                return plan, found, {}
        except plugin_exceptions():  # the method that raised is called again below
            pass
        return self._find_for_valid_keys(plan, skipped, pod)

    def _find_for_valid_keys(self, plan: TablePlan, skipped: frozenset[str], pod: Any) -> FoundTables[TableT]:
        """Return the tables of the plugins that return a valid key for *pod*."""
        uncached, errors = set[str](), dict[str, PluginError]()
        for group in plan.groups:
            for entry, get_key in zip(group.entries, group.get_keys, strict=True):
                plugin = self._get_plugin(entry)
                try:
                    if self._runner.get_cache_key(plugin, self._point, get_key, pod) is None:
                        uncached.add(plugin.name)
                except PluginError as error:
                    errors[plugin.name] = error
        plan = self._get_plan(plan.source, skipped, frozenset(uncached.union(errors)))
        keys = [(group, *[get_key(pod) for get_key in group.get_keys]) for group in plan.groups]
        return plan, [(key, self._tables.get(key)) for key in keys], errors

    def _get_plan(self, entries: tuple[Any, ...], skipped: frozenset[str], uncached: frozenset[str]) -> TablePlan:
        """Return the plan of *entries*, without *skipped* plugins and with no tables for *uncached* plugins."""
        key = id(entries), skipped, uncached  # the plan has a reference to the entries, so the id stays valid
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
                self._tables.clear()
            plan = self._plans[key] = self._make_plan(entries, skipped, uncached)
        return plan

    def _make_plan(self, source: tuple[Any, ...], skipped: frozenset[str], uncached: frozenset[str]) -> TablePlan:
        prefix = self._point.lower()
        entries = tuple(entry for entry in source if self._get_plugin(entry).name not in skipped)
        on_nodes, on_pods, others = list[Any](), list[Any](), list[Any]()
        for entry in entries:
            plugin = self._get_plugin(entry)
            if plugin.name in uncached or getattr(plugin, f"{prefix}_cache_key", None) is None:
                others.append(entry)
            elif getattr(plugin, f"{prefix}_depends_on") is DependsOn.NODE_AND_PODS:
                on_pods.append(entry)
            else:
                on_nodes.append(entry)
        groups = [
            PluginGroup(tuple(group), tuple(getattr(self._get_plugin(entry), f"{prefix}_cache_key") for entry in group))
            for group in (on_nodes, on_pods)
            if group
        ]
        return TablePlan(source, entries, tuple(groups), tuple(others))

    def add(self, key: TableKey, table: TableT, pod_bytes: int = 0) -> None:
        """Store *table*, and evict random tables if there are too many. A pod with many *pod_bytes* has no table."""
        if pod_bytes > _MAX_POD_BYTES:
            return
        max_tables = max(16, _MAX_BYTES // table.byte_count)
        self._tables.pop(key, None)
        excess_count = len(self._tables) + 1 - max_tables
        if excess_count > 0:
            # Evict random tables: if the keys repeat in a cycle, the oldest table is the one that is needed next. Evict
            # several of many tables, because listing the keys takes time.
            evicted_count = max(excess_count, len(self._tables) // 64)
            for evicted_key in self._rng.sample(list(self._tables), evicted_count):
                del self._tables[evicted_key]
        self._tables[key] = table


class ResultCache:
    """Whether results are cached, and the cached node sets of one plugin runtime. Not thread-safe."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self._node_sets: list[NodeSet] = []

    def get_node_set(self, mask: BoolArray) -> NodeSet:
        """Return the set of the nodes in *mask* (bool, shape (number of nodes,)). An equal cached set is reused."""
        count = np.count_nonzero(mask)
        for node_set in self._node_sets:
            if mask is node_set.mask or (
                len(node_set.rows) == count
                and len(node_set.mask) == len(mask)
                and not np.count_nonzero(node_set.mask != mask)
            ):
                return node_set
        del self._node_sets[_MAX_NODE_SETS - 1 :]
        self._node_sets.insert(0, NodeSet.from_mask(mask))
        return self._node_sets[0]
