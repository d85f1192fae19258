"""Resources that plugins score: their configuration and their amounts on each node.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, NewFit (1.36).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.api.kinds.meta import Int64
from extender.api.requests import is_scalar_resource
from extender.basics.intern import Interner
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.config.errors import FieldError, child, item
from extender.config.feature_gates import FeatureGates
from extender.config.validation import make_invalid_value_error

_NATIVE_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_NONZERO_INDEX: Final[Mapping[str, int]] = {"cpu": 0, "memory": 1}


class ResourceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A configured resource.

    Attributes:
        name: the resource name.
        weight: the weight relative to the other resources.
    """

    name: str = ""
    weight: Int64 = 1


DEFAULT_RESOURCES: Final = (ResourceSpec("cpu"), ResourceSpec("memory"))
"""The resources that are scored by default.

Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_NodeResourcesFitArgs,
SetDefaults_NodeResourcesBalancedAllocationArgs (1.36).
"""


def apply_resource_defaults(raw: object) -> object:
    """Return *raw* with defaults: cpu and memory for an empty list, weight 1 for a missing weight or 0.

    A value that is not a list is returned unchanged, and the decoder rejects it.

    Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateNodeResourcesFitArgs,
    ValidateNodeResourcesBalancedAllocationArgs (1.36).
    """
    if not raw and (raw is None or isinstance(raw, list | tuple)):
        return [msgspec.to_builtins(spec) for spec in DEFAULT_RESOURCES]
    if not isinstance(raw, list | tuple):
        return raw
    return [_apply_default_weight(entry) for entry in raw]


def _apply_default_weight(entry: Any) -> Any:
    if entry is None:
        return {"weight": 1}
    if not isinstance(entry, Mapping):
        return entry
    weight = entry.get("weight")
    is_default = weight is None or (weight == 0 and not isinstance(weight, bool))
    return {**entry, "weight": 1} if is_default else entry


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
        return list(validate_weights(self.resources, path))


def validate_weights(specs: Sequence[ResourceSpec], path: str) -> Iterator[FieldError]:
    """Yield an error for each weight out of range; *path* is that of the options with the field `resources`.

    Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateNodeResourcesFitArgs (1.36).
    """
    for index, spec in enumerate(specs):
        if not 0 < spec.weight <= 100:
            field_path = child(item(child(path, "resources"), index), "weight")
            message = f"resource weight of {spec.name} not in valid range (0, 100]"
            yield make_invalid_value_error(field_path, spec.weight, message)


@dataclass(frozen=True, slots=True)
class ScoredResource:
    """A resource to score and the pod's request for it.

    Attributes:
        resource_id: the id in the symbol table.
        weight: the configured weight.
        request: the pod's request, in base units.
        nonzero_index: the index of the resource in `NodeView.nonzero_requested`; None: use `requested`.
    """

    resource_id: int
    weight: int
    request: int
    nonzero_index: int | None = None

    def allocatable(self, nodes: NodeView) -> IntArray:
        """Return each node's allocatable amount; do not modify it."""
        return nodes.allocatable(self.resource_id)

    def requested(self, nodes: NodeView) -> IntArray:
        """Return each node's requested amount; do not modify it."""
        if self.nonzero_index is None:
            return nodes.requested(self.resource_id)
        return nodes.nonzero_requested(self.nonzero_index)

    def requested_and_allocatable(self, nodes: NodeView, row: int) -> tuple[int, int]:
        """Return the requested and allocatable amounts of *row*, the only row of *nodes*."""
        requested, allocatable = nodes.requested_and_allocatable(row, self.resource_id)
        return (
            requested if self.nonzero_index is None else nodes.nonzero_requested_of(row, self.nonzero_index)
        ), allocatable


def list_amounts(specs: Sequence[ResourceSpec], amounts: Mapping[str, int]) -> tuple[int, ...]:
    """Return the amount of the resource of each of *specs*; 0 if *amounts* has none."""
    return tuple(amounts.get(spec.name, 0) for spec in specs)


def is_scored_resource(name: str) -> bool:
    """Return whether nodes have amounts of the resource that can be scored."""
    return name in _NATIVE_RESOURCES or is_scalar_resource(name)


def make_scored_resource(
    spec: ResourceSpec, request: int, symbols: Interner[str], *, nonzero: bool = True
) -> ScoredResource:
    """Return the resource of *spec*; see `build_scored_resources`."""
    nonzero_index = _NONZERO_INDEX.get(spec.name) if nonzero else None
    return ScoredResource(symbols.intern(spec.name), spec.weight, request, nonzero_index)


def build_scored_resources(
    specs: Sequence[ResourceSpec], requests: Sequence[int], symbols: Interner[str], *, nonzero: bool
) -> tuple[ScoredResource, ...]:
    """Return the resources of *specs* that are scored for a pod, in the order of *specs*.

    Scalar resources that the pod does not request are omitted. So are names that are not schedulable resources.
    *requests* has the request of the pod for each of *specs*, in base units. With *nonzero*, containers of assigned
    pods count as 100m and 200Mi if they request no cpu or memory.

    Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
    resourceAllocationScorer.calculateNodeAllocatableRequest (1.36).
    """
    return tuple(
        make_scored_resource(spec, request, symbols, nonzero=nonzero)
        for spec, request in zip(specs, requests, strict=True)
        if spec.name in _NATIVE_RESOURCES or (request and is_scalar_resource(spec.name))
    )
