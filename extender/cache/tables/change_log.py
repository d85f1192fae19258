"""A log of the rows that changed, so that cached results can be updated incrementally."""

from array import array
from typing import Final

import numpy as np

from extender.cache.tables.arrays import IntArray

_BLOCK_SIZE: Final = 1 << 12
_MAX_BLOCKS: Final = 32
"""Entries of a block, and the number of blocks. One large array would move in memory each time it grew."""


class ChangeLog:
    """An append-only log of row numbers. The oldest entries are dropped; other entries keep their positions."""

    __slots__ = ("_blocks", "_first_position", "_last_block")

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
        """Return the distinct rows changed since *position*, int64; None if the log no longer covers them."""
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
