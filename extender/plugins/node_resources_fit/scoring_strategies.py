"""The three scoring strategies of NodeResourcesFit: scores from 0 to 100 for a node's utilization with the pod.

A placement is scored by how much of its resources is requested, with the pods of the group.

As upstream, integers are int64 and wrap around, and division truncates.

Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_NodeResourcesFitArgs;
pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
resourceAllocationScorer.calculateNodeAllocatableRequest, resourceAllocationScorer.score,
resourceAllocationScorer.scorePlacement (1.36).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.framework.normalize import MAX_SCORE
from extender.framework.pod_group_points import Placement
from extender.plugin_parts.function_shape import MAX_UTILIZATION, UtilizationShapePoint, build_broken_linear_function
from extender.plugin_parts.scored_resources import ResourceSpec, ScoredResource, build_scored_resources

Strategy = Callable[[Sequence[ScoredResource], NodeView], IntArray]
"""Returns the scores of a view's nodes, int64, from the scored resources of a pod."""

_Scorer = Callable[[IntArray, IntArray], IntArray]
"""Returns one resource's scores from requested amounts and capacities above 0. May overwrite the requested amounts."""

_SingleNodeScorer = Callable[[int, int], int]
"""Returns one resource's score on one node, from the requested amount and the capacity."""

_MAX_EXACT_FLOAT: Final = 2**53
_MAX_SAFE_AMOUNT: Final = 2**56
"""Amounts below this do not overflow int64 when multiplied by 100."""


def _are_exact_floats(amounts: IntArray) -> bool:
    """Return whether all *amounts* are exact as floats: at least 0 and below 2**53."""
    # As unsigned integers, negative amounts are large.
    return not len(amounts) or bool(amounts.view(np.uint64).max() < _MAX_EXACT_FLOAT)


def _divide_as_go(dividend: IntArray, divisor: IntArray | int) -> IntArray:
    """Return *dividend* / *divisor*, truncated as Go divides int64. *divisor* must be above 0."""
    if isinstance(divisor, np.ndarray) and _are_exact_floats(dividend) and _are_exact_floats(divisor):
        return (dividend / divisor).astype(np.int64)  # float division is several times faster
    quotient: IntArray = dividend // divisor
    is_negative = dividend < 0
    if np.count_nonzero(is_negative):  # only after an overflow
        quotient += is_negative & (quotient * divisor != dividend)
    return quotient


def _least_requested_score(requested: IntArray, capacity: IntArray) -> IntArray:
    used_amounts = np.minimum(requested, capacity, out=requested)
    free = np.subtract(capacity, used_amounts, out=used_amounts)
    free *= MAX_SCORE
    return _divide_as_go(free, capacity)


def _most_requested_score(requested: IntArray, capacity: IntArray) -> IntArray:
    used_amounts = np.minimum(requested, capacity, out=requested)
    used_amounts *= MAX_SCORE
    return _divide_as_go(used_amounts, capacity)


def _sum_scores(
    resources: Sequence[ScoredResource], nodes: NodeView, scorer: _Scorer, *, include_zero_scores: bool = True
) -> tuple[IntArray, IntArray | int]:
    """Return the sums of weighted scores and of weights, over the resources that each node has.

    With *include_zero_scores*, resources with a score of 0 add their weights.
    """
    total: IntArray | None = None
    weights: IntArray | int = 0
    for resource in resources:
        capacity = resource.allocatable(nodes)
        nonzero_count = np.count_nonzero(capacity)
        if not nonzero_count:
            continue
        weight_mask: BoolArray | None = None
        if nonzero_count < len(capacity):
            weight_mask = capacity != 0
            capacity = np.maximum(capacity, 1)
        scores = scorer(resource.requested(nodes) + resource.request, capacity)
        if not include_zero_scores:
            is_positive = scores > 0
            weight_mask = is_positive if weight_mask is None else is_positive & weight_mask
        weight: IntArray | int = resource.weight if weight_mask is None else weight_mask * np.int64(resource.weight)
        if weight_mask is not None or weight != 1:
            scores *= weight
        total = scores if total is None else np.add(total, scores, out=total)
        weights = weights + weight
    return np.zeros(len(nodes), dtype=np.int64) if total is None else total, weights


def _replace_zero_weights(weights: IntArray | int) -> IntArray | int:
    """Return *weights* with 1 in place of 0. Where a weight is 0, the sum of scores is 0 too."""
    return max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)


