"""A dictionary whose forks share values until one of them writes."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class CowDict(Generic[K, V]):
    """Copy-on-write mapping of keys to mutable values.

    `fork` costs nothing; the first write after it copies the outer dictionary, and the first write to a value
    copies that value.
    Only the fork may be written afterwards: the original belongs to whoever still reads it.
    """

    __slots__ = ("_copy", "_data", "_mine", "_owns_outer")

    def __init__(self, copy: Callable[[V], V]) -> None:
        self._copy = copy
        self._data: dict[K, V] = {}
        self._mine: set[K] | None = None  # None: never forked, every value is ours
        self._owns_outer = True

    def fork(self) -> "CowDict[K, V]":
        """A second mapping with the same content, which may be written without touching this one."""
        child: CowDict[K, V] = CowDict(self._copy)
        child._data = self._data
        child._mine = set()
        child._owns_outer = False
        return child

    def get(self, key: K) -> V | None:
        """The value to read under *key*, or None; never write to it."""
        return self._data.get(key)

    def get_all(self, keys: Iterable[K]) -> Iterator[V | None]:
        """What `get` gives for each of *keys*."""
        return map(self._data.get, keys)

    def __contains__(self, key: K) -> bool:
        return key in self._data

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[K]:
        return iter(self._data)

    def items(self) -> Iterator[tuple[K, V]]:
        """Keys and values to read."""
        return iter(self._data.items())

    def values(self) -> Iterator[V]:
        """Values to read."""
        return iter(self._data.values())

    def _own_outer(self) -> None:
        if not self._owns_outer:
            self._data = dict(self._data)
            self._owns_outer = True

    def writable(self, key: K, make: Callable[[], V]) -> V:
        """The value under *key* to write to: copied first if it is shared, made by *make* if there was none."""
        if self._mine is None:
            value = self._data.get(key)
            if value is None:
                value = self._data[key] = make()
            return value
        if key in self._mine:
            return self._data[key]
        self._own_outer()
        shared = self._data.get(key)
        value = self._data[key] = make() if shared is None else self._copy(shared)
        self._mine.add(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Set *key* to a value that is ours from now on."""
        self._own_outer()
        self._data[key] = value
        if self._mine is not None:
            self._mine.add(key)

    def drop(self, key: K) -> None:
        """Forget *key*; nothing happens if it is unknown."""
        if key in self._data:
            self._own_outer()
            del self._data[key]
            if self._mine is not None:
                self._mine.discard(key)
