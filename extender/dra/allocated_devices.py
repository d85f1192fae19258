"""The devices that are allocated in the status of a claim, or by an in-flight allocation.

The devices are updated incrementally from the snapshots of one cache. Each allocator has its own object, which is not
thread-safe.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter,
DynamicResources.Reserve (1.36).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from extender.api.kinds.devices import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from extender.api.resource_versions import make_version_key
from extender.cache.snapshot import Snapshot
from extender.cache.tables.object_store import KindVersion
from extender.dra.cel.values import to_nanos
from extender.dra.resource_slices import DeviceId, PoolId

EXTENDED_RESOURCE_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that was created for the extended resources of a pod."""

_MAX_LOG_LENGTH: Final = 1 << 16
_NO_CAPACITY: Final[Mapping[str, int]] = {}


class _AllocatedDevice(NamedTuple):
    """A device of a claim and the capacity that the claim consumes of it; None if the claim has the whole device."""

    device: DeviceId
    consumed_capacity: Mapping[str, int] | None


class _WrittenAllocation(NamedTuple):
    """An in-flight allocation that was written to the API.

    Attributes:
        claim_key: the claim's `namespace/name`.
        resource_version: the claim's resource version with the allocation.
        is_new_claim: whether the claim was created with the allocation.
    """

    claim_key: str
    resource_version: str
    is_new_claim: bool


def get_extended_resource_pod(claim: ResourceClaim) -> str | None:
    """Return the uid of the pod for whose extended resources *claim* was created; None for other claims.

    Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
    DynamicResources.filterExtendedResources (1.36).
    """
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) != "true":
        return None
    controller = claim.metadata.controller
    return None if controller is None else controller.uid


class _InFlightAllocation(NamedTuple):
    """An allocation that is not yet in the status of its claim.

    Attributes:
        pod_count: the number of pods that reserved it.
        pod_group_cycle: the pod group cycle in which it was reserved; None outside such a cycle.
    """

    allocation: AllocationResult
    devices: tuple[_AllocatedDevice, ...]
    pod_count: int
    pod_group_cycle: object | None


