"""Filter of NodeResourcesFit: compare the pod's requests with the free resources of nodes.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest, Fit.Filter (1.36).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import BoolArray
from extender.framework.status import Code, Reason, Rejection


@lru_cache(maxsize=1024)
def get_insufficient_reasons(resource: str, resource_id: int) -> tuple[Reason, Reason]:
    """Return two reasons: too little of *resource* is free on a node; too little is allocatable there.

    Args:
        resource: the resource name.
        resource_id: the id in the symbol table; it determines the order of reasons.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest, Fit.Filter (1.36).
    """
    text, order = f"Insufficient {resource}", resource_id + 1  # after "Too many pods"
    return Reason(text, order=order), Reason(text, Code.UNRESOLVABLE, order)


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """A pod's request for one resource.

    Attributes:
        resource_id: the id of the resource in the symbol table.
        amount: the requested amount in base units, above 0.
        insufficient_reason: the reason for nodes whose free amount is too low.
        unresolvable_reason: the reason for nodes whose allocatable amount is too low.
        delegated_to_dra: whether DynamicResources checks the nodes that do not have the resource.
    """

    resource_id: int
    amount: int
    insufficient_reason: Reason
    unresolvable_reason: Reason
    delegated_to_dra: bool = False

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
        unresolvable = insufficient & (allocatable < self.amount)
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
