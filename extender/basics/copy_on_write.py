"""A copy-on-write dictionary: a fork shares values with its original until it writes them."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class CopyOnWriteDict(Generic[K, V]):
    """Copy-on-write mapping of keys to mutable values.

    `fork` takes constant time. The first write to a fork copies the dictionary, and the first write to a value copies
    that value. After a fork, the original may only be read.
    """

    __slots__ = ("_copy", "_data", "_owned_keys", "_owns_dict")

    def __init__(self, copy: Callable[[V], V]) -> None:
        self._copy = copy
        self._data: dict[K, V] = {}
        self._owned_keys: set[K] | None = None  # None: not a fork, so every value is owned
        self._owns_dict = True

    def fork(self) -> "CopyOnWriteDict[K, V]":
        """Return a mapping with the same content that can be written without changing this one."""
        child: CopyOnWriteDict[K, V] = CopyOnWriteDict(self._copy)
        child._data = self._data
        child._owned_keys = set()
        child._owns_dict = False
        return child

    def get(self, key: K) -> V | None:
        """Return the value of *key* for reading only, or None."""
        return self._data.get(key)

    def get_all(self, keys: Iterable[K]) -> Iterator[V | None]:
        """Return an iterator over the values of *keys* for reading only; None for a missing key."""
        return map(self._data.get, keys)

    def __contains__(self, key: K) -> bool:
        return key in self._data

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[K]:
        return iter(self._data)

    def items(self) -> Iterator[tuple[K, V]]:
        """Return an iterator over keys and values, for reading only."""
        return iter(self._data.items())

    def values(self) -> Iterator[V]:
        """Return an iterator over the values, for reading only."""
        return iter(self._data.values())

    def _own_dict(self) -> None:
        if not self._owns_dict:
            self._data = dict(self._data)
            self._owns_dict = True

    def get_writable(self, key: K, create: Callable[[], V]) -> V:
        """Return the value of *key* for writing. A shared value is copied first; *create* makes a missing value."""
        if self._owned_keys is None:
            value = self._data.get(key)
            if value is None:
                value = self._data[key] = create()
            return value
        if key in self._owned_keys:
            return self._data[key]
        self._own_dict()
        shared_value = self._data.get(key)
        value = self._data[key] = create() if shared_value is None else self._copy(shared_value)
        self._owned_keys.add(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Set *key* to *value*, and take ownership of *value*."""
        self._own_dict()
        self._data[key] = value
        if self._owned_keys is not None:
            self._owned_keys.add(key)

    def remove(self, key: K) -> None:
        """Remove *key* if it exists."""
        if key in self._data:
            self._own_dict()
            del self._data[key]
            if self._owned_keys is not None:
                self._owned_keys.discard(key)
