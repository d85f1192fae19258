"""Filter of DynamicResources: reject nodes that do not match the allocated claims or lack devices for other claims.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Filter;
pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, DynamicResources.filterExtendedResources
(1.36).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from extender.api.kinds.devices import DeviceClass, ResourceClaim
from extender.api.kinds.node import Node
from extender.api.requests import PodResourcesOptions
from extender.cache.node_matching import match_node_selector
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.config.releases import DEFAULT_RELEASE, Release
from extender.dra.allocator import Allocator, CachedResults, ClaimsToAllocate, NodeAllocation, Outcome
from extender.dra.errors import AllocationError, AllocationTimeoutError, NodeAllocationError
from extender.dra.extended_resources import ExtendedResourceRequests, build_device_requests
from extender.dra.features import OPTIONAL_NODE_OPERATIONS
from extender.framework.status import Code, Reason, Rejection, reject_all
from extender.plugins.dynamic_resources.node_resources import (
    NodeResourcesCheck,
    find_nodes_with_mapped_claims,
    find_nodes_with_shared_claims,
)
from extender.plugins.dynamic_resources.state import AllocationRequest, StateData

UNAVAILABLE: Final = Reason("resourceclaim not available on the node", Code.UNRESOLVABLE)
_CANNOT_ALLOCATE: Final = Reason("cannot allocate all claims", Code.UNRESOLVABLE)
_CLAIM_EXISTS: Final = Reason("cannot schedule extended resource claim", Code.UNRESOLVABLE)
_CANNOT_FIT: Final = Reason("cannot fit resource", Code.UNRESOLVABLE)

_FEW_NODES: Final = 64
"""The allocations on at most this number of nodes, or on an eighth of all nodes, are stored one by one."""


class FilterContext(NamedTuple):
    """The dependencies and options of Filter.

    Attributes:
        allocator: the allocator of devices.
        device_classes: the device classes by extended resource.
        timeout: the timeout for all nodes together in seconds; 0 means no timeout. kube-scheduler searches nodes in
            parallel, so there it is for each node.
        resources_options: the options for computing requests; None if the gate DRANodeAllocatableResources is off.
        release: the emulated release.
    """

    allocator: Allocator
    device_classes: Mapping[str, DeviceClass]
    timeout: float
    resources_options: PodResourcesOptions | None = None
    release: Release = DEFAULT_RELEASE


class _RejectedNodes:
    """Collects rejected nodes by reason."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._masks: dict[Reason, BoolArray] = {}

    def add(self, nodes: BoolArray, reason: Reason) -> None:
        if nodes.any():
            self._masks[reason] = self._masks[reason] | nodes if reason in self._masks else nodes

    def add_node(self, position: int, reason: Reason) -> None:
        mask = self._masks.get(reason)
        if mask is None:
            mask = self._masks[reason] = np.zeros(self._size, dtype=np.bool_)
        mask[position] = True

    def build_rejections(self) -> tuple[Rejection, ...]:
        return tuple(Rejection(mask, reason) for reason, mask in self._masks.items())


