"""A log of the rows that changed, so that cached columns can be updated incrementally."""

from array import array

import numpy as np

from extender.cache.tables.arrays import IntArray

_MIN_RETAINED_CHANGES = 1 << 16


class ChangeLog:
    """An append-only log of row numbers. The oldest entries are dropped; other entries keep their positions."""

    __slots__ = ("_first_position", "_rows")

    def __init__(self) -> None:
        self._first_position = 0
        self._rows = array("q")

    @property
    def position(self) -> int:
        """The number of changes since the log was created."""
        return self._first_position + len(self._rows)

    def append(self, row: int) -> None:
        """Record a change of *row*."""
        rows = self._rows
        rows.append(row)
        if len(rows) > 2 * _MIN_RETAINED_CHANGES:
            del rows[:_MIN_RETAINED_CHANGES]
            self._first_position += _MIN_RETAINED_CHANGES

    def extend(self, rows: IntArray) -> None:
        """Record a change of each of *rows*."""
        self._rows.frombytes(rows.tobytes())
        if len(self._rows) > 2 * _MIN_RETAINED_CHANGES:
            self._first_position += len(self._rows) - _MIN_RETAINED_CHANGES
            del self._rows[:-_MIN_RETAINED_CHANGES]

    def invalidate(self) -> None:
        """Record that any row may have changed, because rows moved. Earlier positions become invalid."""
        self._first_position += len(self._rows) + 1
        self._rows = array("q")

    def get_rows_since(self, position: int) -> IntArray | None:
        """Return the distinct rows changed since *position*, int64; None if the log no longer covers them."""
        start = position - self._first_position
        if start < 0:
            return None
        rows = np.frombuffer(self._rows[start:], dtype=np.int64)
        if len(rows) <= 1:
            return rows
        rows = np.sort(rows)  # np.unique is many times slower for some hundred rows
        is_first = np.empty(len(rows), dtype=np.bool_)
        is_first[0] = True
        np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
        return rows[is_first]
