"""NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio score resource utilization.

**Scores** a node with the weighted mean of its resources' scores. The pod's requests count as used. Containers without
a request for cpu or memory count as 100m and 200Mi. The mean is not normalized.

- NodeResourcesLeastAllocated prefers nodes with low utilization: a resource scores its free percentage. A resource that
  the node has too little of, or does not have, scores 0. The mean is rounded down.
- NodeResourcesMostAllocated prefers nodes with high utilization: a resource scores its requested percentage. A resource
  that the node has too little of, or does not have, scores 0. The mean is rounded down.
- RequestedToCapacityRatio maps the utilization of a resource to its score by a configured function. Utilization is 100
  minus the free percentage, which is rounded down. A resource that the node has too little of, or does not have, has
  utilization 100. Scores of 0 are not included in the mean, which is rounded, halves up.

**Options** `resources`: the resources that count, a list of `name` and `weight` (1 to 100); cpu and memory if it is
empty. RequestedToCapacityRatio also has `shape`: points of `utilization` (0 to 100, rising) and `score` (0 to 10); by
default score 10 at utilization 0 and score 0 at 100. Releases up to 1.22 have these plugins. The scoring strategies of
NodeResourcesFit replace them, with other rules: they ignore resources that the node does not have, MostAllocated scores
overcommitted resources with 100, and RequestedToCapacityRatio rounds utilization down.

Source: pkg/scheduler/apis/config/validation/validation.go, removedPluginsByVersion (1.22).
"""

from collections.abc import Hashable, Iterator
from typing import Any, ClassVar, Final

import numpy as np

from extender.api.requests import fit_score_requests
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.config.errors import FieldError, child
from extender.config.feature_gates import FeatureGates
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_args import PluginArgs
from extender.plugin_parts.function_shape import (
    MAX_UTILIZATION,
    UtilizationShapePoint,
    build_broken_linear_function,
    validate_function_shape,
)
from extender.plugin_parts.scored_resources import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    ScoredResourcesArgs,
    is_scored_resource,
    list_amounts,
    make_scored_resource,
)

_DEFAULT_SHAPE: Final = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


class NodeResourcesLeastAllocatedArgs(ScoredResourcesArgs, frozen=True, rename="camel"):
    """Options of NodeResourcesLeastAllocated."""


class NodeResourcesMostAllocatedArgs(ScoredResourcesArgs, frozen=True, rename="camel"):
    """Options of NodeResourcesMostAllocated."""


class RequestedToCapacityRatioArgs(ScoredResourcesArgs, frozen=True, rename="camel"):
    """Options of RequestedToCapacityRatio.

    Attributes:
        shape: the points of the function from utilization to score.
        resources: the resources to score.
    """

    shape: tuple[UtilizationShapePoint, ...] = _DEFAULT_SHAPE
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        """Return the errors of the shape, and an error for each weight out of range.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, validateFunctionShape (1.36).
        """
        return [*validate_function_shape(self.shape, child(path, "shape")), *super().validate(path, gates)]


class _ResourceAllocationScorer:
    """Scores nodes by the weighted mean of resource scores. Scores are cached by the pod's requests.

    Every configured resource is scored on every node, even if the node does not have the resource.
    """

    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def __init__(self, args: PluginArgs[Any]) -> None:
        """Store the options: `ScoredResourcesArgs` or a subclass."""
        options: ScoredResourcesArgs = args.options
        self._specs = options.resources

    def score_resource(self, requested: IntArray, capacity: IntArray) -> IntArray:
        """Return the scores of one resource, 0 to 100, from its requested amount and capacity on each node."""
        raise NotImplementedError

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's request for each scored resource."""
        return self._get_requests(pod)

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return scores from 0 to 100, one for each node."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for scores, weight in self._iterate_scores(pod, nodes):
            total += scores * weight
        return total // max(1, sum(spec.weight for spec in self._specs))

    def _iterate_scores(self, pod: PodInfo, nodes: NodeView) -> Iterator[tuple[IntArray, int]]:
        """Yield the scores of each resource, and its weight."""
        symbols = nodes.snapshot.symbols.resources
        for spec, request in zip(self._specs, self._get_requests(pod), strict=True):
            requested = capacity = np.zeros(len(nodes), dtype=np.int64)
            if is_scored_resource(spec.name):
                resource = make_scored_resource(spec, request, symbols)
                requested, capacity = resource.requested(nodes) + request, resource.allocatable(nodes)
            yield self.score_resource(requested, capacity), spec.weight

    def _get_requests(self, pod: PodInfo) -> tuple[int, ...]:
        """Return the pod's request for each scored resource, in base units. The pod's signature caches the result."""
        return pod.signature.get_or_create(
            ("scored_requests", self._specs), lambda: list_amounts(self._specs, fit_score_requests(pod.pod))
        )


class NodeResourcesLeastAllocated(_ResourceAllocationScorer):
    """Scores nodes by free resources.

    Source: pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastRequestedScore (1.21).
    """

    name: ClassVar[str] = "NodeResourcesLeastAllocated"
    options = NodeResourcesLeastAllocatedArgs

    def score_resource(self, requested: IntArray, capacity: IntArray) -> IntArray:
        """Return the free percentage of the capacity."""
        return _compute_percentages(capacity - requested, capacity, requested)


class NodeResourcesMostAllocated(_ResourceAllocationScorer):
    """Scores nodes by requested resources.

    Source: pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostRequestedScore (1.21).
    """

    name: ClassVar[str] = "NodeResourcesMostAllocated"
    options = NodeResourcesMostAllocatedArgs

    def score_resource(self, requested: IntArray, capacity: IntArray) -> IntArray:
        """Return the requested percentage of the capacity."""
        return _compute_percentages(requested, capacity, requested)


class RequestedToCapacityRatio(_ResourceAllocationScorer):
    """Scores nodes by a function of utilization.

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.21).
    """

    name: ClassVar[str] = "RequestedToCapacityRatio"
    options = RequestedToCapacityRatioArgs

    def __init__(self, args: PluginArgs[RequestedToCapacityRatioArgs]) -> None:
        super().__init__(args)
        self._scores_by_utilization = build_broken_linear_function(args.options.shape)

    def score_resource(self, requested: IntArray, capacity: IntArray) -> IntArray:
        """Return the score of the utilization."""
        free_percentages = _compute_percentages(capacity - requested, capacity, requested)
        return self._scores_by_utilization[MAX_UTILIZATION - free_percentages]

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return scores from 0 to 100, one for each node: the rounded mean of the scores above 0."""
        total, weight_sums = np.zeros((2, len(nodes)), dtype=np.int64)
        for scores, weight in self._iterate_scores(pod, nodes):
            total += scores * weight
            weight_sums += (scores > 0) * np.int64(weight)
        mean_score = total / np.maximum(weight_sums, 1)
        rounded_score = np.floor(mean_score)
        rounded_score += mean_score - rounded_score >= 0.5
        return rounded_score.astype(np.int64)


def _compute_percentages(amount: IntArray, capacity: IntArray, requested: IntArray) -> IntArray:
    """Return *amount* in percent of *capacity*, rounded down: int64, one entry for each node.

    The result is 0 where the capacity is 0 or lower than the requested amount. *amount* is the requested or the free
    amount. All arguments are int64, one entry for each node.
    """
    is_valid: BoolArray = (capacity != 0) & (requested <= capacity)
    return np.where(is_valid, amount, 0) * 100 // np.where(is_valid, capacity, 1)
