"""Named columns with one entry a node row, shared between forks until written."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.cluster.arrays import widened

_START = 64


class Columns:
    """A set of arrays whose last axis is the node row; capacity doubles, rows are dense (0 to the number of nodes - 1).

    A fork shares all arrays; the first write to one copies it. Rows past the number of nodes hold zeros.
    """

    __slots__ = ("_arrays", "_owned", "capacity")

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}
        self._owned: set[str] = set()
        self.capacity = _START

    def add(self, name: str, *, dtype: Any = np.int64, rows: int | None = None) -> None:
        """Add a column of zeros; *rows* gives it a leading axis (one contiguous line per resource, say)."""
        shape = (self.capacity,) if rows is None else (rows, self.capacity)
        self._arrays[name] = np.zeros(shape, dtype=dtype)
        self._owned.add(name)

    def fork(self) -> "Columns":
        """The same columns, to be written without touching these."""
        child = Columns()
        child._arrays = dict(self._arrays)
        child.capacity = self.capacity
        return child

    def read(self, name: str) -> NDArray[Any]:
        """The whole array, spare rows included; never write to it."""
        return self._arrays[name]

    def write(self, name: str) -> NDArray[Any]:
        """The whole array, to write to."""
        if name not in self._owned:
            self._arrays[name] = self._arrays[name].copy()
            self._owned.add(name)
        return self._arrays[name]

    def reserve(self, rows: int) -> None:
        """Make room for *rows* node rows."""
        if rows <= self.capacity:
            return
        while self.capacity < rows:
            self.capacity *= 2
        for name, array in self._arrays.items():
            self._arrays[name] = widened(array, self.capacity)
            self._owned.add(name)

    def deepen(self, name: str, lines: int) -> None:
        """Give the two-dimensional column *name* at least *lines* lines (a new resource was seen)."""
        array = self._arrays[name]
        if array.shape[0] >= lines:
            return
        grown = np.zeros((max(lines, array.shape[0] * 2), self.capacity), dtype=array.dtype)
        grown[: array.shape[0]] = array
        self._arrays[name] = grown
        self._owned.add(name)

    def move(self, source: int, target: int) -> None:
        """Copy row *source* over row *target* and clear *source*."""
        for name in self._arrays:
            array = self.write(name)
            if source != target:
                array[..., target] = array[..., source]
            array[..., source] = 0
