"""Which nodes the pod's claims leave over: those of their allocations, and those where the rest can be allocated.

Source: B113, B114.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
import numpy as np

from extender.allocation.allocator import Allocator, Asked
from extender.allocation.extended import Served, served
from extender.allocation.faults import AllocationError, AllocationTimeoutError, NodeUnfitError
from extender.cluster.arrays import BoolArray
from extender.cluster.node_matching import terms_mask
from extender.cluster.snapshot import NodeView
from extender.framework.verdict import Code, Reason, Rejection
from extender.objects.devices import DeviceClass, ResourceClaim
from extender.objects.node import Node
from extender.objects.requests import Counting
from extender.plugins.dynamic_resources.cycle import Cycle, Variant
from extender.plugins.dynamic_resources.node_resources import Demands, used_by_others

UNAVAILABLE: Final = Reason("resourceclaim not available on the node", Code.UNRESOLVABLE)
_CANNOT: Final = Reason("cannot allocate all claims", Code.UNRESOLVABLE)
_LEFT_OVER: Final = Reason("cannot schedule extended resource claim", Code.UNRESOLVABLE)
_NOT_OFFERED: Final = Reason("cannot fit resource", Code.UNRESOLVABLE)


class Means(NamedTuple):
    """What the question is answered with.

    Attributes:
        allocator: finds devices.
        served: the device classes by extended resource.
        timeout: for one node, in seconds; 0: none.
        counting: what counts of a pod, if devices may take resources of their node; else None.
    """

    allocator: Allocator
    served: dict[str, DeviceClass]
    timeout: float
    counting: Counting | None = None


class _Groups:
    """Refused nodes by reason."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._masks: dict[Reason, BoolArray] = {}

    def refuse(self, nodes: BoolArray, reason: Reason) -> None:
        if nodes.any():
            self._masks[reason] = self._masks[reason] | nodes if reason in self._masks else nodes

    def refuse_one(self, position: int, reason: Reason) -> None:
        mask = self._masks.get(reason)
        if mask is None:
            mask = self._masks[reason] = np.zeros(self._size, dtype=np.bool_)
        mask[position] = True

    def rejections(self) -> tuple[Rejection, ...]:
        return tuple(Rejection(mask, reason) for reason, mask in self._masks.items())


def refused(cycle: Cycle, nodes: NodeView, means: Means) -> tuple[Rejection, ...]:
    """The nodes of the view that cannot be had; what was found on the others is noted in *cycle*."""
    size = len(nodes)
    special = cycle.special
    if special is not None and special.spec.devices.requests:
        return (Rejection(np.ones(size, dtype=np.bool_), _LEFT_OVER),)
    groups = _Groups(size)
    parts = _by_devices_needed(cycle, nodes, groups)
    unavailable = _unavailable(cycle, nodes)
    blocked = np.zeros(size, dtype=np.bool_)
    for mask in unavailable.values():
        blocked |= mask
    allocates = bool(cycle.to_allocate)
    in_use = used_by_others(cycle, nodes) if means.counting is not None else ()
    for needed, members in parts:
        if special is not None and not needed and not cycle.has_own:
            continue  # a device plugin has all that is asked for
        allowed = members
        for mask, reason in in_use:
            groups.refuse(allowed & mask, reason)
            allowed = allowed & ~mask
        if allocates:
            allowed = _allocated(cycle, nodes, allowed, _variant(cycle, needed, means), means, groups)
        groups.refuse(allowed & blocked, UNAVAILABLE)
        for number, mask in unavailable.items():
            _remember(cycle, number, nodes, allowed & mask)
    return groups.rejections()


def _by_devices_needed(cycle: Cycle, nodes: NodeView, groups: _Groups) -> list[tuple[frozenset[str], BoolArray]]:
    """The nodes by the extended resources that devices have to serve there."""
    parts = [(frozenset[str](), np.ones(len(nodes), dtype=np.bool_))]
    if cycle.special is None:
        return parts
    for name in cycle.extended:
        number = nodes.snapshot.vocabulary.resources.find(name)
        lacking: BoolArray = np.ones(len(nodes), dtype=np.bool_) if number is None else nodes.allocatable(number) == 0
        if name in cycle.backed:
            split = [(needed | {name}, members & lacking) for needed, members in parts]
            split += [(needed, members & ~lacking) for needed, members in parts]
            parts = [(needed, members) for needed, members in split if members.any()]
            continue
        for position in np.flatnonzero(lacking).tolist():
            lacking[position] = name not in _node(nodes, position).status.allocatable
        groups.refuse(lacking, _NOT_OFFERED)
        parts = [(needed, members & ~lacking) for needed, members in parts]
    return parts


