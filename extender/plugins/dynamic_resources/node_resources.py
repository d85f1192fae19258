"""Node resources that a pod consumes through its claims, and the check that nodes have enough of them.

A device may map to cpu, memory, ephemeral storage or huge pages of its node (gate DRANodeAllocatableResources). The
amounts since 1.37 are in `node_allocatable.py`.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Filter,
AllocatorFeatures, DynamicResources.bindClaim (1.36).
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec
import numpy as np

from extender.api.kinds.devices import NodeAllocatableResourceMapping, ResourceClaim
from extender.api.kinds.pod import NodeAllocatableResourceClaimStatus, Pod
from extender.api.quantity import Format, FormattedQuantity, parse, parse_formatted
from extender.api.requests import (
    PodResourcesOptions,
    find_exceeded_pod_level_requests,
    is_hugepages_resource,
    pod_requests,
)
from extender.cache.node_matching import match_node_selector
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, IntArray, make_mask
from extender.dra.allocator import NodeAllocation
from extender.dra.device_requests import DeviceResult
from extender.dra.errors import AllocationError, NodeAllocationError
from extender.dra.resource_slices import CompiledSlice
from extender.framework.status import Code, Reason
from extender.plugins.dynamic_resources.node_allocatable import (
    DeviceIndex,
    UsedDevice,
    build_claim_status,
    find_allocated_devices,
    find_exceeded_pod_level_limit,
    index_devices,
    is_mapped,
)
from extender.plugins.dynamic_resources.pod_claims import get_claim_name, is_reserved_for_pod
from extender.plugins.dynamic_resources.state import StateData

ClaimStatuses = tuple[NodeAllocatableResourceClaimStatus, ...]
"""The node resources that a pod consumes through each of its claims."""

_ZERO: Final = parse_formatted(0)
_BASIC_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


def find_nodes_with_shared_claims(state_data: StateData, nodes: NodeView) -> list[tuple[BoolArray, Reason]]:
    """Return the nodes where another pod consumes node resources through an allocated claim of the pod, with reasons.

    A node with several such claims is returned only for the first.

    Source: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go,
    DynamicResources.validateNodeAllocatableDRAClaimSharing (1.36).
    """
    shared_claim_nodes: list[tuple[BoolArray, Reason]] = []
    remaining: BoolArray = np.ones(len(nodes), dtype=np.bool_)
    uid = state_data.pod.uid_or_key
    for claim, selector in zip(state_data.claims, state_data.node_selectors, strict=True):
        uids_by_row = (
            nodes.snapshot.node_allocatable_claim_users(claim.key) if claim.status.allocation is not None else {}
        )
        if not uids_by_row:
            continue
        candidates = remaining if selector is None else remaining & match_node_selector(nodes, selector)
        subject = f"node allocatable resource claim {claim.metadata.name}"
        shared_rows = [row for row, uids in uids_by_row.items() if len(uids) > 1]
        other_pod_rows = [row for row, uids in uids_by_row.items() if len(uids) == 1 and uid not in uids]
        for rows, problem in (
            (shared_rows, "shared by multiple pods"),
            (other_pod_rows, "is already used by another pod"),
        ):
            mask = nodes.take(make_mask(rows, len(nodes.snapshot))) & candidates
            shared_claim_nodes.append((mask, Reason(f"{subject} {problem}", Code.UNRESOLVABLE)))
            remaining = remaining & ~mask
    return shared_claim_nodes


def find_nodes_with_mapped_claims(
    state_data: StateData, nodes: NodeView, slices: Collection[CompiledSlice]
) -> list[tuple[BoolArray, Reason]]:
    """Return the nodes of allocated claims of other pods with a mapped device, with reasons.

    Source: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go,
    DynamicResources.validateNodeAllocatableDRAClaimSharing (1.37).
    """
    shared_claim_nodes: list[tuple[BoolArray, Reason]] = []
    index_of_devices: DeviceIndex | None = None
    for index, (claim, selector) in enumerate(zip(state_data.claims, state_data.node_selectors, strict=True)):
        if claim.status.allocation is None:
            continue
        if index_of_devices is None:
            index_of_devices = index_devices(slices)
        if not is_mapped(find_allocated_devices(claim.status.allocation, index_of_devices, None)):
            continue
        is_reserved = bool(claim.status.reserved_for) and not is_reserved_for_pod(claim, state_data.pod)
        if is_reserved or index in state_data.shared_allocations:
            everywhere: BoolArray = np.ones(len(nodes), dtype=np.bool_)
            mask = everywhere if selector is None else match_node_selector(nodes, selector)
            problem = "has a mapped device and cannot be shared across pods"
            reason = Reason(f"node allocatable resource claim {claim.metadata.name} {problem}", Code.UNRESOLVABLE)
            shared_claim_nodes.append((mask, reason))
    return shared_claim_nodes


class NodeResourcesCheck:
    """Checks the pod's requests on nodes, including the node resources of the devices allocated there.

    Source: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go,
    DynamicResources.calculateAndCheckNodeAllocatableResources (1.36).
    """

    def __init__(
        self,
        state_data: StateData,
        nodes: NodeView,
        resources_options: PodResourcesOptions,
        slices: Collection[CompiledSlice] | None = None,
    ) -> None:
        self._claims, self._slices = state_data.claims, slices
        self._device_index: DeviceIndex | None = None
        self._pod, self._nodes, self._statuses_by_node = state_data.pod, nodes, state_data.node_allocatable_statuses
        self._names = nodes.names
        self._resources_options = resources_options._replace(use_status_resources=False)
        self._containers = _group_containers_by_claim(state_data.pod)
        self._checks_limits = slices is not None and resources_options.pod_level_resources
        self._amounts_by_resource: dict[str, tuple[IntArray, IntArray]] = {}
        self._requests: dict[bytes, dict[str, int]] = {}

    def check(
        self, position: int, claims: Sequence[ResourceClaim], allocation: NodeAllocation | None
    ) -> tuple[Reason, ...]:
        """Return the reasons for insufficient resources on the node at *position*.

        If the resources suffice, store the node resources that the claims of the pod consume: *claims*, which
        *allocation* allocates, and since 1.37 the claims that are already allocated.

        Raises:
            AllocationError: the amounts cannot be computed.
            NodeAllocationError: in 1.36, no container uses a claim; or the pod-level requests or limits are too low.
        """
        node_name = self._names[position]
        self._statuses_by_node.pop(node_name, None)
        if self._slices is not None:
            statuses = self._build_statuses(position, claims, allocation)
        else:
            statuses = self._build_mapped_statuses(claims, allocation)
        if statuses is None:
            return ()
        insufficient_reasons = tuple(self._find_insufficient_resources(position, self._compute_requests(statuses)))
        if statuses and not insufficient_reasons:
            self._statuses_by_node[node_name] = statuses
        return insufficient_reasons

    def _build_mapped_statuses(
        self, claims: Sequence[ResourceClaim], allocation: NodeAllocation | None
    ) -> ClaimStatuses | None:
        """Return the resources of 1.36; None if no device has any."""
        device_results = {
            claim.metadata.name: results
            for claim, results in zip(claims, allocation or (), strict=True)
            if any(result.device.device.node_allocatable_resource_mappings for result in results)
        }
        if not device_results:
            return None
        statuses = tuple(self._build_claim_status(name, device_results[name]) for name in sorted(device_results))
        claim_statuses = tuple(status for status in statuses if status.resources)
        for status in claim_statuses:
            if not status.containers:
                problem = "node-allocatable resource claim not referenced by any container within the pod"
                raise NodeAllocationError(f"claim {status.resource_claim_name}: {problem}")
        return claim_statuses

    def _build_statuses(
        self, position: int, claims: Sequence[ResourceClaim], allocation: NodeAllocation | None
    ) -> ClaimStatuses | None:
        """Return the resources of 1.37; None if no device has any."""
        new_results = dict(zip((claim.metadata.uid for claim in claims), allocation or (), strict=True))
        devices_by_claim: list[tuple[ResourceClaim, list[UsedDevice]]] = []
        for claim in self._claims:
            devices: list[UsedDevice] = []
            if claim.metadata.uid in new_results:
                devices = [_to_used_device(result) for result in new_results[claim.metadata.uid]]
            elif claim.status.allocation is not None:
                node = self._nodes.nodes[position]
                if self._device_index is None:
                    self._device_index = index_devices(self._slices or ())
                devices = list(find_allocated_devices(claim.status.allocation, self._device_index, node))
            if any(used.device.node_allocatable_resources for used in devices):
                devices_by_claim.append((claim, devices))
        if not devices_by_claim:
            return None
        statuses = (
            build_claim_status(claim, devices, self._containers.get(claim.metadata.name, ()))
            for claim, devices in sorted(devices_by_claim, key=lambda pair: pair[0].metadata.name)
        )
        return tuple(status for status in statuses if status.mapping or status.overhead)

    def _build_claim_status(
        self, name: str, device_results: Iterable[DeviceResult]
    ) -> NodeAllocatableResourceClaimStatus:
        amounts: dict[str, FormattedQuantity] = {}
        for used in map(_to_used_device, device_results):
            for resource, mapping in used.device.node_allocatable_resource_mappings.items():
                amount = _compute_mapped_amount(used, resource, mapping, f"{self._pod.metadata.namespace}/{name}")
                if amount is not None:
                    amounts[resource] = amounts.get(resource, _ZERO).plus(amount)
        return NodeAllocatableResourceClaimStatus(
            resource_claim_name=name,
            containers=self._containers.get(name, ()),
            resources={resource: amount.text for resource, amount in amounts.items()},
        )

    def _compute_requests(self, claim_statuses: ClaimStatuses) -> dict[str, int]:
        """Return the pod's requests including those of *claim_statuses*, in base units.

        Raises:
            NodeAllocationError: a pod-level request is lower than the sum of these requests.
        """
        key = msgspec.msgpack.encode(claim_statuses)
        requests = self._requests.get(key)
        if requests is None:
            pod = copy_with_claim_statuses(self._pod, claim_statuses)
            insufficient_resources = (
                find_exceeded_pod_level_requests(pod)
                if self._resources_options.pod_level_resources and pod.spec.resources is not None
                else []
            )
            if insufficient_resources:
                problem = "is insufficient to cover the aggregated container and node-allocatable DRA requests"
                raise NodeAllocationError(f"pod level request for {insufficient_resources[0]} {problem}")
            exceeded_limit = find_exceeded_pod_level_limit(pod) if self._checks_limits else None
            if exceeded_limit is not None:
                raise NodeAllocationError(exceeded_limit)
            requests = self._requests[key] = pod_requests(pod, self._resources_options)
        return requests

    def _find_insufficient_resources(self, position: int, requests: dict[str, int]) -> list[Reason]:
        insufficient_names: list[str] = []
        code = Code.UNSCHEDULABLE
        for name in (*_BASIC_RESOURCES, *sorted(filter(is_hugepages_resource, requests))):
            amount = requests.get(name, 0)
            if amount <= 0 and name in _BASIC_RESOURCES:
                continue
            allocatable, requested = self._get_amounts(name)
            allocatable_amount = int(allocatable[position])
            if amount > allocatable_amount - int(requested[position]):
                insufficient_names.append(name)
                if amount > allocatable_amount:
                    code = Code.UNRESOLVABLE
        return [Reason(f"Insufficient {name}", code, order) for order, name in enumerate(insufficient_names)]

    def _get_amounts(self, name: str) -> tuple[IntArray, IntArray]:
        amounts = self._amounts_by_resource.get(name)
        if amounts is None:
            resource_id = self._nodes.snapshot.symbols.get_resource_id(name)
            amounts = self._amounts_by_resource[name] = (
                self._nodes.allocatable(resource_id),
                self._nodes.requested(resource_id),
            )
        return amounts


def _group_containers_by_claim(pod: Pod) -> dict[str, tuple[str, ...]]:
    """Return the names of the containers that refer to each claim, by claim name. Each reference adds one name."""
    claim_names = {
        pod_claim.name: name
        for pod_claim in pod.spec.resource_claims
        if isinstance(name := get_claim_name(pod, pod_claim)[0], str)
    }
    containers: dict[str, tuple[str, ...]] = {}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for reference in container.resources.claims:
            name = claim_names.get(reference.name)
            if name is not None:
                containers[name] = (*containers.get(name, ()), container.name)
    return containers


def _to_used_device(result: DeviceResult) -> UsedDevice:
    consumed: dict[str, FormattedQuantity] = {}
    for name, amount in (result.consumed_capacity or {}).items():
        parsed = parse_formatted(amount.text)
        # Upstream always rounds to the binary format.
        consumed[name] = parsed._replace(format=Format.BINARY) if amount.rounded else parsed
    return UsedDevice(result.device.device, consumed)


def _compute_mapped_amount(
    used: UsedDevice, resource: str, mapping: NodeAllocatableResourceMapping, claim_key: str
) -> FormattedQuantity | None:
    """Return the amount of *resource* that a device consumes; None if its mapped capacity is not consumed.

    Raises:
        AllocationError: *mapping* has a capacity key, but *used* has no consumed capacity.
    """
    factor = mapping.allocation_multiplier
    if not mapping.capacity_key:
        return _ZERO if factor is None else parse_formatted(factor)
    if not used.consumed:
        problem = f"ConsumedCapacity is nil, but Capacity key '{mapping.capacity_key}' is set"
        location = f"in NodeAllocatableResourceMappings for resource {resource}"
        raise AllocationError(f"claim {claim_key}, device {used.device.name}: {problem} {location}")
    consumed = used.consumed.get(mapping.capacity_key)
    return consumed if consumed is None or factor is None else consumed.times(parse(factor))


def copy_with_claim_statuses(pod: Pod, statuses: ClaimStatuses) -> Pod:
    """Return *pod* with *statuses* as the node resources that it consumes through claims."""
    if pod.status.node_allocatable_resource_claim_statuses == statuses:
        return pod
    status = msgspec.structs.replace(pod.status, node_allocatable_resource_claim_statuses=statuses)
    return msgspec.structs.replace(pod, status=status)
