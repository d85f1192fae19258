"""RequestedToCapacityRatio rates nodes by a function of utilization that the user draws.

**Scores** the function's value at the utilization of each resource, with the pod there: the weighted mean of those
above 0, rounded, halves up. Utilization is 100 minus what would be left in percent, so it is rounded up; a resource
of which the node would have too little, or which it does not have, is utilized to 100. Containers without a request
for cpu or memory count for 100m and 200Mi. Scores are not normalized.

**Options** `shape`: points of `utilization` (0 to 100, rising) and `score` (0 to 10); by default 10 at 0 falling to 0
at 100. `resources`: what counts, a list of `name` and `weight` (1 to 100); cpu and memory if it is empty. A plugin of
releases up to 1.22; NodeResourcesFit with the strategy of that name came in its place, which rounds utilization down.

Source: C058, C005, G039.
"""

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.paths import child
from extender.framework.function_shape import MAX_UTILIZATION, UtilizationShapePoint, drawn, shape_faults
from extender.framework.points import Reads
from extender.framework.resource_means import mean_resources, requests_of, resource_faults, shares
from extender.framework.scored_resources import DEFAULT_RESOURCES, ResourceSpec, defaulted_resources
from extender.framework.setup import Setup

_DEFAULT_SHAPE: Final = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


class RequestedToCapacityRatioArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of RequestedToCapacityRatio.

    Attributes:
        shape: the points of the function from utilization to score.
        resources: what counts.
    """

    shape: tuple[UtilizationShapePoint, ...] = _DEFAULT_SHAPE
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    @classmethod
    def defaulted(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:  # noqa: ARG003
        """*raw* with cpu and memory for an empty list, and weights of 1 for weights of 0."""
        return {**raw, "resources": defaulted_resources(raw.get("resources"))}

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:  # noqa: ARG002
        """Faults of the shape, and weights out of range. Source: G039."""
        return [*shape_faults(self.shape, child(path, "shape")), *resource_faults(self.resources, path)]


class RequestedToCapacityRatio:
    """Scores are kept by what the pod asks for."""

    name: ClassVar[str] = "RequestedToCapacityRatio"
    options = RequestedToCapacityRatioArgs
    score_reads: ClassVar[Reads] = Reads.PODS

    def __init__(self, setup: Setup[RequestedToCapacityRatioArgs]) -> None:
        self._specs = setup.options.resources
        self._curve = drawn(setup.options.shape)

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """What the pod counts for of each resource."""
        return requests_of(pod, self._specs)

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """0 to 100 a node. Source: C058."""
        total = np.zeros(len(nodes), dtype=np.int64)
        weights = np.zeros(len(nodes), dtype=np.int64)
        requests = requests_of(pod, self._specs)
        for resource in mean_resources(self._specs, requests, nodes.snapshot.vocabulary.resources):
            taken, capacity = resource.amounts(nodes)
            scores = self._curve[MAX_UTILIZATION - shares(capacity - taken, capacity, over=taken)]
            total += scores * resource.weight
            weights += (scores > 0) * np.int64(resource.weight)
        mean = total / np.maximum(weights, 1)
        whole = np.floor(mean)
        whole += mean - whole >= 0.5
        return whole.astype(np.int64)
