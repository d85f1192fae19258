"""Allocation of claims on nodes, with cached results.

Pods of one template have claims with equal requests. So the result of a search on a node is cached for equal claims. It
is valid until a device of the node's pools is allocated or deallocated, or a slice or class changes. Each further pod
usually needs only one new search.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter,
DynamicResources.Filter (1.36).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from extender.api.kinds.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.api.kinds.node import Node
from extender.basics.clock import Clock
from extender.cache.snapshot import Snapshot
from extender.cache.tables.symbols import MAX_UNUSED_VALUES
from extender.dra.allocated_devices import AllocatedDevices
from extender.dra.allocation_search import AllocationSearch
from extender.dra.constraints import build_constraints
from extender.dra.device_pools import Pool, PoolDevice, SliceIndex
from extender.dra.device_requests import (
    ALLOCATION_MODE_ALL,
    DeviceResult,
    NormalizedRequest,
    RequestData,
    normalize_request,
)
from extender.dra.device_taint_rules import apply_taint_rules
from extender.dra.errors import AllocationError, NodeAllocationError
from extender.dra.features import Features
from extender.dra.resource_slices import CompiledSlice, PoolId
from extender.dra.search_bounds import ALLOCATION_RESULTS_MAX_SIZE, ClaimAllocation

ALLOCATOR_KEY: Final = "DynamicResources"
"""The key of the allocator in the shared state of the plugins. It is absent if DynamicResources is disabled."""

_MAX_CACHED_CLAIM_SETS: Final = 128
_encoder = msgspec.msgpack.Encoder(order="deterministic")


class NodeAllocation(NamedTuple):
    """The devices of each claim on one node, in the order of the claims."""

    device_results: tuple[tuple[DeviceResult, ...], ...]


class _SearchResult(NamedTuple):
    """The result of a search. `error` is empty unless the node's devices are invalid."""

    allocation: NodeAllocation | None
    error: str


class _NodeResult(NamedTuple):
    """The cached result for a node."""

    node: Node
    search_result: _SearchResult


