"""Piecewise linear functions from utilization to score, configured by their points."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from extender.api.kinds.meta import Int32
from extender.cache.tables.arrays import IntArray
from extender.config.errors import FieldError, child, item
from extender.config.validation import make_invalid_value_error

MAX_UTILIZATION = 100
"""The highest utilization, in percent."""

_MAX_SCORE = 10
_SCALE = 10  # converts a configured score, 0 to 10, to a score of 0 to 100


class UtilizationShapePoint(msgspec.Struct, frozen=True, rename="camel"):
    """A point of the function.

    Attributes:
        utilization: percent, 0 to 100, greater than that of the previous point.
        score: the score at this utilization, 0 to 10.
    """

    utilization: Int32 = 0
    score: Int32 = 0


def validate_function_shape(shape: Sequence[UtilizationShapePoint], path: str) -> Iterator[FieldError]:
    """Yield the errors of *shape*; *path* is its field path.

    Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, validateFunctionShape (1.36).
    """
    if not shape:
        yield FieldError(path, "Required value: at least one point must be specified")
        return
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            field_path = child(item(path, index), "utilization")
            yield make_invalid_value_error(
                field_path, shape[index].utilization, "values must be sorted in increasing order"
            )
            break
    for index, point in enumerate(shape):
        limits = (("utilization", point.utilization, MAX_UTILIZATION), ("score", point.score, _MAX_SCORE))
        for key, value, maximum in limits:
            if not 0 <= value <= maximum:
                yield make_invalid_value_error(
                    child(item(path, index), key), value, f"not in valid range [0, {maximum}]"
                )


def build_broken_linear_function(shape: Sequence[UtilizationShapePoint]) -> IntArray:
    """Return the scores, 0 to 100, by utilization in percent: int64, shape (201,).

    Entries 0 to 100 are the scores at these utilizations. The function is constant before the first point and after
    the last. The other 100 entries repeat entry 0. They are for negative utilizations, which are possible only after an
    overflow. Their score is the score at 0, as upstream.

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.36).
    """
    scores = [_compute_score(utilization, shape) for utilization in range(MAX_UTILIZATION + 1)]
    return np.array([*scores, *(scores[:1] * MAX_UTILIZATION)], dtype=np.int64)


def _compute_score(utilization: int, shape: Sequence[UtilizationShapePoint]) -> int:
    previous = shape[0]
    for point in shape:
        if utilization <= point.utilization:
            if point is previous:
                return point.score * _SCALE
            dividend = (point.score - previous.score) * _SCALE * (utilization - previous.utilization)
            divisor = point.utilization - previous.utilization
            # Go's integer division truncates, so negative quotients are rounded up.
            quotient = dividend // divisor if dividend >= 0 else -(-dividend // divisor)
            return previous.score * _SCALE + quotient
        previous = point
    return previous.score * _SCALE
