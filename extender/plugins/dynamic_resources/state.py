"""The state of DynamicResources in one scheduling cycle.

PreFilter creates the state, Filter adds allocations, and Reserve and PreBind use them.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, stateData (1.36).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from extender.api.kinds.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from extender.api.kinds.pod import NodeAllocatableResourceClaimStatus, Pod
from extender.api.matching import CompiledNodeSelector
from extender.cache.tables.arrays import BoolArray
from extender.dra.allocated_devices import get_extended_resource_pod
from extender.dra.allocator import CachedAllocations, ClaimsToAllocate, NodeAllocation
from extender.dra.extended_resources import ExtendedResourceRequests

SPECIAL_CLAIM_IN_MEM_NAME = "<extended-resources>"
"""The name of a claim for extended resources that is not created yet."""


class AllocationRequest(NamedTuple):
    """The claims to allocate on nodes that lack the same extended resources.

    Attributes:
        claims_to_allocate: the prepared claims.
        extended_requests: the device requests for extended resources; None if the pod needs no claim for them.
        extended_resource_claim: the claim with these requests; None if the pod needs no such claim.
    """

    claims_to_allocate: ClaimsToAllocate
    extended_requests: ExtendedResourceRequests | None
    extended_resource_claim: ResourceClaim | None


@dataclass(slots=True, eq=False)
class StateData:
    """The plugin's state of one cycle. Claims are identified by their index in `claims`.

    Attributes:
        claims: the claims in the order of the pod's spec, then the claim for extended resources, if any.
        consumers: for each claim of the pod's spec, the pod or pod group to reserve the claim for.
        extended_resource_claim: the claim for extended resources, if any.
        node_selectors: for each claim, the node selector of its allocation; None if it has no selector.
        binding_failed: for each claim, whether its devices failed to bind.
        extended_resources: the names of the extended resources that the pod requests.
        dra_backed_resources: those of `extended_resources` that have a device class.
        allocation_requests: the claims to allocate, by the set of extended resources that the node lacks.
        node_allocations: the devices that Filter allocated and the claims to allocate, by node name.
        cached_allocations: the same for many nodes with cached results, the newest last.
        node_allocatable_statuses: the node resources that the pod consumes through its claims, by node name.
        shared_allocations: the allocations that earlier pods of the pod group cycle reserved, by claim index. The
            claims in `claims` have them already.
        unavailable_claims: the rows where a claim is not available, by claim index.
        allocation_results: the allocations to write, by claim index; set by Reserve.
        reserved_request: the element of `allocation_requests` that was allocated on the node; set by Reserve.
        bound_claims: the claims as PreBind writes them, by claim index; set by PreBind.
    """

    pod: Pod
    claims: list[ResourceClaim]
    consumers: list[ResourceClaimConsumerReference] = field(default_factory=list)
    extended_resource_claim: ResourceClaim | None = None
    node_selectors: tuple[CompiledNodeSelector | None, ...] = ()
    binding_failed: tuple[bool, ...] = ()
    extended_resources: tuple[str, ...] = ()
    dra_backed_resources: frozenset[str] = frozenset()
    allocation_requests: dict[frozenset[str], AllocationRequest] = field(default_factory=dict)
    node_allocations: dict[str, tuple[NodeAllocation, AllocationRequest]] = field(default_factory=dict)
    cached_allocations: list[tuple[CachedAllocations, AllocationRequest]] = field(default_factory=list)
    node_allocatable_statuses: dict[str, tuple[NodeAllocatableResourceClaimStatus, ...]] = field(default_factory=dict)
    shared_allocations: dict[int, AllocationResult] = field(default_factory=dict)
    unavailable_claims: dict[int, BoolArray] = field(default_factory=dict)
    allocation_results: dict[int, AllocationResult] = field(default_factory=dict)
    reserved_request: AllocationRequest | None = None
    bound_claims: dict[int, ResourceClaim] = field(default_factory=dict)

    def find_allocation(self, node_name: str) -> NodeAllocation | None:
        """Return the devices that Filter allocated on a node; None if it allocated none."""
        entry = self.find_allocation_and_request(node_name)
        return None if entry is None else entry[0]

    def find_allocation_and_request(self, node_name: str) -> tuple[NodeAllocation, AllocationRequest] | None:
        """Return the result of `find_allocation` and the claims to allocate."""
        entry = self.node_allocations.get(node_name)
        if entry is not None:
            return entry
        for allocations, request in reversed(self.cached_allocations):
            allocation = allocations.get(node_name)
            if allocation is not None:
                return allocation, request
        return None

    def add_cached_allocations(self, allocations: CachedAllocations, request: AllocationRequest) -> None:
        """Store the devices on many nodes in place of those that an earlier call of Filter found there."""
        for name in [name for name in self.node_allocations if allocations.get(name) is not None]:
            del self.node_allocations[name]
        self.cached_allocations.append((allocations, request))

    def share_allocation(self, index: int, allocation: AllocationResult) -> None:
        """Use the *allocation* that an earlier pod of the pod group cycle reserved for the claim at *index*."""
        claim = self.claims[index]
        status = msgspec.structs.replace(claim.status, allocation=allocation)
        self.claims[index] = msgspec.structs.replace(claim, status=status)
        self.shared_allocations[index] = allocation

    @property
    def has_user_claims(self) -> bool:
        """Whether the pod's spec has claims."""
        return len(self.claims) > (self.extended_resource_claim is not None)

    @property
    def unallocated_indices(self) -> list[int]:
        """The indices of claims without an allocation."""
        return [index for index, claim in enumerate(self.claims) if claim.status.allocation is None]

    @property
    def has_unallocated_user_claim(self) -> bool:
        """Whether a claim of the pod's spec has no allocation."""
        return any(self.claims[index] is not self.extended_resource_claim for index in self.unallocated_indices)

    @property
    def names_extended_claim(self) -> bool:
        """Whether the spec names the pod's claim for extended resources, as in the verb bind; it needs no other one."""
        return any(
            claim is not self.extended_resource_claim and get_extended_resource_pod(claim) == self.pod.metadata.uid
            for claim in self.claims
        )

    @property
    def extended_claim_exists(self) -> bool:
        """Whether an earlier cycle created the claim for extended resources."""
        return (
            self.extended_resource_claim is not None
            and self.extended_resource_claim.metadata.name != SPECIAL_CLAIM_IN_MEM_NAME
        )
