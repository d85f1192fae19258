"""Named columns with one entry for each node row. A fork copies a column when it first writes it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.cache.tables.arrays import widen

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
