"""Plugins that score nodes by the mean of one rate over the configured resources.

Scores of releases up to 1.22, which differ in the rate alone. Source: C055, C056.
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
from extender.framework.resource_means import mean_resources, requests_of, resource_faults, weighted_mean
from extender.framework.scored_resources import DEFAULT_RESOURCES, ResourceSpec, defaulted_resources
from extender.framework.setup import Setup


class AllocatedMeanArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of a plugin that scores by such a mean.

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


class AllocatedMean:
    """Scores are kept by what the pod asks for."""

    score_reads: ClassVar[Reads] = Reads.PODS

    def __init__(self, setup: Setup[Any]) -> None:
        """Takes the options, `AllocatedMeanArgs` or a class derived from it."""
        options: AllocatedMeanArgs = setup.options
        self._specs = options.resources

    @staticmethod
    def rate(taken: IntArray, capacity: IntArray) -> IntArray:
        """One resource's score, as `Rate` says."""
        raise NotImplementedError

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """What the pod counts for of each resource."""
        return requests_of(pod, self._specs)

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """0 to 100 a node."""
        words = nodes.snapshot.vocabulary.resources
        return weighted_mean(mean_resources(self._specs, requests_of(pod, self._specs), words), nodes, self.rate)
