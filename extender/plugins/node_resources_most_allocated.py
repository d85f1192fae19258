"""NodeResourcesMostAllocated prefers nodes that would have little left.

**Scores** the mean of what would be taken over the resources, by weight and rounded down, in percent of what the node
has. A resource of which the node would have too little, or which it does not have, counts as 0. Containers without a
request for cpu or memory count for 100m and 200Mi. Scores are not normalized.

**Options** `resources`: what counts, a list of `name` and `weight` (1 to 100); cpu and memory if it is empty. A
plugin of releases up to 1.22; NodeResourcesFit with the strategy MostAllocated came in its place, which rates a node
that would be over-full with 100.

Source: C056, C005.
"""

from typing import ClassVar

from extender.cluster.arrays import IntArray
from extender.framework.allocated_mean import AllocatedMean, AllocatedMeanArgs
from extender.framework.resource_means import shares


class NodeResourcesMostAllocatedArgs(AllocatedMeanArgs, frozen=True, rename="camel"):
    """Options of NodeResourcesMostAllocated."""


class NodeResourcesMostAllocated(AllocatedMean):
    """Scores are kept by what the pod asks for. Source: C056."""

    name: ClassVar[str] = "NodeResourcesMostAllocated"
    options = NodeResourcesMostAllocatedArgs

    @staticmethod
    def rate(taken: IntArray, capacity: IntArray) -> IntArray:
        """What would be taken, in percent of the capacity."""
        return shares(taken, capacity)
