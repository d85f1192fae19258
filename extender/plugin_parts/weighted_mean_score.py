"""The weighted mean of resource scores, for plugins of releases up to 1.22.

These plugins score every configured resource on every node, even if the node does not have the resource. The strategies
of NodeResourcesFit skip such resources.

Source: pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastRequestedScore;
pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostRequestedScore;
pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
buildRequestedToCapacityRatioScorerFunction (1.21).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.api.requests import fit_score_requests, is_scalar_resource
from extender.basics.intern import Interner
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.config.errors import FieldError
from extender.config.field_path import child, item
from extender.config.validation import make_invalid_value_error
from extender.plugin_parts.scored_resources import ResourceSpec

ResourceScorer = Callable[[IntArray, IntArray], IntArray]
"""Returns the scores of one resource, 0 to 100, from its requested amount and capacity on each node, both int64."""

_NATIVE_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_NONZERO_INDEX: Final[Mapping[str, int]] = {"cpu": 0, "memory": 1}


@dataclass(frozen=True, slots=True)
class WeightedResource:
    """A configured resource and the pod's request for it.

    Attributes:
        resource_id: the id in the symbol table; None for an uncounted resource, whose amount is 0 on all nodes.
        weight: the configured weight.
        request: the pod's request in base units; containers without cpu or memory requests count as 100m and 200Mi.
        nonzero_index: the index of the resource in `NodeView.nonzero_requested`; None: use `requested`.
    """

    resource_id: int | None
    weight: int
    request: int
    nonzero_index: int | None

    def requested_with_pod_and_allocatable(self, nodes: NodeView) -> tuple[IntArray, IntArray]:
        """Return each node's requested amount with the pod, and its allocatable amount; do not modify them."""
        if self.resource_id is None:
            zeros = np.zeros(len(nodes), dtype=np.int64)
            return zeros, zeros
        index = self.nonzero_index
        requested = nodes.requested(self.resource_id) if index is None else nodes.nonzero_requested(index)
        return requested + self.request, nodes.allocatable(self.resource_id)


def get_scored_requests(pod: PodInfo, specs: Sequence[ResourceSpec]) -> tuple[int, ...]:
    """Return the pod's request for each resource of *specs*, in base units. The pod's signature caches the result."""

    def compute() -> tuple[int, ...]:
        amounts = fit_score_requests(pod.pod)
        return tuple(amounts.get(spec.name, 0) for spec in specs)

    return pod.signature.get_or_create(("scored_requests", tuple(specs)), compute)


def build_weighted_resources(
    specs: Sequence[ResourceSpec], requests: Sequence[int], symbols: Interner[str]
) -> tuple[WeightedResource, ...]:
    """Return a `WeightedResource` for each of *specs* and the pod's *requests*, in the same order."""
    return tuple(
        WeightedResource(
            symbols.intern(spec.name) if spec.name in _NATIVE_RESOURCES or is_scalar_resource(spec.name) else None,
            spec.weight,
            request,
            _NONZERO_INDEX.get(spec.name),
        )
        for spec, request in zip(specs, requests, strict=True)
    )


def compute_weighted_mean_score(
    resources: Sequence[WeightedResource], nodes: NodeView, scorer: ResourceScorer
) -> IntArray:
    """Return the weighted mean of the resources' scores, rounded down: int64, shape (len(nodes),)."""
    total = np.zeros(len(nodes), dtype=np.int64)
    for resource in resources:
        total += scorer(*resource.requested_with_pod_and_allocatable(nodes)) * resource.weight
    return total // max(1, sum(resource.weight for resource in resources))


def validate_resources(specs: Sequence[ResourceSpec], path: str) -> list[FieldError]:
    """Return an error for each weight out of range.

    Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateNodeResourcesFitArgs (1.36).
    """
    errors: list[FieldError] = []
    for index, spec in enumerate(specs):
        if not 0 < spec.weight <= 100:
            field_path = child(item(child(path, "resources"), index), "weight")
            message = f"resource weight of {spec.name} not in valid range (0, 100]"
            errors.append(make_invalid_value_error(field_path, spec.weight, message))
    return errors


def compute_percentages(amount: IntArray, capacity: IntArray, requested: IntArray) -> IntArray:
    """Return *amount* in percent of *capacity*, rounded down: int64, one entry for each node.

    The result is 0 where the capacity is 0 or lower than the requested amount.

    Args:
        amount: the requested or the free amount of each node, int64.
        capacity: the capacity of each node, int64.
        requested: the requested amount of each node, int64.
    """
    is_valid: BoolArray = (capacity != 0) & (requested <= capacity)
    return np.where(is_valid, amount, 0) * 100 // np.where(is_valid, capacity, 1)
