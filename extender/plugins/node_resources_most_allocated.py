"""NodeResourcesMostAllocated prefers nodes that would have little left.

**Scores** the mean of what would be taken over the resources, by weight and rounded down, in percent of what the node
has. A resource of which the node would have too little, or which it does not have, counts as 0. Containers without a
request for cpu or memory count for 100m and 200Mi. Scores are not normalized.

**Options** `resources`: what counts, a list of `name` and `weight` (1 to 100); cpu and memory if it is empty. A
plugin of releases up to 1.22; NodeResourcesFit with the strategy MostAllocated came in its place, which rates a node
that would be over-full with 100.

Source: C056, C005.
"""

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import msgspec

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.framework.points import Reads
from extender.framework.resource_means import (
    mean_resources,
    requests_of,
    resource_faults,
    shares,
    weighted_mean,
)
from extender.framework.scored_resources import DEFAULT_RESOURCES, ResourceSpec, defaulted_resources
from extender.framework.setup import Setup


class NodeResourcesMostAllocatedArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of NodeResourcesMostAllocated.

    Attributes:
        resources: what counts.
    """

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    @classmethod
    def defaulted(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:  # noqa: ARG003
        """*raw* with cpu and memory for an empty list, and weights of 1 for weights of 0."""
        return {**raw, "resources": defaulted_resources(raw.get("resources"))}

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:  # noqa: ARG002
        """Weights out of range."""
        return resource_faults(self.resources, path)


class NodeResourcesMostAllocated:
    """Scores are kept by what the pod asks for."""

    name: ClassVar[str] = "NodeResourcesMostAllocated"
    options = NodeResourcesMostAllocatedArgs
    score_reads: ClassVar[Reads] = Reads.PODS

    def __init__(self, setup: Setup[NodeResourcesMostAllocatedArgs]) -> None:
        self._specs = setup.options.resources

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """What the pod counts for of each resource."""
        return requests_of(pod, self._specs)

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """0 to 100 a node. Source: C056."""
        words = nodes.snapshot.vocabulary.resources
        return weighted_mean(mean_resources(self._specs, requests_of(pod, self._specs), words), nodes, _used_share)


def _used_share(taken: IntArray, capacity: IntArray) -> IntArray:
    return shares(taken, capacity)
