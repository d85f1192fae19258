"""Allocation of claims on nodes, with cached results.

Pods of one template have claims with equal requests. So the result of a search on a node is cached for equal claims. It
is valid until a device of the node's pools is allocated or deallocated, or a slice or class changes. Each further pod
usually needs only one new search, and does not look at the other nodes one by one.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter,
DynamicResources.Filter (1.36).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.api.kinds.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.api.kinds.node import Node
from extender.basics.clock import Clock
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, widen
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
from extender.dra.node_groups import NodeGroups
from extender.dra.resource_slices import CompiledSlice
from extender.dra.search_bounds import ALLOCATION_RESULTS_MAX_SIZE, ClaimAllocation

ALLOCATOR_KEY: Final = "DynamicResources"
"""The key of the allocator in the shared state of the plugins. It is absent if DynamicResources is disabled."""

_MAX_CACHED_CLAIM_SETS: Final = 128
_encoder = msgspec.msgpack.Encoder(order="deterministic")


NodeAllocation: TypeAlias = tuple[tuple[DeviceResult, ...], ...]
"""The devices of each claim on one node, in the order of the claims."""


class _SearchResult(NamedTuple):
    """The result of a search. `error` is empty unless the node's devices are invalid."""

    allocation: NodeAllocation | None
    error: str


class Outcome(IntEnum):
    """Whether a cached search found devices."""

    UNKNOWN = 0
    FOUND = 1
    NOT_FOUND = 2


class NodeAllocationCache:
    """The cached results for equal claims, by group of nodes.

    Attributes:
        results: the result of the last search of each group.
        outcomes: the `Outcome` of each group, int8; UNKNOWN if the group's devices are invalid.
        versions: the version of each group at that search, int64; -1 before the first one.
    """

    def __init__(self) -> None:
        self.results: list[_SearchResult | None] = []
        self.outcomes: NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self.versions: IntArray = np.zeros(0, dtype=np.int64)

    def widen(self, size: int) -> None:
        """Provide entries for *size* groups."""
        added = size - len(self.results)
        if added > 0:
            self.results += [None] * added
            self.outcomes = widen(self.outcomes, size)
            self.versions = np.concatenate([self.versions, np.full(added, -1)])


class CachedAllocations(NamedTuple):
    """The allocations on the nodes for which a cached search found devices. Later searches do not change them."""

    rows_by_name: Mapping[str, int]
    groups_by_row: IntArray
    results: Sequence[_SearchResult | None]

    def get(self, node_name: str) -> NodeAllocation | None:
        """Return the allocation on a node; None if there is none."""
        row = self.rows_by_name.get(node_name)
        group = -1 if row is None else self.groups_by_row.item(row)
        result = None if group < 0 else self.results[group]
        return None if result is None else result.allocation


class CachedResults(NamedTuple):
    """The cached results for the nodes of a view.

    Attributes:
        nodes: the view.
        groups: the group of each node, int64; -1 if it is not known.
        outcomes: the `Outcome` for each node, int8.
        results: the result of the last search of each group. Further searches change it.
        node_groups: the groups of nodes.
    """

    nodes: NodeView
    groups: IntArray
    outcomes: NDArray[np.int8]
    results: Sequence[_SearchResult | None]
    node_groups: NodeGroups

    def get_allocation(self, position: int) -> NodeAllocation | None:
        """Return the allocation on the node at *position* of the view; None if there is none."""
        result = self.results[self.groups.item(position)]
        return None if result is None else result.allocation

    def copy_allocations(self, selected: BoolArray) -> CachedAllocations:
        """Return the allocations on the *selected* nodes, which have the outcome FOUND."""
        nodes = self.nodes
        groups_by_row = np.full(len(nodes.snapshot), -1)
        groups_by_row[selected if nodes.rows is None else nodes.rows[selected]] = self.groups[selected]
        rows_by_name = self.node_groups.get_rows_by_name(nodes.snapshot)
        return CachedAllocations(rows_by_name, groups_by_row, tuple(self.results))


@dataclass(frozen=True, slots=True)
class ClaimsToAllocate:
    """Claims to be allocated together. *signature* is the same for equal claims, which have the same results."""

    claims: tuple[ResourceClaim, ...]
    signature: bytes


