"""An LRU cache keyed by bytes and bounded by the total size of its keys."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class ByteLRU(Generic[T]):
    """LRU cache of values computed from byte strings, such as decoded JSON documents.

    Equal bytes get the same object, so the values must depend on the bytes alone and must not be mutated.
    """

    __slots__ = ("_entries", "_max_bytes", "_size")

    def __init__(self, max_bytes: int) -> None:
        """An empty cache. It evicts the least recently used values while the keys exceed *max_bytes* in total."""
        self._entries: OrderedDict[bytes, T] = OrderedDict()
        self._max_bytes = max_bytes
        self._size = 0

    def get_or_create(self, data: bytes, create: Callable[[bytes], T]) -> T:
        """Return the cached value of *data*, or create and cache it. If *create* raises, nothing is cached."""
        cached = self._entries.get(data)
        if cached is not None:
            self._entries.move_to_end(data)
            return cached
        value = create(data)
        self._entries[data] = value
        self._size += len(data)
        while self._size > self._max_bytes:
            evicted, _ = self._entries.popitem(last=False)
            self._size -= len(evicted)
        return value

    def __len__(self) -> int:
        return len(self._entries)
