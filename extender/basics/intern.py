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
