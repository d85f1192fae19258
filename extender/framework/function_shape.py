"""A score as a function of utilization, drawn through points: shared by every plugin that lets the user draw one.

Source: B039, G039.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from extender.cluster.arrays import IntArray
from extender.config.faults import Fault
from extender.config.paths import child, item
from extender.config.strict import Int32
from extender.config.validate import invalid

MAX_UTILIZATION = 100
"""Utilization is in percent."""

_MAX_SCORE = 10
_SCALE = 10  # a written score of 10 is a score of 100


class UtilizationShapePoint(msgspec.Struct, frozen=True, rename="camel"):
    """A point of the function.

    Attributes:
        utilization: in percent, 0 to 100; rises from point to point.
        score: at that utilization, 0 to 10.
    """

    utilization: Int32 = 0
    score: Int32 = 0


def shape_faults(shape: Sequence[UtilizationShapePoint], path: str) -> Iterator[Fault]:
    """What is wrong with *shape*, which stands at *path*. Source: G039."""
    if not shape:
        yield Fault(path, "Required value: at least one point must be specified")
        return
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            where = child(item(path, index), "utilization")
            yield invalid(where, shape[index].utilization, "values must be sorted in increasing order")
            break
    for index, point in enumerate(shape):
        limits = (("utilization", point.utilization, MAX_UTILIZATION), ("score", point.score, _MAX_SCORE))
        for key, value, most in limits:
            if not 0 <= value <= most:
                yield invalid(child(item(path, index), key), value, f"not in valid range [0, {most}]")


def drawn(shape: Sequence[UtilizationShapePoint]) -> IntArray:
    """The function's values, 0 to 100, at every whole utilization: int64, shape (201,).

    The entries 0 to 100 belong to those utilizations. The 100 after them repeat the first, so that a negative
    utilization, which only an overflow can give, is answered like 0, as upstream. Before the first point and after
    the last the function is level. Source: B039.
    """
    values = [_at(utilization, shape) for utilization in range(MAX_UTILIZATION + 1)]
    return np.array([*values, *(values[:1] * MAX_UTILIZATION)], dtype=np.int64)


def _at(utilization: int, shape: Sequence[UtilizationShapePoint]) -> int:
    before = shape[0]
    for point in shape:
        if utilization <= point.utilization:
            if point is before:
                return point.score * _SCALE
            rise = (point.score - before.score) * _SCALE * (utilization - before.utilization)
            run = point.utilization - before.utilization
            # Go divides towards zero, so a falling line is rounded up.
            step = rise // run if rise >= 0 else -(-rise // run)
            return before.score * _SCALE + step
        before = point
    return before.score * _SCALE
