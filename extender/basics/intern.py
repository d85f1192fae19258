"""Interning: a thing gets a small integer the first time it is seen, and keeps it."""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Things to small integers and back; grows, never forgets, so an id stays valid wherever it was written down."""

    __slots__ = ("_ids", "_things")

    def __init__(self, things: tuple[T, ...] = ()) -> None:
        self._ids: dict[T, int] = {}
        self._things: list[T] = []
        for thing in things:
            self.id(thing)

    def id(self, thing: T) -> int:
        """The id of *thing*, given out now if it is new."""
        found = self._ids.get(thing)
        if found is None:
            found = self._ids[thing] = len(self._things)
            self._things.append(thing)
        return found

    def find(self, thing: T) -> int | None:
        """The id of *thing*, or None if it was never seen."""
        return self._ids.get(thing)

    def __getitem__(self, number: int) -> T:
        return self._things[number]

    def __len__(self) -> int:
        return len(self._things)

    def __iter__(self) -> Iterator[T]:
        return iter(self._things)


class Pool(Generic[T]):
    """Equal immutable things, each kept once; the memory of all that is decoded again and again."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int = 1 << 16) -> None:
        """Forget everything when there are more than *most*; who has a thing keeps it."""
        self._known: dict[T, T] = {}
        self._most = most

    def of(self, thing: T) -> T:
        """*thing*, or its equal that was asked for before."""
        if len(self._known) > self._most:
            self._known.clear()
        return self._known.setdefault(thing, thing)
