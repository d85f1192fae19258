"""RequestedToCapacityRatio scores nodes by a configured function of resource utilization.

**Scores** a node with the weighted mean of its resources' scores. The function maps a resource's utilization, including
the pod's request, to a score. Scores of 0 are not included in the mean. The mean is rounded, halves up. Utilization is
100 minus the free percentage, which is rounded down. A resource that the node has too little of, or does not have, has
utilization 100. Containers without a request for cpu or memory count as 100m and 200Mi. Scores are not normalized.

**Options** `shape`: points of `utilization` (0 to 100, rising) and `score` (0 to 10); by default score 10 at
utilization 0 and score 0 at 100. `resources`: the resources that count, a list of `name` and `weight` (1 to 100); cpu
and memory if it is empty. Releases up to 1.22 have this plugin. The strategy of the same name in NodeResourcesFit
replaces it, but rounds utilization down.

Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
buildRequestedToCapacityRatioScorerFunction (1.21); pkg/scheduler/apis/config/validation/validation.go,
removedPluginsByVersion (1.22); pkg/scheduler/apis/config/validation/validation_pluginargs.go, validateFunctionShape
(1.36).
"""

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.config.errors import FieldError
from extender.config.feature_gates import FeatureGates
from extender.config.field_path import child
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_args import PluginArgs
from extender.plugin_parts.function_shape import (
    MAX_UTILIZATION,
    UtilizationShapePoint,
    build_broken_linear_function,
    validate_function_shape,
)
from extender.plugin_parts.scored_resources import DEFAULT_RESOURCES, ResourceSpec, apply_resource_defaults
from extender.plugin_parts.weighted_mean_score import (
    build_weighted_resources,
    compute_percentages,
    get_scored_requests,
    validate_resources,
)

_DEFAULT_SHAPE: Final = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


class RequestedToCapacityRatioArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of RequestedToCapacityRatio.

    Attributes:
        shape: the points of the function from utilization to score.
        resources: the resources that count.
    """

    shape: tuple[UtilizationShapePoint, ...] = _DEFAULT_SHAPE
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    @classmethod
    def apply_defaults(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:  # noqa: ARG003
        """Return *raw* with defaults: cpu and memory for an empty list, weight 1 for a weight of 0."""
        return {**raw, "resources": apply_resource_defaults(raw.get("resources"))}

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:  # noqa: ARG002
        """Return the errors of the shape, and an error for each weight out of range.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, validateFunctionShape (1.36).
        """
        return [*validate_function_shape(self.shape, child(path, "shape")), *validate_resources(self.resources, path)]


class RequestedToCapacityRatio:
    """Scores by a function of utilization. Scores are cached by the pod's requests."""

    name: ClassVar[str] = "RequestedToCapacityRatio"
    options = RequestedToCapacityRatioArgs
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def __init__(self, args: PluginArgs[RequestedToCapacityRatioArgs]) -> None:
        self._resource_specs = args.options.resources
        self._scores_by_utilization = build_broken_linear_function(args.options.shape)

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's request for each resource."""
        return get_scored_requests(pod, self._resource_specs)

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return a score from 0 to 100 for each node.

        Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
        buildRequestedToCapacityRatioScorerFunction (1.21).
        """
        total = np.zeros(len(nodes), dtype=np.int64)
        weight_sums = np.zeros(len(nodes), dtype=np.int64)
        requests = get_scored_requests(pod, self._resource_specs)
        for resource in build_weighted_resources(self._resource_specs, requests, nodes.snapshot.symbols.resources):
            requested, capacity = resource.requested_with_pod_and_allocatable(nodes)
            scores = self._scores_by_utilization[
                MAX_UTILIZATION - compute_percentages(capacity - requested, capacity, requested)
            ]
            total += scores * resource.weight
            weight_sums += (scores > 0) * np.int64(resource.weight)
        mean_score = total / np.maximum(weight_sums, 1)
        rounded_score = np.floor(mean_score)
        rounded_score += mean_score - rounded_score >= 0.5
        return rounded_score.astype(np.int64)
