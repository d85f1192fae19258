"""NodeResourcesBalancedAllocation prefers nodes where the pod makes the resource utilization more balanced.

**Scores** the change of the node's balance. The balance is `(1 - std) * 100`, where `std` is the standard deviation of
the requested fractions of its resources. For two resources, `std` is half the difference of the fractions. For fewer
resources, `std` is 0. The score is `50 + (50 + balance with the pod - balance without it) / 2` in integers, so 75 means
no change. Containers without requests count as 0. Fractions are at most 1. Resources that the node does not have are
ignored, as are scalar resources that the pod does not request. The plugin skips pods that request none of the
resources. Scores are not normalized. If a node does not have an extended resource itself, the DRA devices that back the
resource are scored.

**Options** `resources`: the resources that count, a list of `name` and `weight`; cpu and memory if it is empty. A
weight must be 1. A name must not occur twice.

Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_NodeResourcesBalancedAllocationArgs (1.36).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

import numpy as np

from extender.api.requests import pod_requests
from extender.cache.pod_info import PodInfo
from extender.cache.pod_signature import make_pod_resources_options
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import FloatArray, IntArray
from extender.config.errors import FieldError, child, item
from extender.config.feature_gates import FeatureGates
from extender.config.validation import make_invalid_value_error
from extender.framework.extension_points import SKIP_SCORE, DependsOn, PreScoreResult
from extender.framework.plugin_args import PluginArgs
from extender.plugin_parts.device_backed_resources import DeviceBackedResourceBuilder
from extender.plugin_parts.scored_resources import (
    ScoredResource,
    ScoredResourcesArgs,
    build_scored_resources,
    list_amounts,
)

_HALF_SCORE: Final = 50
_MAX_SCORE: Final = 100.0
_MAX_EXACT_FLOAT: Final = 2**53


class NodeResourcesBalancedAllocationArgs(ScoredResourcesArgs, frozen=True, rename="camel"):
    """Options of NodeResourcesBalancedAllocation.

    Attributes:
        resources: the resources that count.
    """

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:  # noqa: ARG002
        """Return an error for each weight other than 1 and for each duplicate name.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go,
        ValidateNodeResourcesBalancedAllocationArgs (1.36).
        """
        errors: list[FieldError] = []
        seen_names: set[str] = set()
        for index, spec in enumerate(self.resources):
            field_path = item(child(path, "resources"), index)
            if spec.name in seen_names:
                errors.append(FieldError(child(field_path, "name"), f'Duplicate value: "{spec.name}"'))
            seen_names.add(spec.name)
            if spec.weight != 1:
                errors.append(make_invalid_value_error(child(field_path, "weight"), spec.weight, "must be 1"))
        return errors


@dataclass(frozen=True, slots=True)
class _BalancedResource:
    """A resource to score without and with the pod.

    Attributes:
        added_amounts: the amounts to add to a node's requested amount. The first is 0, for the score without the pod.
            The second is the pod's request. int64, shape (2, 1).
    """

    resource: ScoredResource
    added_amounts: IntArray


class NodeResourcesBalancedAllocation:
    """Scores nodes by the pod's effect on the balance of their resource utilization."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    options = NodeResourcesBalancedAllocationArgs
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def __init__(self, args: PluginArgs[NodeResourcesBalancedAllocationArgs]) -> None:
        self._resource_specs = args.options.resources
        gates = args.gates
        self._resources_options = make_pod_resources_options(gates)._replace(dra_node_allocatable=False)
        self._device_backed_resource_builder = DeviceBackedResourceBuilder(args, self._resource_specs)
        self.read_kinds = self._device_backed_resource_builder.read_kinds

    def _get_requests(self, pod: PodInfo) -> tuple[int, ...]:
        """Return the pod's request for each resource, in the order of the options, in base units.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, NewFit (1.36).
        """
        return pod.signature.get_or_create(
            (self, "requests"),
            lambda: list_amounts(self._resource_specs, pod_requests(pod.pod, self._resources_options)),
        )

    def pre_score_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: the result depends only on the pod's spec."""
        return True

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's requests; None if devices may back a request: scores then depend on other objects."""
        return pod.signature.get_or_create(
            (self, "key"), lambda: self._device_backed_resource_builder.make_cache_key(self._get_requests(pod))
        )

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:
        """Store the resources to score as the state. Skip pods that request none of the resources.

        Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, BalancedAllocation.PreScore
        (1.36).
        """

        def compute() -> PreScoreResult:
            requests = self._get_requests(pod)
            if not any(requests):
                return SKIP_SCORE
            resources = build_scored_resources(
                self._resource_specs, requests, nodes.snapshot.symbols.resources, nonzero=False
            )
            return PreScoreResult(
                state=tuple(
                    _BalancedResource(resource, np.array([[0], [resource.request]], dtype=np.int64))
                    for resource in resources
                )
            )

        return pod.signature.get_or_create(
            (self, "pre_score"), lambda: nodes.snapshot.symbols.get_or_create((self, self._get_requests(pod)), compute)
        )

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:
        """Return a score from 50 to 100 for each node, above 75 where the pod improves the balance.

        If PreScore is disabled, its result is computed here. If PreScore skips the pod, all nodes score 0.

        Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, balancedResourceScorer (1.36).
        """
        if state is None:
            result = self.pre_score(pod, nodes)
            if result.skip:
                return np.zeros(len(nodes), dtype=np.int64)
            state = result.state
        resources = self._replace_device_backed(pod, nodes, cast("Sequence[_BalancedResource]", state))
        if nodes.single_row is not None:
            score = _score_single_row(resources, nodes, nodes.single_row)
            if score is not None:
                return np.array([score], dtype=np.int64)
        return self._compute_scores(resources, nodes)

    def _replace_device_backed(
        self, pod: PodInfo, nodes: NodeView, resources: Sequence[_BalancedResource]
    ) -> Sequence[_BalancedResource]:
        """Return *resources*. A resource that a device class backs has the amounts of the devices.

        Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
        resourceAllocationScorer.calculateDRAResourceTotals (1.36).
        """
        if self.score_cache_key(pod) is not None:
            return resources
        scored_resources = self._device_backed_resource_builder.replace_device_backed(
            [balanced_resource.resource for balanced_resource in resources], nodes.snapshot
        )
        return [
            _BalancedResource(resource, balanced_resource.added_amounts)
            for resource, balanced_resource in zip(scored_resources, resources, strict=True)
        ]

    def _compute_scores(self, resources: Sequence[_BalancedResource], nodes: NodeView) -> IntArray:
        """Return the scores. Nodes that lack one of *resources* are scored separately."""
        allocatable: list[tuple[_BalancedResource, IntArray]] = []
        for balanced_resource in resources:
            capacity = balanced_resource.resource.allocatable(nodes)
            nonzero_count = np.count_nonzero(capacity)
            if nonzero_count == len(capacity):
                allocatable.append((balanced_resource, capacity))
            elif nonzero_count:
                return self._compute_scores_separately(resources, nodes, capacity)
        fractions: list[FloatArray] = []
        for balanced_resource, capacity in allocatable:
            fraction = (balanced_resource.resource.requested(nodes) + balanced_resource.added_amounts) / capacity
            fractions.append(np.minimum(fraction, 1.0, out=fraction))
        with np.errstate(invalid="ignore"):  # after an overflow the balance may be less than any int64, as in Go
            balance = ((1 - _compute_standard_deviation(fractions, len(nodes))) * _MAX_SCORE).astype(np.int64)
        scores: IntArray = balance[1] - balance[0]
        scores += _HALF_SCORE
        scores += scores < 0  # truncate as Go; a score is negative only after an overflow
        scores >>= 1
        scores += _HALF_SCORE
        return scores

    def _compute_scores_separately(
        self, resources: Sequence[_BalancedResource], nodes: NodeView, capacity: IntArray
    ) -> IntArray:
        """Return the scores if some nodes have a *capacity* of 0. These nodes are scored separately from the others."""
        scores = np.empty(len(nodes), dtype=np.int64)
        for positions in (np.flatnonzero(capacity), np.flatnonzero(capacity == 0)):
            rows = positions if nodes.rows is None else nodes.rows[positions]
            scores[positions] = self._compute_scores(resources, nodes.snapshot.view(rows))
        return scores


