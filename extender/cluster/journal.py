"""Which rows were written, in order, so that a cached column can be brought up to date row by row."""

from array import array

import numpy as np

from extender.cluster.arrays import IntArray

_KEEP = 1 << 16


class Journal:
    """An append-only list of row numbers; positions in it stay valid, its oldest part is forgotten."""

    __slots__ = ("_base", "_rows")

    def __init__(self) -> None:
        self._base = 0
        self._rows = array("q")

    @property
    def position(self) -> int:
        """How many writes there have been."""
        return self._base + len(self._rows)

    def wrote(self, row: int) -> None:
        """Row *row* was written."""
        rows = self._rows
        rows.append(row)
        if len(rows) > 2 * _KEEP:
            del rows[:_KEEP]
            self._base += _KEEP

    def wrote_all(self, rows: IntArray) -> None:
        """All of *rows* were written."""
        self._rows.frombytes(rows.tobytes())
        if len(self._rows) > 2 * _KEEP:
            self._base += len(self._rows) - _KEEP
            del self._rows[:-_KEEP]

    def forget(self) -> None:
        """Every row may have changed (rows moved): no position before this one can be caught up from."""
        self._base += len(self._rows) + 1
        self._rows = array("q")

    def since(self, position: int) -> IntArray | None:
        """The distinct rows written since *position*, int64, or None if that is too long ago to say."""
        start = position - self._base
        if start < 0:
            return None
        rows = np.frombuffer(self._rows[start:], dtype=np.int64)
        if len(rows) <= 1:
            return rows
        rows = np.sort(rows)  # np.unique hashes, which takes many times as long for some hundred rows
        first = np.empty(len(rows), dtype=np.bool_)
        first[0] = True
        np.not_equal(rows[1:], rows[:-1], out=first[1:])
        return rows[first]
