"""The cost of an evaluation.

The library limits only the iterations of loops. So functions that are slow with long lists add their cost, in
Kubernetes' units. An evaluation over the limit is cancelled. The library passes no evaluation context to functions. So
all evaluations use one meter, which is reset before each evaluation.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

from typing import Final

COST_LIMIT: Final = 1_000_000
"""The maximum cost of one evaluation (CELSelectorExpressionMaxCost)."""

COST_LIMIT_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
"""The error of an evaluation that exceeds the limit."""


class CostMeter:
    """Counts the cost of an evaluation, and keeps the error that ends it, whatever its result would be."""

    def __init__(self) -> None:
        self._total = 0
        self._failure = ""

    def reset(self) -> None:
        """Start a new evaluation."""
        self._total = 0
        self._failure = ""

    @property
    def final_error(self) -> str:
        """The error that ends the current evaluation, also on a side of `||` that the result ignores; else empty."""
        return COST_LIMIT_EXCEEDED if self.is_exceeded else self._failure

    def fail(self, message: str) -> None:
        """End the evaluation, as a panic ends one of cel-go.

        Raises:
            ValueError: always, with *message*.
        """
        self._failure = message
        raise ValueError(message)

    @property
    def is_exceeded(self) -> bool:
        """Whether the current evaluation has exceeded the limit."""
        return self._total > COST_LIMIT

    def spend(self, amount: int) -> bool:
        """Add *amount* to the cost; return True, so that the call can be part of a condition.

        Raises:
            ValueError: the limit is exceeded.
        """
        self._total += max(0, amount)
        if self.is_exceeded:
            raise ValueError(COST_LIMIT_EXCEEDED)
        return True


COST_METER: Final = CostMeter()
"""The meter of the current evaluation."""
