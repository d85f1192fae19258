"""Logs of changed rows, positions in histories of writes, and the rows that differ between two positions.

A history is one sequence of writes to the tables of a cluster. The history of a hypothesis may branch off from that of
its snapshot. Rows that were written in neither history since the branch point are equal in both.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from extender.cache.tables.arrays import IntArray

_BLOCK_SIZE: Final = 1 << 12
_MAX_BLOCKS: Final = 32
"""Entries of a block, and the number of blocks. One large array would move in memory each time it grew."""


class ChangeLog:
    """An append-only log of row numbers. The oldest entries are dropped; other entries keep their positions."""

    def __init__(self) -> None:
        self._first_position = 0
        self._last_block = array("q")
        self._blocks = [self._last_block]  # all but the last one are full

    @property
    def position(self) -> int:
        """The number of changes since the log was created."""
        return self._first_position + (len(self._blocks) - 1) * _BLOCK_SIZE + len(self._last_block)

    def append(self, row: int) -> None:
        """Record a change of *row*."""
        block = self._last_block
        block.append(row)
        if len(block) == _BLOCK_SIZE:
            self._start_block()

    def extend(self, rows: IntArray) -> None:
        """Record a change of each of *rows*."""
        start = 0
        while start < len(rows):
            end = start + _BLOCK_SIZE - len(self._last_block)
            self._last_block.frombytes(rows[start:end].tobytes())
            if len(self._last_block) == _BLOCK_SIZE:
                self._start_block()
            start = end

    def _start_block(self) -> None:
        self._last_block = array("q")
        self._blocks.append(self._last_block)
        if len(self._blocks) > _MAX_BLOCKS:
            del self._blocks[0]
            self._first_position += _BLOCK_SIZE

    def invalidate(self) -> None:
        """Record that any row may have changed, because rows moved. Earlier positions become invalid."""
        self._first_position = self.position + 1
        self._last_block = array("q")
        self._blocks = [self._last_block]

    def get_rows_since(self, position: int) -> IntArray | None:
        """Return the distinct rows changed since *position*, ascending, int64; None if the log no longer has them."""
        start = position - self._first_position
        if start < 0:
            return None
        block_number, offset = divmod(start, _BLOCK_SIZE)
        rows = np.frombuffer(self._blocks[block_number][offset:], dtype=np.int64)
        if block_number + 1 < len(self._blocks):
            later_blocks = self._blocks[block_number + 1 :]
            rows = np.concatenate([rows, *(np.frombuffer(block, dtype=np.int64) for block in later_blocks)])
        if len(rows) <= 1:
            return rows
        rows = np.sort(rows)  # np.unique is many times slower for some hundred rows
        is_first = np.empty(len(rows), dtype=np.bool_)
        is_first[0] = True
        np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
        return rows[is_first]


class HistoryId:
    """The identity of a history, which is one sequence of writes. Two ids are equal only if they are one object.

    Attributes:
        branch_point: the position at which the history branched off from another one; None if it did not, or if rows
            of both histories must not be compared. The change logs of the history start at this position.
    """

    __slots__ = ("branch_point",)

    def __init__(self, branch_point: "HistoryPosition | None" = None) -> None:
        self.branch_point = branch_point


@dataclass(frozen=True, slots=True, eq=False)
class HistoryPosition:
    """The state of the tables at one time.

    Attributes:
        node_log: the change log of nodes in this history.
        pod_log: the change log of pods in this history.
        node_log_position, pod_log_position: the positions of the logs at that time.
    """

    history_id: HistoryId
    node_log: ChangeLog
    pod_log: ChangeLog
    node_log_position: int
    pod_log_position: int

    def find_changed_rows(self, other: "HistoryPosition", *, nodes_only: bool = False) -> IntArray | None:
        """Return the rows that may differ between this position and *other*: distinct, ascending, int64.

        Return None if any row may differ: the histories have nothing in common, or a log is too short. With
        *nodes_only*, changes of pods are ignored.
        """
        if other.history_id is self.history_id:  # nearly always, and for each pod
            return _read_logs([_find_range(self, other)], nodes_only=nodes_only)
        other_positions = {position.history_id: position for position in other._iterate_to_root()}  # noqa: SLF001
        ranges: list[_Range] = []
        for position in self._iterate_to_root():
            common_position = other_positions.get(position.history_id)
            if common_position is None:
                ranges.append((position, 0, 0))
                continue
            ranges.append(_find_range(position, common_position))
            for other_position in other_positions.values():
                if other_position is common_position:
                    break
                ranges.append((other_position, 0, 0))
            return _read_logs(ranges, nodes_only=nodes_only)
        return None

    def _iterate_to_root(self) -> "Iterator[HistoryPosition]":
        """Yield this position, the branch point of its history, the branch point of that one's, and so on."""
        position: HistoryPosition | None = self
        while position is not None:
            yield position
            position = position.history_id.branch_point


_Range: TypeAlias = tuple[HistoryPosition, int, int]
"""A history, and the first positions to read in its change logs of nodes and of pods."""


def _find_range(position: HistoryPosition, other: HistoryPosition) -> _Range:
    """Return the part of the logs since the earlier one of two positions of the same history."""
    node_start = min(position.node_log_position, other.node_log_position)
    return position, node_start, min(position.pod_log_position, other.pod_log_position)


def _read_logs(ranges: list[_Range], *, nodes_only: bool) -> IntArray | None:
    logged_rows = [position.node_log.get_rows_since(node_start) for position, node_start, _ in ranges]
    if not nodes_only:
        logged_rows += [position.pod_log.get_rows_since(pod_start) for position, _, pod_start in ranges]
    changed_rows: list[IntArray] = []
    for rows in logged_rows:
        if rows is None:
            return None
        if len(rows):
            changed_rows.append(rows)
    if len(changed_rows) < 2:
        return changed_rows[0] if changed_rows else np.empty(0, dtype=np.int64)
    return np.unique(np.concatenate(changed_rows))