def _node(nodes: NodeView, position: int) -> Node:
    snapshot = nodes.snapshot
    return snapshot.nodes[position if nodes.rows is None else int(nodes.rows[position])]


def _unavailable(cycle: Cycle, nodes: NodeView) -> dict[int, BoolArray]:
    """By claim, the nodes that its allocation is no good for."""
    found: dict[int, BoolArray] = {}
    for number, (terms, failed) in enumerate(zip(cycle.selectors, cycle.failed, strict=True)):
        if failed:
            found[number] = np.ones(len(nodes), dtype=np.bool_)
        elif terms is not None:
            found[number] = ~terms_mask(nodes, terms)
    return found


def _remember(cycle: Cycle, number: int, nodes: NodeView, mask: BoolArray) -> None:
    if not mask.any():
        return
    rows = np.flatnonzero(mask) if nodes.rows is None else nodes.rows[mask]
    known = cycle.unavailable.get(number)
    if known is None:
        known = cycle.unavailable[number] = np.zeros(len(nodes.snapshot), dtype=np.bool_)
    known[rows] = True


def _variant(cycle: Cycle, needed: frozenset[str], means: Means) -> Variant:
    known = cycle.variants.get(needed)
    if known is None:
        known = cycle.variants[needed] = _made(cycle, needed, means)
    return known


def _made(cycle: Cycle, needed: frozenset[str], means: Means) -> Variant:
    found: Served | None = None
    special = cycle.special
    if special is not None:
        found = served(cycle.pod, needed, means.served)
        devices = msgspec.structs.replace(special.spec.devices, requests=found.requests)
        spec = msgspec.structs.replace(special.spec, devices=devices)
        special = msgspec.structs.replace(special, spec=spec)
    claims: Iterable[ResourceClaim | None] = (
        special if cycle.claims[number] is cycle.special else cycle.claims[number] for number in cycle.to_allocate
    )
    asked: Asked = means.allocator.asked([claim for claim in claims if claim is not None])
    return Variant(asked, found, special)


def _allocated(
    cycle: Cycle, nodes: NodeView, members: BoolArray, variant: Variant, means: Means, groups: _Groups
) -> BoolArray:
    """The *members* on which everything can be allocated; the others are refused."""
    allowed = np.zeros(len(nodes), dtype=np.bool_)
    objects = nodes.nodes
    demands = None if means.counting is None else Demands(cycle, nodes, means.counting)
    short: tuple[Reason, ...] = ()
    allocate, asked, found = means.allocator.allocate, variant.asked, cycle.found
    late = False
    for position in np.flatnonzero(members).tolist():
        node = objects[position]
        if late:
            groups.refuse_one(position, _timed_out(node.metadata.name))
            continue
        try:
            solution = allocate(asked, node, means.timeout)
            if demands is not None and solution is not None:
                short = demands.on(position, asked.claims, solution)
        except AllocationTimeoutError:
            late = True  # the attempt has failed: no more time is spent on it
            groups.refuse_one(position, _timed_out(node.metadata.name))
            continue
        except AllocationError as fault:
            groups.refuse_one(position, Reason(str(fault), Code.ERROR))
            continue
        except NodeUnfitError as fault:
            groups.refuse_one(position, Reason(str(fault), Code.UNRESOLVABLE))
            continue
        if solution is None:
            groups.refuse_one(position, _CANNOT)
            continue
        if short:
            for reason in short:
                groups.refuse_one(position, reason)
            continue
        allowed[position] = True
        found[node.metadata.name] = (solution, variant)
    return allowed


def _timed_out(name: str) -> Reason:
    return Reason(f"node {name}: timed out trying to allocate devices", Code.ERROR)