def find_rejections(state_data: StateData, nodes: NodeView, context: FilterContext) -> tuple[Rejection, ...]:
    """Return the rejections of nodes. Store the allocations on the other nodes in *state_data*."""
    size = len(nodes)
    extended_resource_claim = state_data.extended_resource_claim
    if extended_resource_claim is not None and extended_resource_claim.spec.devices.requests:
        return reject_all(size, _CLAIM_EXISTS)
    rejected_nodes = _RejectedNodes(size)
    node_groups = _group_nodes_by_required_devices(state_data, nodes, rejected_nodes)
    unavailable_by_claim = _find_unavailable(state_data, nodes)
    if context.release.supports_skipped_operations:
        _add_nodes_without_skipping(unavailable_by_claim, state_data, nodes)
    has_unavailable_claim = np.zeros(size, dtype=np.bool_)
    for mask in unavailable_by_claim.values():
        has_unavailable_claim |= mask
    must_allocate = bool(state_data.unallocated_indices)
    has_allocated_claims = (
        extended_resource_claim is not None
        and state_data.names_extended_claim
        and not state_data.has_unallocated_user_claim
    )
    checks_resources = context.resources_options is not None and context.release.has_node_allocatable_overhead
    shared_claim_nodes = _find_shared_claim_nodes(state_data, nodes, context)
    for resources, group_nodes in node_groups:
        if extended_resource_claim is not None and not resources and not state_data.has_user_claims:
            continue  # a device plugin provides all requested resources
        allowed_nodes = group_nodes
        for mask, reason in shared_claim_nodes:
            rejected_nodes.add(allowed_nodes & mask, reason)
            allowed_nodes = allowed_nodes & ~mask
        allocates = must_allocate and (bool(resources) or not has_allocated_claims)
        if allocates or checks_resources:
            search = _NodeSearch(state_data, nodes, context, rejected_nodes)
            if allocates:
                search.allocate(allowed_nodes, _get_allocation_request(state_data, resources, context))
            else:
                search.search(np.flatnonzero(allowed_nodes), None)
            allowed_nodes = search.allowed_nodes
        rejected_nodes.add(allowed_nodes & has_unavailable_claim, UNAVAILABLE)
        for index, mask in unavailable_by_claim.items():
            _record_unavailable(state_data, index, nodes, allowed_nodes & mask)
    return rejected_nodes.build_rejections()


def _find_shared_claim_nodes(
    state_data: StateData, nodes: NodeView, context: FilterContext
) -> list[tuple[BoolArray, Reason]]:
    """Return the nodes where a claim of the pod may not be shared, with reasons."""
    if context.resources_options is None:
        return []
    if not context.release.has_node_allocatable_overhead:
        return find_nodes_with_shared_claims(state_data, nodes)
    return find_nodes_with_mapped_claims(state_data, nodes, context.allocator.slice_index.slices.values())


def _make_resources_check(state_data: StateData, nodes: NodeView, context: FilterContext) -> NodeResourcesCheck | None:
    if context.resources_options is None:
        return None
    has_overhead = context.release.has_node_allocatable_overhead
    slices = tuple(context.allocator.slice_index.slices.values()) if has_overhead else None
    return NodeResourcesCheck(state_data, nodes, context.resources_options, slices)


def _group_nodes_by_required_devices(
    state_data: StateData, nodes: NodeView, rejected_nodes: _RejectedNodes
) -> list[tuple[frozenset[str], BoolArray]]:
    """Group the nodes by the extended resources that must be allocated as devices on them."""
    node_groups = [(frozenset[str](), np.ones(len(nodes), dtype=np.bool_))]
    if state_data.extended_resource_claim is None:
        return node_groups
    for name in state_data.extended_resources:
        resource_id = nodes.snapshot.symbols.resources.get(name)
        lacks_resource: BoolArray = (
            np.ones(len(nodes), dtype=np.bool_) if resource_id is None else nodes.allocatable(resource_id) == 0
        )
        if name in state_data.dra_backed_resources:
            split_groups = [
                (resources | {name}, group_nodes & lacks_resource) for resources, group_nodes in node_groups
            ]
            split_groups += [(resources, group_nodes & ~lacks_resource) for resources, group_nodes in node_groups]
            node_groups = [(resources, group_nodes) for resources, group_nodes in split_groups if group_nodes.any()]
            continue
        for position in np.flatnonzero(lacks_resource).tolist():
            lacks_resource[position] = name not in _get_node(nodes, position).status.allocatable
        rejected_nodes.add(lacks_resource, _CANNOT_FIT)
        node_groups = [(resources, group_nodes & ~lacks_resource) for resources, group_nodes in node_groups]
    return node_groups


def _get_node(nodes: NodeView, position: int) -> Node:
    snapshot = nodes.snapshot
    return snapshot.nodes[position if nodes.rows is None else int(nodes.rows[position])]


