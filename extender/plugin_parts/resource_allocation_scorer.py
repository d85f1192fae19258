"""Base class of plugins that score nodes by the weighted mean of the configured resources' scores.

Releases up to 1.22 have these plugins. They differ only in the score of a single resource.

Source: pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastRequestedScore;
pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostRequestedScore (1.21).
"""

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import msgspec

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.config.errors import FieldError
from extender.config.feature_gates import FeatureGates
from extender.framework.extension_points import DependsOn
from extender.framework.plugin_args import PluginArgs
from extender.plugin_parts.scored_resources import DEFAULT_RESOURCES, ResourceSpec, apply_resource_defaults
from extender.plugin_parts.weighted_mean_score import (
    build_weighted_resources,
    compute_weighted_mean_score,
    get_scored_requests,
    validate_resources,
)


class ScoredResourcesArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options with a list of resources to score.

    Attributes:
        resources: the resources to score.
    """

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    @classmethod
    def apply_defaults(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:  # noqa: ARG003
        """Return *raw* with defaults: cpu and memory for an empty list, weight 1 for a weight of 0."""
        return {**raw, "resources": apply_resource_defaults(raw.get("resources"))}

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:  # noqa: ARG002
        """Return an error for each weight out of range."""
        return validate_resources(self.resources, path)


class ResourceAllocationScorer:
    """Scores nodes by the weighted mean of resource scores. Scores are cached by the pod's requests."""

    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def __init__(self, args: PluginArgs[Any]) -> None:
        """Store the options: `ScoredResourcesArgs` or a subclass."""
        options: ScoredResourcesArgs = args.options
        self._specs = options.resources

    @staticmethod
    def score_resource(requested: IntArray, capacity: IntArray) -> IntArray:
        """Return the scores of one resource. See `ResourceScorer`."""
        raise NotImplementedError

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's requests of the scored resources."""
        return get_scored_requests(pod, self._specs)

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return scores from 0 to 100, one for each node."""
        symbols = nodes.snapshot.symbols.resources
        return compute_weighted_mean_score(
            build_weighted_resources(self._specs, get_scored_requests(pod, self._specs), symbols),
            nodes,
            self.score_resource,
        )
