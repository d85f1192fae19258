"""A base class for objects with a cache of derived values."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Memo:
    """Caches derived values by key for the lifetime of the object."""

    __slots__ = ("_memo",)

    def __init__(self) -> None:
        self._memo: dict[Hashable, Any] = {}

    def get_or_create(self, key: Hashable, create: Callable[[], T]) -> T:
        """Return the value of *key*, or create and cache it. The value must depend only on this object and *key*."""
        try:
            return cast("T", self._memo[key])
        except KeyError:
            value = self._memo[key] = create()
            return value
