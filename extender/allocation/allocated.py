"""Which devices are taken: by claims that have an allocation, and by those for which one is about to be written.

Follows one history of a cluster, reading only what was written since; belongs to one allocator, is not thread-safe.
Source: B112, B117.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from extender.allocation.slices import DeviceId, PoolId
from extender.cel.values import nanos
from extender.cluster.snapshot import Snapshot
from extender.objects.devices import DeviceRequestAllocationResult, ResourceClaim

EXTENDED_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that was made for the extended resources of a pod."""

_LONGEST_LOG: Final = 1 << 16
_NONE: Final[Mapping[str, int]] = {}


class _Taking(NamedTuple):
    """A device of a claim, and how much of it; None: all of it."""

    device: DeviceId
    shares: Mapping[str, int] | None


def is_for_extended(claim: ResourceClaim, pod_uid: str) -> bool:
    """Whether *claim* was made for the extended resources of the pod. Source: B114."""
    if claim.metadata.annotations.get(EXTENDED_CLAIM) != "true":
        return False
    return any(owner.controller and owner.uid == pod_uid for owner in claim.metadata.owner_references)


class Allocated:
    """The devices that are taken.

    Attributes:
        version: grows with every change.
    """

    __slots__ = (
        "_by_key",
        "_capacity",
        "_consumable",
        "_devices",
        "_history",
        "_in_flight",
        "_log",
        "_log_start",
        "_revision",
        "_shares",
        "version",
    )

    def __init__(self, *, consumable: bool) -> None:
        """Nothing is taken yet.

        Args:
            consumable: whether capacities of shared devices count; otherwise a share is the whole device.
        """
        self._consumable = consumable
        self._history: object = None
        self._revision = 0
        self.version = 0
        self._log: list[PoolId] = []
        self._log_start = 0
        self._in_flight: dict[str, tuple[_Taking, ...]] = {}
        self._clear()

    def _clear(self) -> None:
        self.version += 1  # nothing that was found before holds
        self._by_key: dict[str, tuple[_Taking, ...]] = {}
        self._devices: dict[DeviceId, int] = {}
        self._shares: dict[DeviceId, int] = {}
        self._capacity: dict[DeviceId, dict[str, int]] = {}
        self._log.clear()
        self._log_start = self.version

    # -- questions

    def takes(self, device: DeviceId) -> bool:
        """Whether a claim has the device for itself."""
        return device in self._devices

    def is_used(self, device: DeviceId) -> bool:
        """Whether a claim has the device or a share of it."""
        return device in self._devices or device in self._shares

    def shared_capacity(self, device: DeviceId) -> Mapping[str, int]:
        """What claims have of the device's capacities, in nano units."""
        return self._capacity.get(device, _NONE)

    def has_capacity(self, device: DeviceId) -> bool:
        """Whether a claim has something of the device's capacities."""
        return device in self._capacity

    def is_in_flight(self, key: str) -> bool:
        """Whether an allocation is about to be written for the claim with this uid."""
        return key in self._in_flight

    def touched(self, since: int) -> Sequence[PoolId] | None:
        """The pools of which something was taken or given back after version *since*; None: perhaps all."""
        start = since - self._log_start
        return self._log[start:] if start >= 0 else None

    # -- changes

    def promise(self, key: str, results: Iterable[DeviceRequestAllocationResult]) -> None:
        """An allocation is about to be written for the claim with this uid; its devices count as taken."""
        self.release(key)
        takings = self._in_flight[key] = self._takings(results)
        self._count(takings, 1)

    def release(self, key: str) -> bool:
        """Forget a promise; whether there was one."""
        takings = self._in_flight.pop(key, None)
        if takings is not None:
            self._count(takings, -1)
        return takings is not None

    def catch_up(self, cluster: Snapshot) -> None:
        """Read what was written to claims since the last call. A promise that is written down is none any more."""
        revision = cluster.revision(ResourceClaim)
        same = self._history is cluster.object_history
        if same and self._revision == revision:
            return
        keys = cluster.written(ResourceClaim, self._revision) if same and self._revision < revision else None
        self._history, self._revision = cluster.object_history, revision
        if keys is None:
            self._clear()
            for takings in self._in_flight.values():
                self._count(takings, 1)
            keys = frozenset(cluster.objects(ResourceClaim))
        for key in keys:
            self._read(key, cluster.find(ResourceClaim, key))

    def _read(self, key: str, claim: ResourceClaim | None) -> None:
        takings: tuple[_Taking, ...] = ()
        if claim is not None and claim.status.allocation is not None:
            self.release(claim.metadata.uid)
            if claim.metadata.annotations.get(EXTENDED_CLAIM) == "true":
                for owner in claim.metadata.owner_references:
                    self.release(owner.uid)
            takings = self._takings(claim.status.allocation.devices.results)
        before = self._by_key.pop(key, ())
        if takings:
            self._by_key[key] = takings
        if takings != before:
            self._count(before, -1)
            self._count(takings, 1)

    def _takings(self, results: Iterable[DeviceRequestAllocationResult]) -> tuple[_Taking, ...]:
        return tuple(
            _Taking(
                (each.driver, each.pool, each.device),
                {name: nanos(raw) for name, raw in each.consumed_capacity.items()}
                if self._consumable and each.share_id is not None
                else None,
            )
            for each in results
            if not each.admin_access
        )

    def _shorten(self) -> None:
        if len(self._log) > 2 * _LONGEST_LOG:
            del self._log[:_LONGEST_LOG]
            self._log_start += _LONGEST_LOG

    def _count(self, takings: Iterable[_Taking], sign: int) -> None:
        for device, shares in takings:
            self._log.append(device[:2])
            self.version += 1
            counts = self._devices if shares is None else self._shares
            counts[device] = counts.get(device, 0) + sign
            if counts[device] <= 0:
                del counts[device]
            if shares:
                self._count_capacity(device, shares, sign)
        self._shorten()

    def _count_capacity(self, device: DeviceId, shares: Mapping[str, int], sign: int) -> None:
        held = self._capacity.setdefault(device, {})
        for name, amount in shares.items():
            held[name] = held.get(name, 0) + sign * amount
        if sign < 0 and not any(held.values()):
            del self._capacity[device]
