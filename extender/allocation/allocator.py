"""Allocations of claims on nodes, with what was found kept until something on the node changes.

Claims of pods made from one template ask for the same. What was found for them on a node holds until a device of one of
the node's pools is taken or given back, or a slice or a class changes, so a placement costs one search.

Source: B112, B113.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from extender.allocation.allocated import Allocated
from extender.allocation.constraints import constraints_of
from extender.allocation.faults import AllocationError, NodeUnfitError
from extender.allocation.features import Features
from extender.allocation.pools import Pool, Stock, checked_pools
from extender.allocation.requests import ALL, Request, alternatives
from extender.allocation.search import MOST_DEVICES, Candidate, Chosen, Search, Task, Wanted
from extender.allocation.slices import Offer, PoolId
from extender.allocation.tainting import tainted
from extender.basics.clock import Clock
from extender.cluster.snapshot import Snapshot
from extender.objects.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.objects.node import Node

_MOST_TASKS: Final = 128
_encoder = msgspec.msgpack.Encoder(order="deterministic")


class Solution(NamedTuple):
    """The devices of each claim that was asked for, in the order of the claims."""

    chosen: tuple[tuple[Chosen, ...], ...]


class _Found(NamedTuple):
    """What was found on a node; `fault` if the node is unfit."""

    node: Node
    solution: Solution | None
    fault: str


@dataclass(slots=True)
class Kept:
    """What was found for some claims, by the name of the node, and the nodes of each pool."""

    version: int
    found: dict[str, _Found] = field(default_factory=dict)
    nodes: dict[PoolId, set[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """Claims to be allocated together, and what was found for claims like them."""

    claims: tuple[ResourceClaim, ...]
    kept: Kept


class Allocator:
    """Allocates claims in one history of a cluster; belongs to the plugins of one process, is not thread-safe.

    Attributes:
        allocated: what is taken.
        classes: device classes by name.
    """

    def __init__(self, features: Features, clock: Clock) -> None:
        self._features = features
        self._clock = clock
        self.allocated = Allocated(consumable=features.consumable_capacity)
        self.classes: Mapping[str, DeviceClass] = {}
        self._stock = Stock({}, partitions=features.partitionable)
        self._state: tuple[object, ...] = ()
        self._kept: dict[bytes, Kept] = {}

    @property
    def stock(self) -> Stock:
        """The slices."""
        return self._stock

    def catch_up(self, cluster: Snapshot) -> None:
        """Read what was written to slices, classes and claims since the last call."""
        self.allocated.catch_up(cluster)
        kinds = (ResourceSlice, DeviceClass, DeviceTaintRule)
        state = (cluster.object_history, *map(cluster.revision, kinds))
        if state == self._state:
            return
        self._state = state
        self._kept = {}
        self.classes = dict(cluster.objects(DeviceClass))
        rules = cluster.objects(DeviceTaintRule).values() if self._features.taint_rules else ()
        known = self._stock.offers
        offers: dict[str, Offer] = {}
        for key, listed in cluster.objects(ResourceSlice).items():
            piece = tainted(listed, rules)
            before = known.get(key)
            offers[key] = before if before is not None and before.object is piece else Offer(piece)
        self._stock = Stock(offers, partitions=self._features.partitionable)

    @property
    def moment(self) -> tuple[object, ...]:
        """Of slices and classes; what was found at another moment is of no use."""
        return self._state

    def asked(self, claims: Sequence[ResourceClaim]) -> Asked:
        """*claims*, to be allocated together. Good until the next `catch_up`."""
        signature = _encoder.encode([claim.spec for claim in claims])
        kept = self._kept.get(signature)
        if kept is None:
            if len(self._kept) >= _MOST_TASKS:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[signature] = Kept(self.allocated.version)
        return Asked(tuple(claims), kept)

    def allocate(self, asked: Asked, node: Node, timeout: float) -> Solution | None:
        """The devices for the claims on *node*, or None if they cannot be had there.

        Args:
            asked: which claims.
            node: where.
            timeout: seconds; 0 for as long as it takes.

        Raises:
            AllocationError: something is wrong with a claim, a class or a slice.
            AllocationTimeoutError: it took too long.
            NodeUnfitError: the pools of this node are not in order.
        """
        kept = asked.kept
        if kept.version != self.allocated.version:
            self._forget_changed(kept)
        known = kept.found.get(node.metadata.name)
        if known is None or known.node is not node:
            known = self._searched(asked, node, timeout)
        if known.fault:
            raise NodeUnfitError(known.fault)
        return known.solution

    def _forget_changed(self, kept: Kept) -> None:
        touched = self.allocated.touched(kept.version)
        kept.version = self.allocated.version
        if touched is None:
            kept.found, kept.nodes = {}, {}
            return
        for pool in touched:
            for name in kept.nodes.pop(pool, ()):
                kept.found.pop(name, None)

    def _searched(self, asked: Asked, node: Node, timeout: float) -> _Found:
        pools = checked_pools(self._stock, node)
        search = Search(node, pools, self.allocated, self._features, self._deadline(timeout))
        search.tasks.extend(self._task(claim, search, pools) for claim in asked.claims)
        if search.run():
            found = _Found(node, Solution(tuple(tuple(task.chosen) for task in search.tasks)), "")
        else:
            invalid = any(pool.invalid for pool in pools)
            found = _Found(node, None, "invalid resource pools were encountered" if invalid else "")
        name, kept = node.metadata.name, asked.kept
        kept.found[name] = found
        for pool in pools:
            kept.nodes.setdefault(pool.id, set()).add(name)
        return found

    def _deadline(self, timeout: float) -> Callable[[], bool]:
        if timeout <= 0:
            return lambda: False
        monotonic = self._clock.monotonic
        end = monotonic() + timeout
        return lambda: monotonic() > end

    def _task(self, claim: ResourceClaim, search: Search, pools: Sequence[Pool]) -> Task:
        requests: list[tuple[Wanted, ...]] = []
        least = 0
        for request in claim.spec.devices.requests:
            ways = tuple(
                self._wanted(claim, way, search, pools)
                for way in alternatives(claim, request, self.classes, self._features)
            )
            requests.append(ways)
            least += min(way.count for way in ways)
        if least > MOST_DEVICES:
            what = f"claim {claim.key}: number of requested devices {least}"
            raise AllocationError(f"{what} exceeds the claim limit of {MOST_DEVICES}")
        return Task(claim, requests, constraints_of(claim, distinct=self._features.distinct))

    def _wanted(self, claim: ResourceClaim, request: Request, search: Search, pools: Sequence[Pool]) -> Wanted:
        if request.mode != ALL:
            return Wanted(request, request.number)
        everything: list[Candidate] = []
        for pool in pools:
            if not pool.usable:
                state = "being updated" if pool.incomplete else "invalid"
                what = f"claim {claim.key}, request {request.name}: asks for all devices"
                raise AllocationError(f"{what}, but resource pool {pool.name} is currently {state}")
            everything.extend(
                Candidate(device, pool)
                for device in pool.devices
                if search.selectable(claim, request, device) and search.has_room(request, device)
            )
        return Wanted(request, len(everything), tuple(everything))
