"""NodeResourcesLeastAllocated prefers nodes with low resource utilization.

**Scores** a node with the weighted mean of its resources' free percentages, rounded down. The pod's requests count as
used. A resource that the node has too little of, or does not have, counts as 0. Containers without a request for cpu or
memory count as 100m and 200Mi. Scores are not normalized.

**Options** `resources`: the resources that count, a list of `name` and `weight` (1 to 100); cpu and memory if it is
empty. Releases up to 1.22 have this plugin. The strategy LeastAllocated of NodeResourcesFit replaces it, but ignores
resources that the node does not have.

Source: pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastRequestedScore (1.21);
pkg/scheduler/apis/config/validation/validation.go, removedPluginsByVersion (1.22).
"""

from typing import ClassVar

from extender.cache.tables.arrays import IntArray
from extender.plugin_parts.resource_allocation_scorer import ResourceAllocationScorer, ScoredResourcesArgs
from extender.plugin_parts.weighted_mean_score import compute_percentages


class NodeResourcesLeastAllocatedArgs(ScoredResourcesArgs, frozen=True, rename="camel"):
    """Options of NodeResourcesLeastAllocated."""


class NodeResourcesLeastAllocated(ResourceAllocationScorer):
    """Scores nodes by free resources. Scores are cached by the pod's requests.

    Source: pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastRequestedScore (1.21).
    """

    name: ClassVar[str] = "NodeResourcesLeastAllocated"
    options = NodeResourcesLeastAllocatedArgs

    @staticmethod
    def score_resource(requested: IntArray, capacity: IntArray) -> IntArray:
        """Return the free percentage of the capacity."""
        return compute_percentages(capacity - requested, capacity, requested)
