"""Filter of NodeResourcesFit: compare the pod's requests with the free resources of nodes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np

from extender.cache.node_matching import match_names
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray
from extender.cache.tables.symbols import CPU, EPHEMERAL_STORAGE, MEMORY
from extender.framework.status import Code, Reason, Rejection

_NATIVE_RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_TOO_MANY_PODS: Final = Reason("Too many pods")


@lru_cache(maxsize=1024)
def get_insufficient_reasons(resource: str, order: int) -> tuple[Reason, Reason]:
    """Return two reasons: too little of *resource* is free on a node; too little is allocatable there.

    *order* is the position of the resource among those of the pod: CPU, memory, ephemeral storage, then the others.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest, Fit.Filter (1.36).
    """
    text, order = f"Insufficient {resource}", order + 1  # after "Too many pods"
    return Reason(text, order=order), Reason(text, Code.UNRESOLVABLE, order)


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """A pod's request for one resource.

    Attributes:
        name: the name of the resource.
        resource_id: the id of the resource in the symbol table, or `UNKNOWN_RESOURCE`.
        amount: the requested amount in base units that must be free.
        insufficient_reason: the reason for nodes whose free amount is too low.
        unresolvable_reason: the reason for nodes whose allocatable amount is too low.
        delegated_to_dra: whether DynamicResources checks the nodes that do not have the resource.
        total_amount: the amount that must be allocatable; None: `amount`.
    """

    name: str
    resource_id: int
    amount: int
    insufficient_reason: Reason
    unresolvable_reason: Reason
    delegated_to_dra: bool = False
    total_amount: int | None = None

    def fits(self, nodes: NodeView, row: int) -> bool:
        """Return whether *row*, the only row of *nodes*, has enough of the resource free; False after an overflow.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest (1.36).
        """
        requested, allocatable = nodes.requested_and_allocatable(row, self.resource_id)
        return requested >= 0 and allocatable - requested >= self.amount  # negative only after an overflow

    def find_rejections(self, nodes: NodeView) -> Iterator[Rejection]:
        """Yield the rejections of nodes with too little of the resource.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest, Fit.Filter,
        shouldDelegateResourceToDRA (1.36).
        """
        allocatable = nodes.allocatable(self.resource_id)
        insufficient: BoolArray = allocatable - nodes.requested(self.resource_id) < self.amount
        if self.delegated_to_dra:
            insufficient &= allocatable > 0
        if not np.count_nonzero(insufficient):
            return
        total_amount = self.amount if self.total_amount is None else self.total_amount
        unresolvable = insufficient & (allocatable < total_amount)
        if np.count_nonzero(unresolvable):
            yield Rejection(unresolvable, self.unresolvable_reason)
            insufficient ^= unresolvable
            if not np.count_nonzero(insufficient):
                return
        yield Rejection(insufficient, self.insufficient_reason)


def fits_request(requests: Sequence[ResourceRequest], nodes: NodeView, row: int) -> bool:
    """Return whether the pod fits *row*, the only row of *nodes*. This is the fast path after an assume."""
    count, allowed = nodes.pod_count_and_limit(row)
    return count < allowed and all(request.fits(nodes, row) for request in requests)


def find_rejections(requests: Sequence[ResourceRequest], nodes: NodeView) -> list[Rejection]:
    """Return the rejections of nodes with too many pods or insufficient resources.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest (1.36).
    """
    rejections: list[Rejection] = []
    full_nodes: BoolArray = nodes.pod_count >= nodes.allowed_pods
    if np.count_nonzero(full_nodes):
        rejections.append(Rejection(full_nodes, _TOO_MANY_PODS))
    for request in requests:
        rejections.extend(request.find_rejections(nodes))
    return rejections


def find_rejections_of_pod_on_node(
    pod: PodInfo, requests: Sequence[ResourceRequest], nodes: NodeView
) -> list[Rejection]:
    """Return the rejections for a pod that is already on a node. Its requests count there, perhaps with an old amount.

    On its node, only the amount by which a request exceeds the counted one must be free.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go, adjustDeltasToAccomodateCacheDiscrepancy (1.37).
    """
    counted_pod = nodes.snapshot.pods_on(pod.spec.node_name).get(pod.uid)
    if counted_pod is None:
        return find_rejections(requests, nodes)
    is_own_node = match_names(nodes, (pod.spec.node_name,))
    increases = _subtract_counted_amounts(requests, counted_pod.signature.assigned_amounts)
    rejections = [
        Rejection(mask & selected_nodes, reason)
        for amounts, selected_nodes in ((requests, ~is_own_node), (increases, is_own_node))
        for mask, reason in find_rejections(amounts, nodes)
    ]
    return [rejection for rejection in rejections if rejection.nodes.any()]


def _subtract_counted_amounts(
    requests: Sequence[ResourceRequest], counted_amounts: Mapping[str, int]
) -> list[ResourceRequest]:
    """Return the increases of *requests* over *counted_amounts*, which are by name.

    A scalar resource without an increase is left out. CPU, memory and ephemeral storage stay, with an amount of 0: a
    node may have promised more of them than it has.
    """
    increases = []
    for request in requests:
        is_scalar = request.resource_id not in _NATIVE_RESOURCES
        increase = max(0, request.amount - counted_amounts.get(request.name, 0))
        if increase or not is_scalar:
            increases.append(replace(request, amount=increase, total_amount=None if is_scalar else request.amount))
    return increases
