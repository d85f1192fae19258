"""How full a node would be, as a score from 0 to 100: the three scoring strategies of NodeResourcesFit.

All arithmetic is upstream's: int64 that wraps around, divided towards zero. Source: B035 to B040.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.snapshot import NodeView
from extender.framework.function_shape import MAX_UTILIZATION, UtilizationShapePoint, drawn
from extender.framework.scored_resources import ScoredResource

Strategy = Callable[[Sequence[ScoredResource], NodeView], IntArray]
"""Scores of the nodes of a view, int64, by the resources that count for a pod."""

_Rate = Callable[[IntArray, IntArray], IntArray]
"""One resource's score, by what would be taken of it, which may be overwritten, and its capacity, nowhere 0."""

_RateOfOne = Callable[[int, int], int]
"""The same for one node, in plain integers."""

_MOST: Final = 100
_COARSE: Final = 2**53
_OVERFLOWS: Final = 2**56
"""A hundred times such an amount may not fit into 63 bits."""


def _is_exact(amounts: IntArray) -> bool:
    """Whether quotients of such amounts are whole where floats are: a float is too coarse for more than 53 bits."""
    return not len(amounts) or bool(amounts.view(np.uint64).max() < _COARSE)  # unsigned, negative ones are the greatest


def _quotient(dividend: IntArray, divisor: IntArray | int) -> IntArray:
    """*dividend* / *divisor* as Go divides int64; *divisor* is above 0."""
    if isinstance(divisor, np.ndarray) and _is_exact(dividend) and _is_exact(divisor):
        return (dividend / divisor).astype(np.int64)  # a few times as fast
    result: IntArray = dividend // divisor
    negative = dividend < 0
    if np.count_nonzero(negative):  # only after an overflow
        result += negative & (result * divisor != dividend)
    return result


def _free_share(requested: IntArray, capacity: IntArray) -> IntArray:
    used = np.minimum(requested, capacity, out=requested)
    free = np.subtract(capacity, used, out=used)
    free *= _MOST
    return _quotient(free, capacity)


def _used_share(requested: IntArray, capacity: IntArray) -> IntArray:
    used = np.minimum(requested, capacity, out=requested)
    used *= _MOST
    return _quotient(used, capacity)


def _sums(
    resources: Sequence[ScoredResource], nodes: NodeView, rate: _Rate, *, zero_counts: bool = True
) -> tuple[IntArray, IntArray | int]:
    """Scores times weights and the weights, each summed over the resources that a node has.

    Args:
        resources: what counts.
        nodes: the view.
        rate: one resource's score.
        zero_counts: whether a resource with a score of 0 counts.
    """
    total: IntArray | None = None
    weights: IntArray | int = 0
    for resource in resources:
        capacity = resource.capacity(nodes)
        offering = np.count_nonzero(capacity)
        if not offering:
            continue
        counts: BoolArray | None = None
        if offering < len(capacity):
            counts = capacity != 0
            capacity = np.maximum(capacity, 1)
        scores = rate(resource.taken(nodes) + resource.request, capacity)
        if not zero_counts:
            positive = scores > 0
            counts = positive if counts is None else positive & counts
        weight: IntArray | int = resource.weight if counts is None else counts * np.int64(resource.weight)
        if counts is not None or weight != 1:
            scores *= weight
        total = scores if total is None else np.add(total, scores, out=total)
        weights = weights + weight
    return np.zeros(len(nodes), dtype=np.int64) if total is None else total, weights


def _divisor(weights: IntArray | int) -> IntArray | int:
    """*weights* with 1 for 0: where no resource counts the sum of the scores is 0 as well."""
    return max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)


def _mean_of_one(resources: Sequence[ScoredResource], nodes: NodeView, row: int, rate: _RateOfOne) -> int | None:
    """The weighted mean of *rate* for the only *row* of *nodes*; None where int64 might overflow."""
    total = weights = 0
    for resource in resources:
        taken, capacity = resource.of_row(nodes, row)
        if capacity:
            requested = taken + resource.request
            if not (0 <= requested < _OVERFLOWS and 0 < capacity < _OVERFLOWS):
                return None
            total += rate(requested, capacity) * resource.weight
            weights += resource.weight
    return total // weights if weights else 0


def _mean(resources: Sequence[ScoredResource], nodes: NodeView, rate: _Rate, rate_of_one: _RateOfOne) -> IntArray:
    """The weighted mean of *rate*; by *rate_of_one* for one node, as it is after each placement."""
    if nodes.only is not None:
        mean = _mean_of_one(resources, nodes, nodes.only, rate_of_one)
        if mean is not None:
            return np.array([mean], dtype=np.int64)
    total, weights = _sums(resources, nodes, rate)
    return _quotient(total, _divisor(weights))


def least_allocated(resources: Sequence[ScoredResource], nodes: NodeView) -> IntArray:
    """The weighted mean of what would be left of each resource, in percent, 0 at least. Source: B037."""
    return _mean(resources, nodes, _free_share, lambda used, capacity: max(capacity - used, 0) * _MOST // capacity)


def most_allocated(resources: Sequence[ScoredResource], nodes: NodeView) -> IntArray:
    """The weighted mean of what would be taken of each resource, in percent, 100 at most. Source: B038."""
    return _mean(resources, nodes, _used_share, lambda used, capacity: min(used, capacity) * _MOST // capacity)


def requested_to_capacity_ratio(shape: Sequence[UtilizationShapePoint]) -> Strategy:
    """The strategy that rates what would be taken of each resource by the function through the points of *shape*.

    Resources with a score of 0 do not count; the weighted mean of the others is rounded, halves up. Source: B039.
    """
    curve = drawn(shape)

    def rate(requested: IntArray, capacity: IntArray) -> IntArray:
        over = requested > capacity
        requested *= MAX_UTILIZATION
        utilization = _quotient(requested, capacity)
        np.copyto(utilization, MAX_UTILIZATION, where=over)
        return curve[np.clip(utilization, 0, MAX_UTILIZATION, out=utilization)]  # outside only after an overflow

    def strategy(resources: Sequence[ScoredResource], nodes: NodeView) -> IntArray:
        total, weights = _sums(resources, nodes, rate, zero_counts=False)
        mean = total / _divisor(weights)
        whole = np.floor(mean)
        whole += mean - whole >= 0.5
        return whole.astype(np.int64)

    return strategy
