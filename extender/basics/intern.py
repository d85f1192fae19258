"""Intern values: map them to small integer ids, or replace equal values by one shared object."""

from collections.abc import Hashable, Iterator
from itertools import chain, islice
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Two-way mapping between values and small integer ids. An id is never reused for another value."""

    __slots__ = ("_ids", "_values")

    def __init__(self, values: tuple[T, ...] = ()) -> None:
        self._ids: dict[T, int] = {}
        self._values: list[T] = []
        for value in values:
            self.intern(value)

    def intern(self, value: T) -> int:
        """Return the id of *value*; a new value gets the next id."""
        value_id = self.get(value)
        if value_id is None:
            value_id = self._ids[value] = len(self)
            self._values.append(value)
        return value_id

    def get(self, value: T) -> int | None:
        """Return the id of *value*, or None if it has none."""
        return self._ids.get(value)

    def __getitem__(self, value_id: int) -> T:
        return self._values[value_id]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return iter(self._values)


class InternerFork(Interner[T]):
    """A fork of an interner: has its values, and the values that are added to the fork itself.

    The original does not get the values of the fork, and the fork does not get later values of the original.
    """

    __slots__ = ("_original", "_original_length")

    def __init__(self, original: Interner[T]) -> None:
        super().__init__()
        self._original, self._original_length = original, len(original)

    def get(self, value: T) -> int | None:
        """Return the id of *value*, or None if it has none."""
        value_id = self._original.get(value)
        return value_id if value_id is not None and value_id < self._original_length else self._ids.get(value)

    def __getitem__(self, value_id: int) -> T:
        position = value_id - self._original_length
        return self._original[value_id] if position < 0 else self._values[position]

    def __len__(self) -> int:
        return self._original_length + len(self._values)

    def __iter__(self) -> Iterator[T]:
        return chain(islice(self._original, self._original_length), self._values)


class InternPool(Generic[T]):
    """Replaces equal immutable values by one shared object to save memory."""

    __slots__ = ("_max_size", "_values")

    def __init__(self, max_size: int = 1 << 16) -> None:
        """Create an empty pool, which is cleared when it has more than *max_size* values."""
        self._values: dict[T, T] = {}
        self._max_size = max_size

    def intern(self, value: T) -> T:
        """Return the pooled object that equals *value*; add *value* if there is none."""
        if len(self._values) > self._max_size:
            self._values.clear()
        return self._values.setdefault(value, value)