class AllocatedDevices:
    """The devices allocated to claims.

    Attributes:
        version: the change counter.
    """

    def __init__(self, *, consumable_capacity: bool) -> None:
        """Start without allocated devices.

        Args:
            consumable_capacity: whether claims can share a device. If not, a share counts as the whole device.
        """
        self._consumable_capacity = consumable_capacity
        self._claim_version: KindVersion | None = None
        self.version = 0
        self._changed_pools: list[PoolId] = []
        self._first_logged_version = 0
        self._in_flight: dict[str, _InFlightAllocation] = {}
        self._written: dict[str, _WrittenAllocation] = {}
        self._clear()

    def _clear(self) -> None:
        self.version += 1  # invalidates all cached allocations
        self._devices_by_claim: dict[str, tuple[_AllocatedDevice, ...]] = {}
        self._allocation_counts: dict[DeviceId, int] = {}
        self._share_counts: dict[DeviceId, int] = {}
        self._consumed_amounts: dict[DeviceId, dict[str, int]] = {}
        self._changed_pools.clear()
        self._first_logged_version = self.version

    # -- queries

    def is_allocated(self, device: DeviceId) -> bool:
        """Return whether the whole device is allocated to a claim."""
        return device in self._allocation_counts

    def is_in_use(self, device: DeviceId) -> bool:
        """Return whether the device, or a share of it, is allocated to a claim."""
        return device in self._allocation_counts or device in self._share_counts

    def get_consumed_capacity(self, device: DeviceId) -> Mapping[str, int]:
        """Return the capacity that claims consume of the device, in nano units."""
        return self._consumed_amounts.get(device, _NO_CAPACITY)

    def has_consumed_capacity(self, device: DeviceId) -> bool:
        """Return whether a claim consumes capacity of the device."""
        return device in self._consumed_amounts

    def has_share(self, device: DeviceId) -> bool:
        """Return whether a share of the device is allocated to a claim, with or without recorded capacity."""
        return device in self._share_counts

    def is_in_flight(self, in_flight_key: str) -> bool:
        """Return whether an allocation is in flight.

        Args:
            in_flight_key: the uid of the claim, or the uid of the pod if the claim is not created yet.
        """
        return in_flight_key in self._in_flight

    def find_shared_allocation(self, in_flight_key: str, pod_group_cycle: object | None) -> AllocationResult | None:
        """Return the in-flight allocation that an earlier pod of the same pod group cycle reserved, or None.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter (1.37).
        """
        in_flight = self._in_flight.get(in_flight_key)
        if in_flight is None or pod_group_cycle is None or in_flight.pod_group_cycle is not pod_group_cycle:
            return None
        return in_flight.allocation

    def list_pools_changed_since(self, version: int) -> Sequence[PoolId] | None:
        """Return the pools whose devices changed after *version*; None if the log of changes starts later."""
        start = version - self._first_logged_version
        return self._changed_pools[start:] if start >= 0 else None

    # -- changes

    def add_in_flight(
        self, in_flight_key: str, allocation: AllocationResult, pod_group_cycle: object | None = None
    ) -> None:
        """Add an allocation that is not written to the API yet, or one more pod to the one that is in flight.

        *in_flight_key* is as for `is_in_flight`. *pod_group_cycle* is that of the pod; None outside such a cycle.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go,
        claimTracker.SignalClaimPendingAllocation (1.37).
        """
        in_flight = self._in_flight.get(in_flight_key)
        if in_flight is None:
            devices = self._collect_devices(allocation.devices.results)
            in_flight = _InFlightAllocation(allocation, devices, 0, pod_group_cycle)
            self._add_counts(devices, 1)
        self._in_flight[in_flight_key] = in_flight._replace(pod_count=in_flight.pod_count + 1)

    def remove_in_flight(self, in_flight_key: str) -> bool:
        """Remove an in-flight allocation; return whether it existed."""
        self._written.pop(in_flight_key, None)
        in_flight = self._in_flight.pop(in_flight_key, None)
        if in_flight is not None:
            self._add_counts(in_flight.devices, -1)
        return in_flight is not None

    def remove_unwritten(self, in_flight_key: str) -> None:
        """Remove an in-flight allocation of one pod, unless it was written to the API. A written one ends in `sync`.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go,
        claimTracker.MaybeRemoveClaimPendingAllocation (1.37).
        """
        in_flight = self._in_flight.get(in_flight_key)
        if in_flight is None or in_flight_key in self._written:
            return
        if in_flight.pod_count > 1:
            self._in_flight[in_flight_key] = in_flight._replace(pod_count=in_flight.pod_count - 1)
        else:
            self.remove_in_flight(in_flight_key)

    def mark_written(self, in_flight_key: str, claim_key: str, resource_version: str, *, is_new_claim: bool) -> None:
        """Mark an in-flight allocation as written to the API.

        Args:
            in_flight_key: as for `is_in_flight`.
            claim_key: the claim's `namespace/name`.
            resource_version: the claim's resource version with the allocation.
            is_new_claim: whether the claim was created with the allocation.
        """
        if in_flight_key in self._in_flight:
            self._written[in_flight_key] = _WrittenAllocation(claim_key, resource_version, is_new_claim)

    def sync(self, snapshot: Snapshot) -> None:
        """Update from the claims that changed since the last call.

        An in-flight allocation ends when the claim's status contains it. A written allocation also ends when the claim
        has the written version or a newer one, or is deleted. The claim may have lost the allocation since the write.
        A new claim that a later list does not have is deleted.
        """
        changed_keys = self._sync_claims(snapshot)
        for in_flight_key, written_allocation in list(self._written.items()):
            claim = snapshot.get_object(ResourceClaim, written_allocation.claim_key)
            # A snapshot without a new claim may be older than the claim.
            version = snapshot.list_version(ResourceClaim) if claim is None else claim.metadata.resource_version
            is_deleted = claim is None and (
                not written_allocation.is_new_claim or written_allocation.claim_key in changed_keys
            )
            if is_deleted or _is_at_least(version, written_allocation.resource_version):
                self.remove_in_flight(in_flight_key)

    def _sync_claims(self, snapshot: Snapshot) -> Collection[str]:
        """Update from the claims that changed since the last call; return their keys."""
        changed_keys = snapshot.keys_written_since(ResourceClaim, self._claim_version)
        self._claim_version = snapshot.kind_version(ResourceClaim)
        if changed_keys is None:
            self._clear()
            for in_flight in self._in_flight.values():
                self._add_counts(in_flight.devices, 1)
            changed_keys = frozenset(snapshot.objects(ResourceClaim))
        for key in changed_keys:
            self._update_claim(key, snapshot.get_object(ResourceClaim, key))
        return changed_keys

    def _update_claim(self, key: str, claim: ResourceClaim | None) -> None:
        devices: tuple[_AllocatedDevice, ...] = ()
        if claim is not None and claim.status.allocation is not None:
            self.remove_in_flight(claim.metadata.uid)
            if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true":
                for owner in claim.metadata.owner_references:
                    self.remove_in_flight(owner.uid)
            devices = self._collect_devices(claim.status.allocation.devices.results)
        previous_devices = self._devices_by_claim.pop(key, ())
        if devices:
            self._devices_by_claim[key] = devices
        if devices != previous_devices:
            self._add_counts(previous_devices, -1)
            self._add_counts(devices, 1)

    def _collect_devices(self, results: Iterable[DeviceRequestAllocationResult]) -> tuple[_AllocatedDevice, ...]:
        return tuple(
            _AllocatedDevice(
                (result.driver, result.pool, result.device),
                {name: to_nanos(raw) for name, raw in result.consumed_capacity.items()}
                if self._consumable_capacity and result.share_id is not None
                else None,
            )
            for result in results
            if not result.admin_access
        )

    def _add_counts(self, devices: Iterable[_AllocatedDevice], sign: int) -> None:
        for device, consumed_capacity in devices:
            self._changed_pools.append(device[:2])
            self.version += 1
            counts = self._allocation_counts if consumed_capacity is None else self._share_counts
            counts[device] = counts.get(device, 0) + sign
            if counts[device] <= 0:
                del counts[device]
            if consumed_capacity:
                amounts = self._consumed_amounts.setdefault(device, {})
                for name, amount in consumed_capacity.items():
                    amounts[name] = amounts.get(name, 0) + sign * amount
                if sign < 0 and not any(amounts.values()):
                    del self._consumed_amounts[device]
        if len(self._changed_pools) > 2 * _MAX_LOG_LENGTH:
            del self._changed_pools[:_MAX_LOG_LENGTH]
            self._first_logged_version += _MAX_LOG_LENGTH


def _is_at_least(resource_version: str, other_version: str) -> bool:
    """Return whether a resource version is not older than *other_version*; True if one of them is not an integer."""
    key, other_key = make_version_key(resource_version), make_version_key(other_version)
    return key is None or other_key is None or key >= other_key
