"""Allocated devices: in the status of a claim, or in an in-flight allocation.

The state is updated incrementally from the snapshots of one cache. One allocator owns it; it is not thread-safe.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter,
DynamicResources.Reserve (1.36).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from extender.api.kinds.devices import DeviceRequestAllocationResult, ResourceClaim
from extender.cache.snapshot import Snapshot
from extender.dra.cel.values import to_nanos
from extender.dra.resource_slices import DeviceId, PoolId

EXTENDED_RESOURCE_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that was created for the extended resources of a pod."""

_MAX_LOG_LENGTH: Final = 1 << 16
_NO_CAPACITY: Final[Mapping[str, int]] = {}


class _AllocatedDevice(NamedTuple):
    """A device of a claim and the capacity that the claim consumes; None: the whole device."""

    device: DeviceId
    consumed_capacity: Mapping[str, int] | None


def is_extended_resource_claim(claim: ResourceClaim, pod_uid: str) -> bool:
    """Return whether *claim* was created for the extended resources of the pod.

    Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
    DynamicResources.filterExtendedResources (1.36).
    """
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) != "true":
        return False
    return any(owner.controller and owner.uid == pod_uid for owner in claim.metadata.owner_references)


class AllocatedDevices:
    """The devices allocated to claims.

    Attributes:
        version: the change counter.
    """

    __slots__ = (
        "_allocation_counts",
        "_changed_pools",
        "_consumable_capacity",
        "_consumed_amounts",
        "_devices_by_claim",
        "_first_logged_version",
        "_in_flight",
        "_object_history_id",
        "_revision",
        "_share_counts",
        "version",
    )

    def __init__(self, *, consumable_capacity: bool) -> None:
        """Start without allocated devices.

        Args:
            consumable_capacity: whether claims can share a device; else a share counts as the whole device.
        """
        self._consumable_capacity = consumable_capacity
        self._object_history_id: object = None
        self._revision = 0
        self.version = 0
        self._changed_pools: list[PoolId] = []
        self._first_logged_version = 0
        self._in_flight: dict[str, tuple[_AllocatedDevice, ...]] = {}
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

    def is_in_flight(self, owner_uid: str) -> bool:
        """Return whether an allocation is in flight.

        Args:
            owner_uid: the uid of the claim, or of the pod if the claim is not created yet.
        """
        return owner_uid in self._in_flight

    def list_pools_changed_since(self, version: int) -> Sequence[PoolId] | None:
        """Return the pools with devices that changed after *version*; None if the log does not reach back to it."""
        start = version - self._first_logged_version
        return self._changed_pools[start:] if start >= 0 else None

    # -- changes

    def add_in_flight(self, owner_uid: str, results: Iterable[DeviceRequestAllocationResult]) -> None:
        """Count the devices of an allocation that is not written to the API yet; *owner_uid* as for `is_in_flight`."""
        self.remove_in_flight(owner_uid)
        devices = self._in_flight[owner_uid] = self._collect_devices(results)
        self._add_counts(devices, 1)

    def remove_in_flight(self, owner_uid: str) -> bool:
        """Remove an in-flight allocation; return whether it existed."""
        devices = self._in_flight.pop(owner_uid, None)
        if devices is not None:
            self._add_counts(devices, -1)
        return devices is not None

    def sync(self, snapshot: Snapshot) -> None:
        """Update from the claims that changed since the last call; end in-flight allocations found in a status."""
        revision = snapshot.revision(ResourceClaim)
        same_history = self._object_history_id is snapshot.object_history_id
        if same_history and self._revision == revision:
            return
        changed_keys = (
            snapshot.keys_written_since(ResourceClaim, self._revision)
            if same_history and self._revision < revision
            else None
        )
        self._object_history_id, self._revision = snapshot.object_history_id, revision
        if changed_keys is None:
            self._clear()
            for devices in self._in_flight.values():
                self._add_counts(devices, 1)
            changed_keys = frozenset(snapshot.objects(ResourceClaim))
        for key in changed_keys:
            self._update_claim(key, snapshot.get_object(ResourceClaim, key))

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

    def _trim_log(self) -> None:
        if len(self._changed_pools) > 2 * _MAX_LOG_LENGTH:
            del self._changed_pools[:_MAX_LOG_LENGTH]
            self._first_logged_version += _MAX_LOG_LENGTH

    def _add_counts(self, devices: Iterable[_AllocatedDevice], sign: int) -> None:
        for device, consumed_capacity in devices:
            self._changed_pools.append(device[:2])
            self.version += 1
            counts = self._allocation_counts if consumed_capacity is None else self._share_counts
            counts[device] = counts.get(device, 0) + sign
            if counts[device] <= 0:
                del counts[device]
            if consumed_capacity:
                self._add_capacity(device, consumed_capacity, sign)
        self._trim_log()

    def _add_capacity(self, device: DeviceId, consumed_capacity: Mapping[str, int], sign: int) -> None:
        amounts = self._consumed_amounts.setdefault(device, {})
        for name, amount in consumed_capacity.items():
            amounts[name] = amounts.get(name, 0) + sign * amount
        if sign < 0 and not any(amounts.values()):
            del self._consumed_amounts[device]
