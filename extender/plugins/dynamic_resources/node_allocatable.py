"""Node resources that the devices of a pod's claims are and need, since 1.37 (gate DRANodeAllocatableResources).

A device may be an amount of a node resource (its mapping). It may need more of one for each pod and container that uses
it (its overhead).

Source: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go (1.37).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from extender.api.kinds.devices import AllocationResult, Device, NodeAllocatableMapping, ResourceClaim
from extender.api.kinds.node import Node
from extender.api.kinds.pod import (
    Container,
    NodeAllocatableMappedResource,
    NodeAllocatableOverheadResource,
    NodeAllocatableResourceClaimStatus,
    Pod,
)
from extender.api.quantity import FormattedQuantity, Quantity, parse, parse_formatted, to_base_units
from extender.api.requests import PodResourcesOptions, is_hugepages_resource, pod_requests
from extender.dra.errors import AllocationError
from extender.dra.resource_slices import CompiledSlice, DeviceId, SliceDevice

_LIMIT_OPTIONS: Final = PodResourcesOptions(
    use_status_resources=False, pod_level_resources=False, dra_node_allocatable=True
)


class UsedDevice(NamedTuple):
    """A device that a claim has allocated.

    Attributes:
        consumed: the consumed capacity by name; empty if no capacity is recorded.
    """

    device: Device
    consumed: Mapping[str, FormattedQuantity]


DeviceIndex = Mapping[DeviceId, Sequence[SliceDevice]]
"""The devices with node resources, by driver, pool and name; also those of older slices of a pool."""


def index_devices(slices: Iterable[CompiledSlice]) -> DeviceIndex:
    """Return an index of the devices that are or need node resources."""
    devices: dict[DeviceId, list[SliceDevice]] = {}
    for compiled_slice in slices:
        for device in compiled_slice.devices:
            if device.device.node_allocatable_resources:
                devices.setdefault(device.id, []).append(device)
    return devices


def find_allocated_devices(allocation: AllocationResult, index: DeviceIndex, node: Node | None) -> Iterator[UsedDevice]:
    """Yield the devices in *index* that *allocation* contains and *node* can use; on any node if it is None.

    Source: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go, getDeviceFromSlices,
    filterSlicesForNode (1.37).
    """
    for result in allocation.devices.results:
        for device in index.get((result.driver, result.pool, result.device), ()):
            if node is None or _is_usable(device, node):
                amounts = {name: parse_formatted(raw) for name, raw in result.consumed_capacity.items()}
                yield UsedDevice(device.device, amounts)
                break


def _is_usable(device: SliceDevice, node: Node) -> bool:
    compiled_slice = device.slice
    if compiled_slice.per_device_node_selection:
        return device.node_selection.matches(node)
    return compiled_slice.node_selection is not None and compiled_slice.node_selection.matches(node)


def is_mapped(devices: Iterable[UsedDevice]) -> bool:
    """Return whether one of *devices* is an amount of a node resource."""
    return any(
        resource.mapping is not None for used in devices for resource in used.device.node_allocatable_resources.values()
    )


def build_claim_status(
    claim: ResourceClaim, devices: Iterable[UsedDevice], containers: tuple[str, ...]
) -> NodeAllocatableResourceClaimStatus:
    """Return the amounts that *devices* of *claim* are and need.

    Raises:
        AllocationError: a mapping has a capacity key, but no capacity of the device is consumed.
    """
    mapped: dict[str, FormattedQuantity] = {}
    overheads: dict[str, list[FormattedQuantity | None]] = {}
    for used in devices:
        for name, resource in used.device.node_allocatable_resources.items():
            if resource.mapping is not None:
                amount = _compute_mapped_amount(claim, used, name, resource.mapping)
                if amount is not None:
                    mapped[name] = mapped[name].plus(amount) if name in mapped else amount
            if resource.overhead is not None:
                raw = (resource.overhead.per_pod, resource.overhead.per_container)
                if raw != (None, None):
                    total = overheads.setdefault(name, [None, None])
                    for index, text in enumerate(raw):
                        if text is not None:
                            more, current = parse_formatted(text), total[index]
                            total[index] = more if current is None else current.plus(more)
    return NodeAllocatableResourceClaimStatus(
        resource_claim_name=claim.metadata.name,
        containers=containers,
        mapping=tuple(NodeAllocatableMappedResource(name=name, quantity=mapped[name].text) for name in sorted(mapped)),
        overhead=tuple(
            NodeAllocatableOverheadResource(
                name=name, per_pod=pod and pod.text, per_container=container and container.text
            )
            for name, (pod, container) in sorted(overheads.items())
        ),
    )


def _compute_mapped_amount(
    claim: ResourceClaim, used: UsedDevice, resource: str, mapping: NodeAllocatableMapping
) -> FormattedQuantity | None:
    if mapping.capacity_key:
        if not used.consumed:
            raise AllocationError(
                f"claim {claim.key}, device {used.device.name}: ConsumedCapacity is nil, but Capacity key "
                f"'{mapping.capacity_key}' is set in NodeAllocatableResources for resource {resource}"
            )
        consumed = used.consumed.get(mapping.capacity_key)
        if consumed is None or mapping.capacity_multiplier is None or parse(mapping.capacity_multiplier) == parse("1"):
            return consumed
        return consumed.times(parse(mapping.capacity_multiplier))
    return None if mapping.device_multiplier is None else parse_formatted(mapping.device_multiplier)


def find_exceeded_pod_level_limit(pod: Pod) -> str | None:
    """Return the reason why a pod-level limit of *pod* is lower than its containers' with the resources of claims.

    Source: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go,
    DynamicResources.validatePodLevelResourcesCoverDRA (1.37).
    """
    limits = pod.spec.resources.limits if pod.spec.resources is not None else {}
    if not limits or not pod.status.node_allocatable_resource_claim_statuses:
        return None
    totals = pod_requests(_copy_with_limits_as_requests(pod), _LIMIT_OPTIONS)
    for name in sorted(filter(is_hugepages_resource, totals)):
        if name in limits and totals[name] > to_base_units(name, parse(limits[name])):
            problem = "is insufficient to cover the aggregated container and node-allocatable DRA limits"
            return f"pod level limit for {name} {problem}"
    for container in pod.spec.containers:
        for name, raw_limit in sorted(container.resources.limits.items()):
            if name in limits and not is_hugepages_resource(name):
                amounts = _iterate_container_amounts(pod, container.name, name)
                limit = parse(raw_limit)
                for amount in amounts:
                    limit = limit.plus(amount)
                if limit.exceeds(parse(limits[name])):
                    problem = f"is insufficient to cover the limit and DRA overhead for container {container.name}"
                    return f"pod level limit for {name} {problem}"
    return None


def _copy_with_limits_as_requests(pod: Pod) -> Pod:
    """Return a copy of *pod* in which the limits of the containers are their requests."""

    def copy(container: Container) -> Container:
        resources = msgspec.structs.replace(container.resources, requests=container.resources.limits)
        return msgspec.structs.replace(container, resources=resources)

    containers, init_containers = (tuple(map(copy, each)) for each in (pod.spec.containers, pod.spec.init_containers))
    spec = msgspec.structs.replace(pod.spec, containers=containers, init_containers=init_containers, overhead={})
    return msgspec.structs.replace(pod, spec=spec)


def _iterate_container_amounts(pod: Pod, container_name: str, resource: str) -> Iterator[Quantity]:
    """Yield the amounts of *resource* that a container may use through claims.

    Source: component-helpers/resource/helpers.go, GetContainerDRAAllocations (1.37).
    """
    for claim in pod.status.node_allocatable_resource_claim_statuses:
        if container_name in claim.containers:
            for mapped in claim.mapping:
                if mapped.name == resource and mapped.quantity is not None:
                    yield parse(mapped.quantity)
            for overhead in claim.overhead:
                if overhead.name == resource:
                    yield from (parse(raw) for raw in (overhead.per_pod, overhead.per_container) if raw is not None)
