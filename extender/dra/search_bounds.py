"""Bounds of the search for devices: whether there may be enough devices for a request and the requests after it.

If there is one device too few, kube-scheduler tries all combinations. The bounds end such a search early, with the same
result.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from extender.api.kinds.devices import ResourceClaim
from extender.dra.constraints import Constraint, count_allowed
from extender.dra.device_pools import PoolDevice
from extender.dra.device_requests import ALLOCATION_MODE_ALL, DeviceResult, NormalizedRequest, RequestData
from extender.dra.errors import AllocationError
from extender.dra.resource_slices import DeviceId
from extender.dra.shared_counters import CounterAllocator

ALLOCATION_RESULTS_MAX_SIZE: Final = 32
"""The maximum number of devices of a claim."""


@dataclass(slots=True)
class ClaimAllocation:
    """A claim with its requests, their subrequests, its constraints, and the devices allocated so far."""

    claim: ResourceClaim
    requests: list[tuple[RequestData, ...]]
    constraints: list[Constraint]
    results: list[DeviceResult] = field(default_factory=list)


class DeviceIndices(NamedTuple):
    """The indices of a device to allocate: its claim, its request, and the device in the request."""

    claim_index: int
    request_index: int
    device_index: int = 0


class RequestPart(NamedTuple):
    """A request, or a part of one.

    Attributes:
        indices: the indices of the first device.
        subrequests: the subrequests; one for an exact request.
        start: pool and device index of the first candidate for that device.
    """

    indices: DeviceIndices
    subrequests: tuple[RequestData, ...]
    start: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class SearchBounds:
    """The bounds of one search.

    Attributes:
        claims: the claims to allocate, with the devices that are allocated so far.
        counters: the counters that are consumed so far.
        find_candidates: the function that yields the devices from a start that may be allocated next.
        is_in_use: the function that returns whether a device is in use, so that a request of a claim cannot get it.
        requests: the requests of all claims.
        tried_count: the number of devices that the search has tried.
    """

    claims: Sequence[ClaimAllocation]
    counters: CounterAllocator
    find_candidates: Callable[
        [DeviceIndices, RequestData, tuple[int, int]], Iterator[tuple[PoolDevice, tuple[int, int]]]
    ]
    is_in_use: Callable[[DeviceId, NormalizedRequest, int], bool]
    requests: Sequence[RequestPart] = ()
    tried_count: int = 0
    _examined_count: int = 0
    _next_check: int = 0
    _passed_checks: int = 0

    def set_requests(self) -> None:
        """Read the requests of the claims."""
        self.requests = [
            RequestPart(DeviceIndices(claim_index, request_index), subrequests)
            for claim_index, claim in enumerate(self.claims)
            for request_index, subrequests in enumerate(claim.requests)
        ]

    def may_complete(self, indices: DeviceIndices, request_data: RequestData, start: tuple[int, int]) -> bool:
        """Return whether there may be enough devices from *start* for a request, and for the requests after it.

        A check examines the devices of all these requests. After each check that finds enough, the result is True
        without a check for more and more devices that the search tries. So checks that end nothing are few.
        """
        if self.tried_count < self._next_check:
            return True
        if request_data.request.derived_attributes:  # adding a device to a constraint may fail
            return True
        self._examined_count = 0
        later_requests = (later for later in self.requests if later.indices > (*indices[:2], 0))
        try:
            has_enough = self._has_enough(
                [RequestPart(indices, (request_data,), start), *takewhile(self._cannot_fail, later_requests)]
            )
        except AllocationError:
            has_enough = True  # kube-scheduler may end before it evaluates the selector
        self._passed_checks = self._passed_checks + 1 if has_enough else 0
        if self._passed_checks:
            self._next_check = self.tried_count + self._examined_count * self._passed_checks // 8
        return has_enough

    def _cannot_fail(self, request: RequestPart) -> bool:
        """Return whether *request* cannot end the search with an error if there are devices."""
        claim = self.claims[request.indices.claim_index]
        max_count = sum(max(data.num_devices for data in subrequests) for subrequests in claim.requests)
        return max_count <= ALLOCATION_RESULTS_MAX_SIZE and not any(
            data.request.derived_attributes or (claim.constraints and data.all_devices) for data in request.subrequests
        )

    def _has_enough(self, requests: Sequence[RequestPart]) -> bool:
        """Return whether there may be enough devices for each of *requests*, and for all of them together."""
        needed_count, devices = 0, set[DeviceId]()
        for indices, subrequests, start in requests:
            options = [self._find_enough(indices, request_data, start) for request_data in subrequests]
            if not any(options):
                return False
            request_data, candidates = subrequests[0], options[0]
            is_exclusive = not request_data.request.admin_access and len(subrequests) == 1 and candidates
            if is_exclusive and not any(device.allow_multiple_allocations for device, _ in candidates):
                needed_count += request_data.num_devices - indices.device_index
                devices.update(device.id for device, _ in candidates)
        return needed_count <= len(devices)

    def _find_enough(
        self, indices: DeviceIndices, request_data: RequestData, start: tuple[int, int]
    ) -> Sequence[PoolDevice]:
        """Return the devices from *start* that may be allocated for a request; none if they cannot be enough."""
        request, count = request_data.request, request_data.num_devices - indices.device_index
        if request.allocation_mode == ALLOCATION_MODE_ALL:
            candidates = [
                pool_device
                for pool_device in request_data.all_devices
                if not self.is_in_use(pool_device.device.id, request, indices.claim_index)
                or (request.admin_access and pool_device.device.allow_multiple_allocations)
            ]
        else:
            candidates = [candidate for candidate, _ in self.find_candidates(indices, request_data, start)]
        self._examined_count += len(candidates)
        constraints = self.claims[indices.claim_index].constraints
        allowed_count = count_allowed([device for device, _ in candidates], request, constraints)
        return candidates if count <= min(allowed_count, self.counters.count_consumable(candidates)) else ()
