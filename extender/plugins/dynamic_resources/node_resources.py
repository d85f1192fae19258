"""Node resources that come with devices: what a pod takes of a node through its claims, and whether the node has it.

A device may map to cpu, memory, ephemeral storage or huge pages of its node. Gate DRANodeAllocatableResources.
Source: B113, B122, H063.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np

from extender.allocation.allocator import Solution
from extender.allocation.faults import AllocationError, NodeUnfitError
from extender.allocation.search import Chosen
from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.node_matching import terms_mask
from extender.cluster.snapshot import NodeView
from extender.framework.verdict import Code, Reason
from extender.objects.devices import NodeAllocatableResourceMapping, ResourceClaim
from extender.objects.pod import NodeAllocatableResourceClaimStatus, Pod
from extender.objects.quantity import parse
from extender.objects.requests import Counting, is_hugepages, not_covered, pod_requests
from extender.objects.written_quantity import Form, WrittenQuantity, written
from extender.plugins.dynamic_resources.claims import claim_name
from extender.plugins.dynamic_resources.cycle import Cycle

Statuses = tuple[NodeAllocatableResourceClaimStatus, ...]
"""What a pod takes through each of its claims, by name of the claim."""

_NOTHING: Final = written(0)
_CHECKED: Final = ("cpu", "memory", "ephemeral-storage")


def used_by_others(cycle: Cycle, nodes: NodeView) -> list[tuple[BoolArray, Reason]]:
    """The nodes on which another pod takes node resources through an allocated claim of this one, the first claim's."""
    found: list[tuple[BoolArray, Reason]] = []
    left: BoolArray = np.ones(len(nodes), dtype=np.bool_)
    uid = cycle.pod.metadata.uid or cycle.pod.key
    for claim, terms in zip(cycle.claims, cycle.selectors, strict=True):
        users = nodes.snapshot.claim_users(claim.key) if claim.status.allocation is not None else {}
        if not users:
            continue
        reachable = left if terms is None else left & terms_mask(nodes, terms)
        what = f"node allocatable resource claim {claim.metadata.name}"
        several = [row for row, uids in users.items() if len(uids) > 1]
        another = [row for row, uids in users.items() if len(uids) == 1 and uid not in uids]
        for rows, said in ((several, "shared by multiple pods"), (another, "is already used by another pod")):
            mask = _mask(nodes, rows) & reachable
            found.append((mask, Reason(f"{what} {said}", Code.UNRESOLVABLE)))
            left = left & ~mask
    return found


def _mask(nodes: NodeView, rows: Sequence[int]) -> BoolArray:
    column = np.zeros(len(nodes.snapshot), dtype=np.bool_)
    column[rows] = True
    return nodes.take(column)


