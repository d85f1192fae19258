"""A heap whose entries have keys, so that one can be looked up, replaced or taken out from the middle."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class KeyedHeap(Generic[T]):
    """Values by key, the smallest first; among equals the one that came first.

    Taken-out and replaced entries stay in the heap as husks until they surface, or until there are more husks than
    values.
    """

    __slots__ = ("_count", "_entries", "_heap", "_key", "_order")

    def __init__(self, key: Callable[[T], str], order: Callable[[T], Any]) -> None:
        """An empty heap.

        Args:
            key: the key of a value.
            order: what values are compared by; looked at when a value is put.
        """
        self._key, self._order = key, order
        self._count = count()
        self._heap: list[tuple[Any, int, str]] = []
        self._entries: dict[str, tuple[int, T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[T]:
        return (value for _, value in list(self._entries.values()))

    def get(self, key: str) -> T | None:
        """The value under *key*, or None."""
        entry = self._entries.get(key)
        return entry[1] if entry else None

    def put(self, value: T) -> None:
        """Add *value*, or put it in the place its order now says."""
        key, number = self._key(value), next(self._count)
        self._entries[key] = (number, value)
        heapq.heappush(self._heap, (self._order(value), number, key))
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapq.heapify(self._heap)

    def _is_current(self, entry: tuple[Any, int, str]) -> bool:
        known = self._entries.get(entry[2])
        return known is not None and known[0] == entry[1]

    def remove(self, key: str) -> T | None:
        """Take out and return the value under *key*; None if there is none."""
        entry = self._entries.pop(key, None)
        return entry[1] if entry else None

    def peek(self) -> T | None:
        """The smallest value, or None."""
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return self._entries[self._heap[0][2]][1] if self._heap else None

    def pop(self) -> T | None:
        """Take out and return the smallest value, or None."""
        value = self.peek()
        if value is not None:
            del self._entries[heapq.heappop(self._heap)[2]]
        return value