def _compute_single_node_mean(
    resources: Sequence[ScoredResource], nodes: NodeView, row: int, scorer: _SingleNodeScorer
) -> int | None:
    """Return the weighted mean of *scorer* for *row*, the only row of *nodes*; None if int64 might overflow."""
    total = weights = 0
    for resource in resources:
        requested, capacity = resource.requested_and_allocatable(nodes, row)
        if capacity:
            requested_with_pod = requested + resource.request
            if not (0 <= requested_with_pod < _MAX_SAFE_AMOUNT and 0 < capacity < _MAX_SAFE_AMOUNT):
                return None
            total += scorer(requested_with_pod, capacity) * resource.weight
            weights += resource.weight
    return total // weights if weights else 0


def _compute_mean(
    resources: Sequence[ScoredResource], nodes: NodeView, scorer: _Scorer, single_node_scorer: _SingleNodeScorer
) -> IntArray:
    """Return the weighted means of *scorer*. For a single node, use *single_node_scorer*, which is faster."""
    if nodes.single_row is not None:
        mean = _compute_single_node_mean(resources, nodes, nodes.single_row, single_node_scorer)
        if mean is not None:
            return np.array([mean], dtype=np.int64)
    total, weights = _sum_scores(resources, nodes, scorer)
    return _divide_as_go(total, _replace_zero_weights(weights))


def score_least_allocated(resources: Sequence[ScoredResource], nodes: NodeView) -> IntArray:
    """Return the weighted mean of the resources' free percentages, each at least 0. The pod's requests count as used.

    Source: pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastResourceScorer (1.36).
    """
    return _compute_mean(
        resources,
        nodes,
        _least_requested_score,
        lambda requested, capacity: max(capacity - requested, 0) * MAX_SCORE // capacity,
    )


def score_most_allocated(resources: Sequence[ScoredResource], nodes: NodeView) -> IntArray:
    """Return the weighted mean of the resources' requested percentages, each at most 100, including the pod's requests.

    Source: pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostResourceScorer (1.36).
    """
    return _compute_mean(
        resources,
        nodes,
        _most_requested_score,
        lambda requested, capacity: min(requested, capacity) * MAX_SCORE // capacity,
    )


def build_requested_to_capacity_ratio_strategy(shape: Sequence[UtilizationShapePoint]) -> Strategy:
    """Return the strategy that scores utilization by the piecewise linear function through the points of *shape*.

    The score is the weighted mean of the resources' scores above 0, rounded half up.

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.36).
    """
    scores_by_utilization = build_broken_linear_function(shape)

    def score_resource(requested: IntArray, capacity: IntArray) -> IntArray:
        exceeds_capacity = requested > capacity
        requested *= MAX_UTILIZATION
        utilization = _divide_as_go(requested, capacity)
        np.copyto(utilization, MAX_UTILIZATION, where=exceeds_capacity)
        np.clip(utilization, 0, MAX_UTILIZATION, out=utilization)  # out of range only after an overflow
        return scores_by_utilization[utilization]

    def score_nodes(resources: Sequence[ScoredResource], nodes: NodeView) -> IntArray:
        total, weights = _sum_scores(resources, nodes, score_resource, include_zero_scores=False)
        mean = total / _replace_zero_weights(weights)
        rounded_mean = np.floor(mean)
        rounded_mean += mean - rounded_mean >= 0.5
        return rounded_mean.astype(np.int64)

    return score_nodes


def compute_placement_score(
    specs: Sequence[ResourceSpec], pod_requests: Iterable[Sequence[int]], placement: Placement, snapshot: Snapshot
) -> int:
    """Return the weighted mean of the requested percentages of the resources, 0 to 100, over all nodes of *placement*.

    *pod_requests* has for each assigned pod of the group its request for each of *specs*, in base units. *snapshot* is
    the cluster without these pods.
    """
    group_requests = [sum(amounts) for amounts in zip(*pod_requests, strict=True)] or [0] * len(specs)
    nodes = _view_placement(placement, snapshot)
    total = total_weight = 0
    for resource in build_scored_resources(specs, group_requests, snapshot.symbols.resources, nonzero=True):
        allocatable = resource.allocatable(nodes)
        capacity = int(allocatable.sum())
        if not capacity:
            continue
        requested = int(resource.requested(nodes)[allocatable != 0].sum()) + resource.request
        total += min(requested, capacity) * MAX_SCORE // capacity * resource.weight
        total_weight += resource.weight
    return total // total_weight if total_weight else 0


def _view_placement(placement: Placement, snapshot: Snapshot) -> NodeView:
    if placement.node_names is None:
        return snapshot.view()
    rows = snapshot.rows(list(placement.node_names))
    return snapshot.view(rows[rows >= 0])