class Demands:
    """What the pod of a cycle asks of each node of a view, with the devices found for its claims there."""

    def __init__(self, cycle: Cycle, nodes: NodeView, counting: Counting) -> None:
        self._pod, self._nodes, self._taken = cycle.pod, nodes, cycle.taken
        self._names = nodes.names
        self._counting = counting._replace(status=False)
        self._users = _containers_by_claim(cycle.pod)
        self._columns: dict[str, tuple[IntArray, IntArray]] = {}
        self._requests: dict[bytes, dict[str, int]] = {}

    def on(self, position: int, claims: Sequence[ResourceClaim], solution: Solution) -> tuple[Reason, ...]:
        """Why what the pod takes on the node at *position* is too much; what it takes through *claims* is noted.

        Raises:
            AllocationError: it cannot be worked out.
            NodeUnfitError: it cannot be had on any node with such devices.
        """
        chosen = {claim.metadata.name: own for claim, own in zip(claims, solution.chosen, strict=True) if _maps(own)}
        name = self._names[position]
        self._taken.pop(name, None)
        if not chosen:
            return ()
        statuses = tuple(self._status(name, chosen[name]) for name in sorted(chosen))
        taken = tuple(status for status in statuses if status.resources)
        for status in taken:
            if not status.containers:
                what = "node-allocatable resource claim not referenced by any container within the pod"
                raise NodeUnfitError(f"claim {status.resource_claim_name}: {what}")
        short = tuple(self._lacking(position, self._demand(taken)))
        if taken and not short:
            self._taken[name] = taken
        return short

    def _status(self, name: str, chosen: Iterable[Chosen]) -> NodeAllocatableResourceClaimStatus:
        amounts: dict[str, WrittenQuantity] = {}
        for each in chosen:
            for resource, mapping in each.device.device.node_allocatable_resource_mappings.items():
                amount = _amount(each, resource, mapping, f"{self._pod.metadata.namespace}/{name}")
                if amount is not None:
                    amounts[resource] = amounts.get(resource, _NOTHING).plus(amount)
        return NodeAllocatableResourceClaimStatus(
            resource_claim_name=name,
            containers=self._users.get(name, ()),
            resources={resource: amount.text for resource, amount in amounts.items()},
        )

    def _demand(self, taken: Statuses) -> dict[str, int]:
        """All that the pod asks for, in base units.

        Raises:
            NodeUnfitError: it asks for less as a whole.
        """
        key = msgspec.msgpack.encode(taken)
        known = self._requests.get(key)
        if known is None:
            pod = with_statuses(self._pod, taken)
            short = not_covered(pod) if self._counting.pod_level and pod.spec.resources is not None else []
            if short:
                what = "is insufficient to cover the aggregated container and node-allocatable DRA requests"
                raise NodeUnfitError(f"pod level request for {short[0]} {what}")
            known = self._requests[key] = pod_requests(pod, self._counting)
        return known

    def _lacking(self, position: int, demand: dict[str, int]) -> list[Reason]:
        short: list[str] = []
        code = Code.UNSCHEDULABLE
        for name in (*_CHECKED, *sorted(filter(is_hugepages, demand))):
            amount = demand.get(name, 0)
            if amount <= 0 and name in _CHECKED:
                continue
            allocatable, requested = self._column(name)
            there = int(allocatable[position])
            if amount > there - int(requested[position]):
                short.append(name)
                if amount > there:
                    code = Code.UNRESOLVABLE
        return [Reason(f"Insufficient {name}", code, order) for order, name in enumerate(short)]

    def _column(self, name: str) -> tuple[IntArray, IntArray]:
        known = self._columns.get(name)
        if known is None:
            number = self._nodes.snapshot.vocabulary.resources.id(name)
            known = self._columns[name] = self._nodes.allocatable(number), self._nodes.requested(number)
        return known


def _containers_by_claim(pod: Pod) -> dict[str, tuple[str, ...]]:
    """The containers that refer to each claim, by the name of the claim; one as often as it does."""
    claim_of = {
        entry.name: name for entry in pod.spec.resource_claims if isinstance(name := claim_name(pod, entry)[0], str)
    }
    users: dict[str, tuple[str, ...]] = {}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for reference in container.resources.claims:
            name = claim_of.get(reference.name)
            if name is not None:
                users[name] = (*users.get(name, ()), container.name)
    return users


def _maps(chosen: Iterable[Chosen]) -> bool:
    return any(each.device.device.node_allocatable_resource_mappings for each in chosen)


def _amount(
    chosen: Chosen, resource: str, mapping: NodeAllocatableResourceMapping, claim: str
) -> WrittenQuantity | None:
    """What a device takes of *resource*; None if the capacity it goes by is not in use.

    Raises:
        AllocationError: the device is not one whose capacity is consumed.
    """
    factor = mapping.allocation_multiplier
    if not mapping.capacity_key:
        return _NOTHING if factor is None else written(factor)
    if not chosen.shares:
        what = f"ConsumedCapacity is nil, but Capacity key '{mapping.capacity_key}' is set"
        where = f"in NodeAllocatableResourceMappings for resource {resource}"
        raise AllocationError(f"claim {claim}, device {chosen.device.device.name}: {what} {where}")
    consumed = chosen.shares.get(mapping.capacity_key)
    if consumed is None:
        return None
    base = written(consumed.text)
    if consumed.computed:
        base = base._replace(form=Form.BINARY)  # as upstream rounds, whatever the request was written in
    return base if factor is None else base.times(parse(factor))


def with_statuses(pod: Pod, statuses: Statuses) -> Pod:
    """*pod* with what it takes through claims."""
    if pod.status.node_allocatable_resource_claim_statuses == statuses:
        return pod
    status = msgspec.structs.replace(pod.status, node_allocatable_resource_claim_statuses=statuses)
    return msgspec.structs.replace(pod, status=status)
