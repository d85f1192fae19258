"""An object that remembers what follows from it."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Memo:
    """Remembers, by any key, what was worked out once, as long as it lives."""

    __slots__ = ("_memo",)

    def __init__(self) -> None:
        self._memo: dict[Hashable, Any] = {}

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """What *make* returned the first time it was asked for under *key*; for what depends on this object alone."""
        try:
            return cast("T", self._memo[key])
        except KeyError:
            made = self._memo[key] = make()
            return made
