"""Depth-first search for devices by claim, request and device, until the first complete allocation.

The search has upstream's order and shortcuts, so it selects the same devices. They determine the free devices for the
next pod, and the selected subrequests the score. After a first failure, it leaves out combinations that `SearchBounds`
excludes; upstream tries them all. If a device is rejected after its counters were consumed or after it was added to
constraints, these changes are rolled back, as in 1.36.3 and later.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Filter;
dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate (1.36).
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto

from extender.api.kinds.devices import DeviceSelector, ResourceClaim
from extender.api.kinds.node import Node
from extender.dra.allocated_devices import AllocatedDevices
from extender.dra.cel.environment import CompileError, EvaluationError
from extender.dra.constraints import make_attribute_lookup
from extender.dra.consumable_capacity import Amount, calculate_consumed_capacities, fits_capacity
from extender.dra.device_pools import Pool, PoolDevice
from extender.dra.device_requests import (
    ALLOCATION_MODE_ALL,
    DeviceResult,
    NormalizedRequest,
    RequestData,
    has_untolerated_taint,
)
from extender.dra.errors import AllocationError, AllocationTimeoutError, make_selector_error
from extender.dra.features import Features
from extender.dra.resource_slices import DeviceId, SliceDevice
from extender.dra.search_bounds import ALLOCATION_RESULTS_MAX_SIZE, ClaimAllocation, DeviceIndices, SearchBounds
from extender.dra.shared_counters import CounterAllocator


class _SearchOutcome(Enum):
    ALLOCATED = auto()
    NOT_ALLOCATED = auto()
    EXCEEDS_MAX_SIZE = auto()
    """Every allocation of the claim exceeds its maximum number of devices."""


class AllocationSearch:
    """One search on one node.

    Attributes:
        claims: the claims to allocate, in order.
    """

    def __init__(
        self,
        node: Node,
        pools: Sequence[Pool],
        allocated_devices: AllocatedDevices,
        features: Features,
        timed_out: Callable[[], bool],
    ) -> None:
        self._node = node
        self._pools = pools
        self._allocated_devices = allocated_devices
        self._features = features
        self._timed_out = timed_out
        self._counters = CounterAllocator(allocated_devices, features)
        self._allocating_devices: dict[DeviceId, set[int]] = {}
        self._allocating_capacity: dict[DeviceId, dict[str, int]] = {}
        self._has_backtracked = False
        self.claims: list[ClaimAllocation] = []
        self._bounds = SearchBounds(self.claims, self._counters, self._find_candidates, self._is_in_use)

    def allocate(self) -> bool:
        """Return whether all `claims` can be allocated together.

        Raises:
            AllocationError: the evaluation of a selector fails, or the claims cannot be allocated on any node.
            AllocationTimeoutError: the timeout is exceeded.
        """
        self._bounds.set_requests()
        outcome = self._allocate_one(DeviceIndices(0, 0), None, (0, 0))
        if outcome is _SearchOutcome.EXCEEDS_MAX_SIZE:
            raise AllocationError("allocation max size exceeded")
        return outcome is _SearchOutcome.ALLOCATED

    # -- matching devices

    def is_selectable(self, claim: ResourceClaim, request: NormalizedRequest, device: SliceDevice) -> bool:
        """Return whether *device* matches the class, the selectors and the node.

        Raises:
            AllocationError: a selector or a node selector is invalid or its evaluation fails.
            AllocationTimeoutError: the timeout is exceeded.
        """
        if device.device.binding_conditions and not self._features.device_binding_and_status:
            return False
        device_class = request.device_class
        location = f"class {device_class.metadata.name}"
        if not match_selectors(device, device_class.spec.selectors, location, self._features, self._timed_out):
            return False
        if not match_selectors(device, request.selectors, f"claim {claim.key}", self._features, self._timed_out):
            return False
        return not device.slice.per_device_node_selection or device.node_selection.matches(self._node)

    def fits_capacity(
        self,
        request: NormalizedRequest,
        device: SliceDevice,
        *,
        include_allocating: bool = True,
        ignore_consumed: bool = False,
    ) -> bool:
        """Return whether the capacity of *device* is sufficient; True if consumable capacity is disabled.

        *include_allocating* counts the capacity that this search has consumed. *ignore_consumed* ignores all consumed
        capacity.
        """
        if not self._features.consumable_capacity or not device.device.capacity:
            return not (self._features.consumable_capacity and request.capacity and request.capacity.requests)
        consumed = {} if ignore_consumed else self._allocated_devices.get_consumed_capacity(device.id)
        allocating = self._allocating_capacity.get(device.id, {}) if include_allocating else {}
        rules = self._features.capacity_rules
        return fits_capacity(device.capacities, request.capacity, consumed, allocating, rules)

    # -- the search

    def _allocate_one(
        self, indices: DeviceIndices, subrequest_index: int | None, start: tuple[int, int]
    ) -> _SearchOutcome:
        """Allocate the device at *indices* and all later devices.

        Args:
            indices: the position of the device.
            subrequest_index: index of the current subrequest; None: not selected yet.
            start: pool and device index of the first candidate, so that each set of devices is tried in one order only.
        """
        if self._timed_out():
            raise AllocationTimeoutError("timed out")
        if indices.claim_index >= len(self.claims):
            return _SearchOutcome.ALLOCATED
        claim = self.claims[indices.claim_index]
        if indices.request_index >= len(claim.requests):
            outcome = self._allocate_one(DeviceIndices(indices.claim_index + 1, 0), None, (0, 0))
            return _SearchOutcome.NOT_ALLOCATED if outcome is _SearchOutcome.EXCEEDS_MAX_SIZE else outcome
        subrequests = claim.requests[indices.request_index]
        if subrequest_index is None:
            if subrequests[0].request.parent:
                return self._allocate_subrequest(indices, len(subrequests))
            subrequest_index = 0
        request_data = subrequests[subrequest_index]
        all_mode = request_data.request.allocation_mode == ALLOCATION_MODE_ALL
        if all_mode and not request_data.all_devices:
            return _SearchOutcome.NOT_ALLOCATED
        if indices.device_index >= request_data.num_devices:
            return self._allocate_one(DeviceIndices(indices.claim_index, indices.request_index + 1), None, (0, 0))
        if len(claim.results) + request_data.num_devices - indices.device_index > ALLOCATION_RESULTS_MAX_SIZE:
            return _SearchOutcome.EXCEEDS_MAX_SIZE
        if all_mode:
            return self._allocate_all_devices(indices, subrequest_index, request_data)
        return self._allocate_exact_count(indices, subrequest_index, request_data, start)

    def _allocate_subrequest(self, indices: DeviceIndices, subrequest_count: int) -> _SearchOutcome:
        outcome = _SearchOutcome.EXCEEDS_MAX_SIZE
        for subrequest_index in range(subrequest_count):
            subrequest_outcome = self._allocate_one(indices, subrequest_index, (0, 0))
            if subrequest_outcome is _SearchOutcome.ALLOCATED:
                return subrequest_outcome
            if subrequest_outcome is _SearchOutcome.NOT_ALLOCATED:
                outcome = subrequest_outcome
        return outcome

    def _allocate_all_devices(
        self, indices: DeviceIndices, subrequest_index: int, request_data: RequestData
    ) -> _SearchOutcome:
        """Allocate the next device in the mode `All`. The order is irrelevant, since every device is required."""
        pool_device = request_data.all_devices[indices.device_index]
        deallocate = self._allocate_device(indices, request_data.request, pool_device, must=True)
        if deallocate is None:
            return _SearchOutcome.NOT_ALLOCATED
        outcome = self._allocate_one(indices._replace(device_index=indices.device_index + 1), subrequest_index, (0, 0))
        if outcome is not _SearchOutcome.ALLOCATED:
            deallocate()
        return outcome

    def _allocate_exact_count(
        self, indices: DeviceIndices, subrequest_index: int, request_data: RequestData, start: tuple[int, int]
    ) -> _SearchOutcome:
        if self._has_backtracked and not self._bounds.may_complete(indices, request_data, start):
            return _SearchOutcome.NOT_ALLOCATED
        next_indices = indices._replace(device_index=indices.device_index + 1)
        for pool_device, next_start in self._find_candidates(indices, request_data, start):
            self._bounds.tried_count += 1
            deallocate = self._allocate_device(indices, request_data.request, pool_device, must=False)
            if deallocate is None:
                continue
            outcome = self._allocate_one(next_indices, subrequest_index, next_start)
            if outcome is _SearchOutcome.ALLOCATED:
                return outcome
            deallocate()
            if outcome is _SearchOutcome.EXCEEDS_MAX_SIZE:
                return outcome
            self._has_backtracked = True
            if not self._bounds.may_complete(indices, request_data, next_start):
                break
        return _SearchOutcome.NOT_ALLOCATED

    def _find_candidates(
        self, indices: DeviceIndices, request_data: RequestData, start: tuple[int, int]
    ) -> Iterator[tuple[PoolDevice, tuple[int, int]]]:
        """Yield the devices from *start* that may be allocated next, each with the pool and device index after it."""
        request, (first_pool, first_device) = request_data.request, start
        for pool_index in range(first_pool, len(self._pools)):
            pool = self._pools[pool_index]
            if not pool.is_usable:
                continue
            device_fits = request_data.fits_by_pool.setdefault(pool_index, [None] * len(pool.devices))
            for device_index in range(first_device if pool_index == first_pool else 0, len(device_fits)):
                if device_fits[device_index] is False:
                    continue
                device = pool.devices[device_index]
                if self._is_in_use(device.id, request, indices.claim_index):
                    continue
                if device_fits[device_index] is None:
                    device_fits[device_index] = self._may_fit(indices, request, device)
                if not device_fits[device_index] or (
                    device.id in self._allocating_capacity and not self.fits_capacity(request, device)
                ):
                    continue
                yield PoolDevice(device, pool), (pool_index, device_index + 1)

    def _may_fit(self, indices: DeviceIndices, request: NormalizedRequest, device: SliceDevice) -> bool:
        """Return whether *device* may fit *request*, ignoring the devices that this search has allocated."""
        if not self.is_selectable(self.claims[indices.claim_index].claim, request, device):
            return False
        if not self.fits_capacity(request, device, include_allocating=False):
            return False
        # `_allocate_device` checks the taints of a device with counters, after it consumed the counters.
        return bool(device.consumed_counters) or not self._has_untolerated_taint(request, device)

    def _has_untolerated_taint(self, request: NormalizedRequest, device: SliceDevice) -> bool:
        return self._features.device_taints and has_untolerated_taint(device.device.taints, request)

    def _is_in_use(self, device_id: DeviceId, request: NormalizedRequest, claim_index: int) -> bool:
        claim_indices = self._allocating_devices.get(device_id)
        if request.admin_access:
            return claim_indices is not None and claim_index in claim_indices
        return bool(claim_indices) or self._allocated_devices.is_allocated(device_id)

    # -- allocating one device

    def _allocate_device(
        self, indices: DeviceIndices, request: NormalizedRequest, pool_device: PoolDevice, *, must: bool
    ) -> Callable[[], None] | None:
        """Allocate a selectable device and return the function that deallocates it; None if it cannot be allocated.

        Raises:
            AllocationError: the device is required (*must*), and a constraint of the claim forbids it.
        """
        device, pool = pool_device
        allow_multiple = self._features.consumable_capacity and device.allow_multiple_allocations
        if not (allow_multiple and request.admin_access) and self._is_in_use(device.id, request, indices.claim_index):
            return None
        uses_counters = bool(device.consumed_counters) and not (allow_multiple and self._is_shared_already(device.id))
        is_unsupported = device.consumed_counters and not self._features.partitionable_devices
        if is_unsupported or not self._features.can_skip_operations(device.slice.skipped_operations, self._node):
            return None
        if uses_counters and not self._counters.consume(device, pool):
            return None
        is_tainted = self._has_untolerated_taint(request, device)
        if is_tainted or not self._add_to_constraints(indices, request, device, must=must):
            if uses_counters:
                self._counters.release(device, pool)
            return None
        claim_indices = self._allocating_devices.setdefault(device.id, set())
        if not allow_multiple:
            claim_indices.add(indices.claim_index)
        if not self.fits_capacity(request, device):  # an earlier request may have consumed the rest
            self._roll_back(indices, request, pool_device, uses_counters=uses_counters)
            return None
        was_shared = device.id in self._allocating_capacity
        consumed_capacity = self._consume_capacity(device, request) if allow_multiple else None
        claim = self.claims[indices.claim_index]
        result_count = len(claim.results)
        claim.results.append(DeviceResult(device, request, consumed_capacity))

        def deallocate() -> None:
            self._roll_back(indices, request, pool_device, uses_counters=uses_counters)
            if consumed_capacity is not None:
                self._release_capacity(device, consumed_capacity, is_shared=was_shared)
            del claim.results[result_count:]

        return deallocate

    def _roll_back(
        self, indices: DeviceIndices, request: NormalizedRequest, pool_device: PoolDevice, *, uses_counters: bool
    ) -> None:
        """Remove the device from the constraints and devices of the claim, and release its counters."""
        device, pool = pool_device
        for constraint in self.claims[indices.claim_index].constraints:
            constraint.remove(request.base_name, request.subrequest_name)
        self._allocating_devices[device.id].discard(indices.claim_index)
        if uses_counters:
            self._counters.release(device, pool)

    def _is_shared_already(self, device_id: DeviceId) -> bool:
        """Return whether a share of the device is allocated, so that its counters are consumed already."""
        devices = self._allocated_devices
        counts_shares = self._features.release.counts_shares_without_capacity
        is_shared = devices.has_share(device_id) if counts_shares else devices.has_consumed_capacity(device_id)
        return is_shared or device_id in self._allocating_capacity

    def _add_to_constraints(
        self, indices: DeviceIndices, request: NormalizedRequest, device: SliceDevice, *, must: bool
    ) -> bool:
        claim = self.claims[indices.claim_index]
        find_attribute = make_attribute_lookup(request, device)
        for constraint_index, constraint in enumerate(claim.constraints):
            if constraint.add(request.base_name, request.subrequest_name, find_attribute):
                continue
            if must:
                message = f"claim {claim.claim.key}, request {request.name}: cannot add device {'/'.join(device.id)}"
                raise AllocationError(f"{message} because a claim constraint would not be satisfied")
            for updated_constraint in claim.constraints[:constraint_index]:
                updated_constraint.remove(request.base_name, request.subrequest_name)
            return False
        return True

    def _consume_capacity(self, device: SliceDevice, request: NormalizedRequest) -> dict[str, Amount]:
        rules = self._features.capacity_rules
        consumed_capacity = calculate_consumed_capacities(request.capacity, device.capacities, rules)
        allocating_capacity = self._allocating_capacity.setdefault(device.id, {})
        for name, amount in consumed_capacity.items():
            allocating_capacity[name] = allocating_capacity.get(name, 0) + amount.nanos
        return consumed_capacity

    def _release_capacity(self, device: SliceDevice, consumed_capacity: dict[str, Amount], *, is_shared: bool) -> None:
        """Release the capacity of a share. The device stays shared if there is an earlier share, perhaps of nothing."""
        allocating_capacity = self._allocating_capacity[device.id]
        for name, amount in consumed_capacity.items():
            if name in allocating_capacity:
                allocating_capacity[name] -= amount.nanos
        if not any(allocating_capacity.values()):
            if is_shared:
                allocating_capacity.clear()
            else:
                del self._allocating_capacity[device.id]


def match_selectors(
    device: SliceDevice,
    selectors: Sequence[DeviceSelector],
    location: str,
    features: Features,
    timed_out: Callable[[], bool] = lambda: False,
) -> bool:
    """Return whether *device* matches all *selectors*.

    For upstream's stable allocator, no device allows multiple allocations.

    *location* is the class or the claim with the selectors, for error messages. *timed_out* returns whether the search
    must end; an evaluation may take a tenth of a second.

    Raises:
        AllocationError: a selector is invalid or its evaluation fails.
        AllocationTimeoutError: the search timed out.

    Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go,
    allocator.selectorsMatch (1.36).
    """
    allow_multiple = device.allow_multiple_allocations and features.needs_non_stable_allocator
    for number, selector in enumerate(selectors):
        if timed_out():
            raise AllocationTimeoutError("timed out")
        expression = selector.cel.expression if selector.cel is not None else ""
        try:
            if not device.matches_expression(
                expression, reads_lists=features.reads_list_attributes, allow_multiple=allow_multiple
            ):
                return False
        except CompileError as error:
            raise AllocationError(f"{location}: selector #{number}: CEL compile error: {error}") from error
        except EvaluationError as error:
            explain = features.release.explains_selector_errors
            raise make_selector_error(location, number, device.id, error, explain=explain) from error
    return True