@dataclass(slots=True)
class NodeAllocationCache:
    """The cached results for equal claims, by node name and by shared pools, and the names of the nodes by pool."""

    version: int
    results_by_node: dict[str, _NodeResult] = field(default_factory=dict)
    results_by_shared_pools: dict[tuple[Pool, ...], _SearchResult] = field(default_factory=dict)
    nodes_by_pool: dict[PoolId, set[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClaimsToAllocate:
    """Claims to be allocated together, and the cached results for equal claims."""

    claims: tuple[ResourceClaim, ...]
    cache: NodeAllocationCache


class Allocator:
    """Allocates claims on the snapshots of one cache. It is not thread-safe.

    The DynamicResources plugins of all profiles share one allocator.

    Attributes:
        classes: device classes by name.
        planned_allocations: the uid of the last pod with claims that passed PreFilter of DynamicResources, and by node
            name a tuple that starts with the allocation that Filter found. Other plugins read it.
        slice_index: the compiled slices.
        slice_and_class_version: changes with the slices, classes and taint rules; results hold for one value of it.
    """

    def __init__(self, features: Features, clock: Clock) -> None:
        self._features = features
        self._clock = clock
        self.allocated_devices = AllocatedDevices(consumable_capacity=features.consumable_capacity)
        self.classes: Mapping[str, DeviceClass] = {}
        self.planned_allocations: tuple[str, Mapping[str, tuple[NodeAllocation, object]]] = ("", {})
        self.slice_index = SliceIndex({}, features)
        self.slice_and_class_version: tuple[object, ...] = ()
        self._caches: dict[bytes, NodeAllocationCache] = {}

    def sync(self, snapshot: Snapshot) -> None:
        """Update from the slices, classes and claims that changed since the last call, and forget removed nodes."""
        self.allocated_devices.sync(snapshot)
        kinds = (ResourceSlice, DeviceClass, DeviceTaintRule)
        slice_and_class_version = (snapshot.object_history_id, *map(snapshot.revision, kinds))
        max_nodes = 2 * len(snapshot.names) + MAX_UNUSED_VALUES
        if slice_and_class_version == self.slice_and_class_version and self.slice_index.node_count <= max_nodes:
            return
        self.slice_and_class_version = slice_and_class_version
        self._caches = {}
        self.classes = dict(snapshot.objects(DeviceClass))
        rules = snapshot.objects(DeviceTaintRule).values() if self._features.device_taint_rules else ()
        previous_slices = self.slice_index.slices
        slices: dict[str, CompiledSlice] = {}
        for key, stored_slice in snapshot.objects(ResourceSlice).items():
            resource_slice = apply_taint_rules(
                stored_slice,
                rules,
                applies_rules_without_selector=self._features.release.applies_rules_without_selector,
            )
            compiled_slice = previous_slices.get(key)
            if compiled_slice is None or compiled_slice.resource_slice is not resource_slice:
                compiled_slice = CompiledSlice(resource_slice)
            slices[key] = compiled_slice
        self.slice_index = SliceIndex(slices, self._features)

    def prepare(self, claims: Sequence[ResourceClaim]) -> ClaimsToAllocate:
        """Prepare *claims* to be allocated together. The result is valid until the next `sync`."""
        signature = _encoder.encode([claim.spec for claim in claims])
        cache = self._caches.get(signature)
        if cache is None:
            if len(self._caches) >= _MAX_CACHED_CLAIM_SETS:
                del self._caches[next(iter(self._caches))]
            cache = self._caches[signature] = NodeAllocationCache(self.allocated_devices.version)
        return ClaimsToAllocate(tuple(claims), cache)

    def allocate(
        self, claims: ClaimsToAllocate, node: Node, timed_out: Callable[[], bool] = lambda: False
    ) -> NodeAllocation | None:
        """Return the devices for the claims on *node*, or None if they cannot be allocated there.

        *timed_out* returns whether the search must end; see `make_timeout_check`.

        Raises:
            AllocationError: a claim, a class or a slice is invalid.
            AllocationTimeoutError: the search timed out.
            NodeAllocationError: the pools of this node are invalid.
        """
        cache = claims.cache
        if cache.version != self.allocated_devices.version:
            self._invalidate_changed_pools(cache)
        name = node.metadata.name
        node_result = cache.results_by_node.get(name)
        if node_result is None or node_result.node is not node:
            pools = self.slice_index.get_pools_for_node(node)
            result = self._get_or_search(claims, node, pools, timed_out)
            node_result = cache.results_by_node[name] = _NodeResult(node, result)
            for pool in pools:
                cache.nodes_by_pool.setdefault(pool.id, set()).add(name)
        if node_result.search_result.error:
            raise NodeAllocationError(node_result.search_result.error)
        return node_result.search_result.allocation

    def _invalidate_changed_pools(self, cache: NodeAllocationCache) -> None:
        changed_pools = self.allocated_devices.list_pools_changed_since(cache.version)
        cache.version = self.allocated_devices.version
        cache.results_by_shared_pools = {}
        if changed_pools is None:
            cache.results_by_node, cache.nodes_by_pool = {}, {}
            return
        for pool in changed_pools:
            for name in cache.nodes_by_pool.pop(pool, ()):
                cache.results_by_node.pop(name, None)

    def _get_or_search(
        self, claims: ClaimsToAllocate, node: Node, pools: tuple[Pool, ...], timed_out: Callable[[], bool]
    ) -> _SearchResult:
        """Return the cached result for *pools*, or search. Network-attached devices often serve thousands of nodes."""
        if not all(pool.is_shared for pool in pools):
            return self._search(claims, node, pools, timed_out)
        results = claims.cache.results_by_shared_pools
        result = results.get(pools)
        if result is None:
            result = results[pools] = self._search(claims, node, pools, timed_out)
        return result

    def _search(
        self, claims: ClaimsToAllocate, node: Node, pools: Sequence[Pool], timed_out: Callable[[], bool]
    ) -> _SearchResult:
        search = AllocationSearch(node, pools, self.allocated_devices, self._features, timed_out)
        search.claims.extend(self._prepare_claim(claim, search, pools) for claim in claims.claims)
        if search.allocate():
            return _SearchResult(NodeAllocation(tuple(tuple(claim.results) for claim in search.claims)), "")
        has_invalid_pool = any(pool.invalid_reason for pool in pools)
        return _SearchResult(None, "invalid resource pools were encountered" if has_invalid_pool else "")

    def make_timeout_check(self, timeout: float) -> Callable[[], bool]:
        """Return a function that returns whether *timeout* seconds have passed since this call; 0: unlimited."""
        if timeout <= 0:
            return lambda: False
        monotonic = self._clock.monotonic
        deadline = monotonic() + timeout
        return lambda: monotonic() > deadline

    def _prepare_claim(self, claim: ResourceClaim, search: AllocationSearch, pools: Sequence[Pool]) -> ClaimAllocation:
        requests: list[tuple[RequestData, ...]] = []
        min_device_count = 0
        for request in claim.spec.devices.requests:
            subrequests = tuple(
                self._prepare_request(claim, subrequest, search, pools)
                for subrequest in normalize_request(claim, request, self.classes, self._features)
            )
            requests.append(subrequests)
            added_count = min(subrequest.num_devices for subrequest in subrequests)
            if self._features.release.checks_device_limit_by_request:
                _check_device_limit(claim, request.name, added_count, min_device_count)
            min_device_count += added_count
        if min_device_count > ALLOCATION_RESULTS_MAX_SIZE:
            message = f"claim {claim.key}: number of requested devices {min_device_count}"
            raise AllocationError(f"{message} exceeds the claim limit of {ALLOCATION_RESULTS_MAX_SIZE}")
        return ClaimAllocation(claim, requests, build_constraints(claim, self._features))

    def _prepare_request(
        self, claim: ResourceClaim, request: NormalizedRequest, search: AllocationSearch, pools: Sequence[Pool]
    ) -> RequestData:
        if request.allocation_mode != ALLOCATION_MODE_ALL:
            return RequestData(request, request.num_devices)
        ignore_consumed = self._features.release.keeps_exhausted_devices
        all_devices: list[PoolDevice] = []
        for pool in pools:
            if not pool.is_usable:
                problem = "being updated" if pool.incomplete else "invalid"
                message = f"claim {claim.key}, request {request.name}: asks for all devices"
                raise AllocationError(f"{message}, but resource pool {pool.name} is currently {problem}")
            all_devices.extend(
                PoolDevice(device, pool)
                for device in pool.devices
                if search.is_selectable(claim, request, device)
                and search.fits_capacity(request, device, ignore_consumed=ignore_consumed)
            )
        return RequestData(request, len(all_devices), tuple(all_devices))


def _check_device_limit(claim: ResourceClaim, request_name: str, added_count: int, count: int) -> None:
    """Check that *added_count* devices of a request do not exceed the device limit of the claim.

    Raises:
        AllocationError: the limit is exceeded.

    Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate
    (1.37).
    """
    if added_count > ALLOCATION_RESULTS_MAX_SIZE - count:
        raise AllocationError(
            f"claim {claim.key}, request {request_name}: adding {added_count} devices exceeds the claim limit of "
            f"{ALLOCATION_RESULTS_MAX_SIZE}, with {count} already accounted for"
        )
