"""A heap whose values can be looked up, replaced and removed by key."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class KeyedHeap(Generic[T]):
    """Min-heap of values with unique keys. Values with equal sort keys are in insertion order.

    Removing or replacing a value leaves a stale entry in the heap. A stale entry is dropped when it reaches the top.
    All stale entries are dropped when they outnumber the values.

    Source: pkg/scheduler/backend/heap/heap.go, Heap (1.36).
    """

    __slots__ = ("_entries", "_heap", "_key", "_sequence", "_sort_key")

    def __init__(self, key: Callable[[T], str], sort_key: Callable[[T], Any]) -> None:
        """Create an empty heap.

        *key* returns the key of a value, and *sort_key* its sort key, once, when the value is added.
        """
        self._key, self._sort_key = key, sort_key
        self._sequence = count()
        self._heap: list[tuple[Any, int, str]] = []
        self._entries: dict[str, tuple[int, T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[T]:
        return (value for _, value in list(self._entries.values()))

    def get(self, key: str) -> T | None:
        """Return the value of *key*, or None."""
        entry = self._entries.get(key)
        return entry[1] if entry else None

    def add_or_update(self, value: T) -> None:
        """Add *value*, or replace the value of the same key."""
        key, number = self._key(value), next(self._sequence)
        self._entries[key] = (number, value)
        heapq.heappush(self._heap, (self._sort_key(value), number, key))
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapq.heapify(self._heap)

    def _is_current(self, entry: tuple[Any, int, str]) -> bool:
        current = self._entries.get(entry[2])
        return current is not None and current[0] == entry[1]

    def remove(self, key: str) -> T | None:
        """Remove and return the value of *key*; None if it is missing."""
        entry = self._entries.pop(key, None)
        return entry[1] if entry else None

    def peek(self) -> T | None:
        """Return the smallest value, or None if the heap is empty."""
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return self._entries[self._heap[0][2]][1] if self._heap else None

    def pop(self) -> T | None:
        """Remove and return the smallest value, or None if the heap is empty."""
        value = self.peek()
        if value is not None:
            del self._entries[heapq.heappop(self._heap)[2]]
        return value
