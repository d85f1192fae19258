"""What an evaluation has cost so far.

The library counts rounds of loops alone. Functions that take long with long lists say what they cost, in the units of
Kubernetes, and an evaluation that has cost too much is stopped. The library hands its functions nothing that would
tell evaluations apart, so there is one meter; an evaluation begins by setting it to zero. Source: B123.
"""

from typing import Final

LIMIT: Final = 1_000_000
"""What one evaluation may cost (CELSelectorExpressionMaxCost)."""

EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
"""What is said of an evaluation that costs more."""


class Meter:
    """Counts what an evaluation costs."""

    __slots__ = ("_spent",)

    def __init__(self) -> None:
        self._spent = 0

    def reset(self) -> None:
        """An evaluation begins."""
        self._spent = 0

    def spend(self, amount: int) -> bool:
        """Count *amount*.

        Raises:
            ValueError: that is too much.
        """
        self._spent += max(0, amount)
        if self._spent > LIMIT:
            raise ValueError(EXCEEDED)
        return True


METER: Final = Meter()
"""Of the evaluation under way."""