def _find_unavailable(state_data: StateData, nodes: NodeView) -> dict[int, BoolArray]:
    """Return the nodes where each claim's allocation is not available, by the claim's index."""
    unavailable_by_claim: dict[int, BoolArray] = {}
    claim_results = zip(state_data.node_selectors, state_data.binding_failed, strict=True)
    for index, (selector, binding_failed) in enumerate(claim_results):
        if binding_failed:
            unavailable_by_claim[index] = np.ones(len(nodes), dtype=np.bool_)
        elif selector is not None:
            unavailable_by_claim[index] = ~match_node_selector(nodes, selector)
    return unavailable_by_claim


def _add_nodes_without_skipping(
    unavailable_by_claim: dict[int, BoolArray], state_data: StateData, nodes: NodeView
) -> None:
    """Add the nodes that do not declare DRAOptionalNodeOperations for each claim with a device that needs it.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
    allocationResultRequiresDRAOptionalNodeOperations (1.37).
    """
    for index, claim in enumerate(state_data.claims):
        allocation = claim.status.allocation
        if allocation is not None and any(result.skip_node_operations for result in allocation.devices.results):
            feature_sets = nodes.snapshot.symbols.feature_sets
            lacks_feature = np.array([OPTIONAL_NODE_OPERATIONS not in features for features in feature_sets])
            mask = lacks_feature[nodes.feature_set_ids]
            unavailable_by_claim[index] = unavailable_by_claim.get(index, mask) | mask


def _record_unavailable(state_data: StateData, index: int, nodes: NodeView, unavailable_nodes: BoolArray) -> None:
    if not unavailable_nodes.any():
        return
    rows = np.flatnonzero(unavailable_nodes) if nodes.rows is None else nodes.rows[unavailable_nodes]
    unavailable_rows = state_data.unavailable_claims.get(index)
    if unavailable_rows is None:
        unavailable_rows = state_data.unavailable_claims[index] = np.zeros(len(nodes.snapshot), dtype=np.bool_)
    unavailable_rows[rows] = True


def _get_allocation_request(
    state_data: StateData, resources: frozenset[str], context: FilterContext
) -> AllocationRequest:
    request = state_data.allocation_requests.get(resources)
    if request is None:
        request = _build_allocation_request(state_data, resources, context)
        state_data.allocation_requests[resources] = request
    return request


def _build_allocation_request(
    state_data: StateData, resources: frozenset[str], context: FilterContext
) -> AllocationRequest:
    extended_requests: ExtendedResourceRequests | None = None
    extended_claim = state_data.extended_resource_claim
    if extended_claim is not None:
        extended_requests = build_device_requests(state_data.pod, resources, context.device_classes)
        devices = msgspec.structs.replace(extended_claim.spec.devices, requests=extended_requests.requests)
        spec = msgspec.structs.replace(extended_claim.spec, devices=devices)
        extended_claim = msgspec.structs.replace(extended_claim, spec=spec)
    claims: Iterable[ResourceClaim | None] = (
        extended_claim if state_data.claims[index] is state_data.extended_resource_claim else state_data.claims[index]
        for index in state_data.unallocated_indices
    )
    claims_to_allocate: ClaimsToAllocate = context.allocator.prepare([claim for claim in claims if claim is not None])
    return AllocationRequest(claims_to_allocate, extended_requests, extended_claim)