def _score_single_row(resources: Sequence[_BalancedResource], nodes: NodeView, row: int) -> int | None:
    """Return the score of *row*, the only row of *nodes*, if exactly two resources count.

    Return None for another number of resources, or if a float cannot represent an amount exactly. This is the fast path
    after an assume.
    """
    without_pod: list[float] = []
    with_pod: list[float] = []
    for balanced_resource in resources:
        requested, capacity = balanced_resource.resource.requested_and_allocatable(nodes, row)
        if capacity:
            requested_with_pod = requested + balanced_resource.resource.request
            if not (0 <= requested <= requested_with_pod < _MAX_EXACT_FLOAT and 0 < capacity < _MAX_EXACT_FLOAT):
                return None
            without_pod.append(min(requested / capacity, 1.0))
            with_pod.append(min(requested_with_pod / capacity, 1.0))
    if len(without_pod) != 2:
        return None
    score_without, score_with = (
        int((1 - abs(first - second) * 0.5) * _MAX_SCORE) for first, second in (without_pod, with_pod)
    )
    return (score_with - score_without + _HALF_SCORE) // 2 + _HALF_SCORE


def _compute_standard_deviation(fractions: Sequence[FloatArray], size: int) -> FloatArray:
    """Return the standard deviation of the requested fractions of a node's resources: float64, shape (2, size).

    The first row is without the pod, the second with it. The order of operations is upstream's, so the results are
    equal to upstream's to the last digit. The *fractions* of each resource, shape (2, size), are overwritten.

    Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, balancedResourceScore (1.36).
    """
    if len(fractions) < 2:
        return np.zeros((2, size))
    if len(fractions) == 2:
        deviation = np.subtract(fractions[0], fractions[1], out=fractions[0])
        np.abs(deviation, out=deviation)
        deviation *= 0.5
        return deviation
    mean = fractions[0] + fractions[1]
    for fraction in fractions[2:]:
        mean += fraction
    mean /= len(fractions)
    variance = np.zeros((2, size))
    for fraction in fractions:
        difference = np.subtract(fraction, mean, out=fraction)
        variance += np.multiply(difference, difference, out=difference)
    variance /= len(fractions)
    return np.sqrt(variance, out=variance)