class Allocator:
    """Allocates claims on the snapshots of one cache. It is not thread-safe.

    The DynamicResources plugins of all profiles share one allocator.

    Attributes:
        classes: device classes by name.
        planned_allocations: the uid of the last pod with claims that passed PreFilter of DynamicResources, and a
            function that returns, for the name of a node, the allocation that Filter found. Other plugins read it.
        slice_index: the compiled slices.
        slice_and_class_version: changes with the slices, classes and taint rules; results hold for one value of it.
        node_groups: the groups of nodes with the same results.
    """

    def __init__(self, features: Features, clock: Clock) -> None:
        self._features = features
        self._clock = clock
        self.allocated_devices = AllocatedDevices(consumable_capacity=features.consumable_capacity)
        self.classes: Mapping[str, DeviceClass] = {}
        self.planned_allocations: tuple[str, Callable[[str], NodeAllocation | None]] = ("", lambda _: None)
        self.slice_index = SliceIndex({}, features)
        self.slice_and_class_version: tuple[object, ...] = ()
        self.node_groups = NodeGroups(self.slice_index)
        self._device_version = self.allocated_devices.version
        self._caches: dict[bytes, NodeAllocationCache] = {}

    def sync(self, snapshot: Snapshot) -> None:
        """Update from the slices, classes and claims that changed since the last call, and forget removed nodes."""
        self.allocated_devices.sync(snapshot)
        kinds = (ResourceSlice, DeviceClass, DeviceTaintRule)
        slice_and_class_version = tuple(map(snapshot.kind_version, kinds))
        max_nodes = 2 * len(snapshot.names) + MAX_UNUSED_VALUES
        cached_nodes = max(self.slice_index.node_count, self.node_groups.count)
        if slice_and_class_version == self.slice_and_class_version and cached_nodes <= max_nodes:
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
        self.node_groups = NodeGroups(self.slice_index)

    def prepare(self, claims: Sequence[ResourceClaim]) -> ClaimsToAllocate:
        """Prepare *claims* to be allocated together."""
        return ClaimsToAllocate(tuple(claims), _encoder.encode([claim.spec for claim in claims]))

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
        group = self.node_groups.find(node)
        cache = self._update_cache(claims)
        version = self.node_groups.versions.item(group)
        result = cache.results[group]
        if result is None or cache.versions.item(group) != version:
            result = cache.results[group] = self._search(claims, node, timed_out)
            cache.versions[group] = version
            cache.outcomes[group] = _get_outcome(result)
        if result.error:
            raise NodeAllocationError(result.error)
        return result.allocation

    def _update_cache(self, claims: ClaimsToAllocate) -> NodeAllocationCache:
        """Return the cache of *claims* with entries for all groups, after an update of the groups' versions."""
        version = self.allocated_devices.version
        if version != self._device_version:
            self.node_groups.invalidate(self.allocated_devices.list_pools_changed_since(self._device_version))
            self._device_version = version
        cache = self._caches.get(claims.signature)
        if cache is None:
            if len(self._caches) >= _MAX_CACHED_CLAIM_SETS:
                del self._caches[next(iter(self._caches))]
            cache = self._caches[claims.signature] = NodeAllocationCache()
        cache.widen(len(self.node_groups.versions))
        return cache

    def find_cached(
        self, claims: ClaimsToAllocate, nodes: NodeView, candidates: BoolArray, timed_out: Callable[[], bool]
    ) -> CachedResults:
        """Return the cached results for the *candidates* among *nodes*.

        *timed_out* is as for `allocate`. After a timeout, some results are missing.
        """
        groups = self.node_groups.find_all(nodes, candidates, timed_out)
        cache = self._update_cache(claims)
        is_current = cache.versions[groups] == self.node_groups.versions[groups]
        outcomes = np.where(is_current, cache.outcomes[groups], Outcome.UNKNOWN)
        return CachedResults(nodes, groups, outcomes, cache.results, self.node_groups)

    def _search(self, claims: ClaimsToAllocate, node: Node, timed_out: Callable[[], bool]) -> _SearchResult:
        pools = self.slice_index.get_pools_for_node(node)
        search = AllocationSearch(node, pools, self.allocated_devices, self._features, timed_out)
        search.claims.extend(self._prepare_claim(claim, search, pools) for claim in claims.claims)
        if search.allocate():
            return _SearchResult(tuple(tuple(claim.results) for claim in search.claims), "")
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


def _get_outcome(result: _SearchResult) -> Outcome:
    if result.allocation is not None:
        return Outcome.FOUND
    return Outcome.UNKNOWN if result.error else Outcome.NOT_FOUND


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
