"""The limits of a search for a plan."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

DEFAULT_MAX_MOVES: Final = 20
DEFAULT_MAX_ATTEMPTS: Final = 100_000

SearchProgress = Callable[[int, int], None]
"""A function that is called with the number of finished parts of a search and the number of all parts."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The limits of a search.

    Attributes:
        max_moves: the maximum number of evictions.
        max_attempts: the maximum number of scheduling cycles and filter runs. With equal limits, equal clusters have
            equal plans on every machine.
    """

    max_moves: int = DEFAULT_MAX_MOVES
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
