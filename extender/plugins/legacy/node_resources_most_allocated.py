"""NodeResourcesMostAllocated prefers nodes with high resource utilization.

**Scores** a node with the weighted mean of its resources' requested percentages, rounded down. The pod's requests are
included. A resource that the node has too little of, or does not have, counts as 0. Containers without a request for
cpu or memory count as 100m and 200Mi. Scores are not normalized.

**Options** `resources`: the resources that count, a list of `name` and `weight` (1 to 100); cpu and memory if it is
empty. Releases up to 1.22 have this plugin. The strategy MostAllocated of NodeResourcesFit replaces it, but scores
overcommitted resources with 100.

Source: pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostRequestedScore (1.21);
pkg/scheduler/apis/config/validation/validation.go, removedPluginsByVersion (1.22).
"""

from typing import ClassVar

from extender.cache.tables.arrays import IntArray
from extender.plugin_parts.resource_allocation_scorer import ResourceAllocationScorer, ScoredResourcesArgs
from extender.plugin_parts.weighted_mean_score import compute_percentages


class NodeResourcesMostAllocatedArgs(ScoredResourcesArgs, frozen=True, rename="camel"):
    """Options of NodeResourcesMostAllocated."""


class NodeResourcesMostAllocated(ResourceAllocationScorer):
    """Scores nodes by requested resources. Scores are cached by the pod's requests.

    Source: pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostRequestedScore (1.21).
    """

    name: ClassVar[str] = "NodeResourcesMostAllocated"
    options = NodeResourcesMostAllocatedArgs

    @staticmethod
    def score_resource(requested: IntArray, capacity: IntArray) -> IntArray:
        """Return the requested percentage of the capacity."""
        return compute_percentages(requested, capacity, requested)