class _NodeSearch:
    """Allocates all claims on nodes, and rejects the nodes on which that is not possible.

    Attributes:
        allowed_nodes: whether the claims were allocated on each node.
    """

    def __init__(
        self, state_data: StateData, nodes: NodeView, context: FilterContext, rejected_nodes: _RejectedNodes
    ) -> None:
        self.allowed_nodes: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
        self._allocator, self._rejected_nodes = context.allocator, rejected_nodes
        self._state_data, self._nodes = state_data, nodes
        self._resources_check = _make_resources_check(state_data, nodes, context)
        self._timed_out = context.allocator.make_timeout_check(context.timeout)
        self._has_timed_out = False

    def allocate(self, candidates: BoolArray, request: AllocationRequest) -> None:
        """Allow the *candidates* on which all claims of *request* can be allocated, and reject the others."""
        remaining = candidates
        for one_per_group in (True, False):
            remaining, groups = self._use_cached_results(remaining, request)
            if not remaining.any():
                break
            positions = np.flatnonzero(remaining)
            if one_per_group:  # the other nodes of a group have the same result
                positions = np.sort(positions[np.unique(groups[positions], return_index=True)[1]])
            self.search(positions, request)
            remaining[positions] = False

    def _use_cached_results(self, candidates: BoolArray, request: AllocationRequest) -> tuple[BoolArray, IntArray]:
        """Allow and reject nodes by cached results; return the remaining *candidates* and the group of each node."""
        cached = self._allocator.find_cached(request.claims_to_allocate, self._nodes, candidates, self._timed_out)
        self._rejected_nodes.add(candidates & (cached.outcomes == Outcome.NOT_FOUND), _CANNOT_ALLOCATE)
        if self._resources_check is not None:  # depends on each node
            return candidates & (cached.outcomes != Outcome.NOT_FOUND), cached.groups
        found = candidates & (cached.outcomes == Outcome.FOUND)
        self.allowed_nodes |= found
        self._remember(cached, found, request)
        return candidates & (cached.outcomes == Outcome.UNKNOWN), cached.groups

    def _remember(self, cached: CachedResults, found: BoolArray, request: AllocationRequest) -> None:
        """Store the allocations on the *found* nodes in place of those that an earlier call found there.

        Dry runs of preemption filter one node or few nodes many times: no arrays of all nodes are stored for these.
        """
        positions = np.flatnonzero(found)
        if len(positions) > max(_FEW_NODES, len(self._nodes.snapshot) // 8):
            self._state_data.add_cached_allocations(cached.copy_allocations(found), request)
            return
        names = self._nodes.names
        for position in positions.tolist():
            allocation = cached.get_allocation(position)
            if allocation is not None:
                self._state_data.node_allocations[names[position]] = allocation, request

    def search(self, positions: IntArray, request: AllocationRequest | None) -> None:
        """Allocate the claims of *request* on the nodes at *positions*; None: only check their resources."""
        nodes = self._nodes.nodes
        for position in positions.tolist():
            node = nodes[position]
            if self._has_timed_out:
                self._rejected_nodes.add_node(position, _make_timeout_reason(node.metadata.name))
                continue
            try:
                reasons = self._allocate_on(position, node, request)
            except AllocationTimeoutError:
                self._has_timed_out = True  # the attempt has failed: skip the remaining nodes
                reasons = (_make_timeout_reason(node.metadata.name),)
            except AllocationError as error:
                reasons = (Reason(str(error), Code.ERROR),)
            except NodeAllocationError as error:
                reasons = (Reason(str(error), Code.UNRESOLVABLE),)
            for reason in reasons:
                self._rejected_nodes.add_node(position, reason)
            self.allowed_nodes[position] = not reasons

    def _allocate_on(self, position: int, node: Node, request: AllocationRequest | None) -> tuple[Reason, ...]:
        """Allocate the claims on *node*, and return the reasons for rejecting it."""
        claims: Sequence[ResourceClaim] = ()
        allocation: NodeAllocation | None = None
        if request is not None:
            claims = request.claims_to_allocate.claims
            allocation = self._allocator.allocate(request.claims_to_allocate, node, self._timed_out)
            if allocation is None:
                return (_CANNOT_ALLOCATE,)
        if self._resources_check is not None:
            insufficient_reasons = self._resources_check.check(position, claims, allocation)
            if insufficient_reasons:
                return insufficient_reasons
        if request is not None and allocation is not None:
            self._state_data.node_allocations[node.metadata.name] = allocation, request
        return ()


def _make_timeout_reason(name: str) -> Reason:
    return Reason(f"node {name}: timed out trying to allocate devices", Code.ERROR)
