"""Score nodes by the preference of the subrequests that are allocated there.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, computeScore (1.36).
"""

from typing import Final

import numpy as np

from extender.cache.snapshot import NodeView
from extender.cache.tables.arrays import IntArray
from extender.dra.allocator import NodeAllocation
from extender.plugins.dynamic_resources.state import StateData

_FIRST_SUBREQUEST_SCORE: Final = 8


def compute_scores(state_data: StateData, nodes: NodeView) -> IntArray:
    """Return the scores of the allocations.

    An allocated first subrequest of a prioritized list adds 8, a second one 7, and so on. Nodes without an allocation
    score 0. The result is int64, shape (len(nodes),).
    """
    scores = np.zeros(len(nodes), dtype=np.int64)
    if not any(request.first_available for claim in state_data.claims for request in claim.spec.devices.requests):
        return scores
    for position, name in enumerate(nodes.names):
        node_allocation = state_data.find_allocation(name)
        if node_allocation is not None:
            scores[position] = _score_allocation(state_data, node_allocation)
    return scores


def _score_allocation(state_data: StateData, node_allocation: NodeAllocation) -> int:
    total = 0
    device_results = iter(node_allocation)
    for claim in state_data.claims:
        allocation = claim.status.allocation
        if allocation is not None:
            allocated_requests = {result.request for result in allocation.devices.results}
        else:
            allocated_requests = {result.request.qualified_name for result in next(device_results)}
        total += sum(
            _FIRST_SUBREQUEST_SCORE - index
            for request in claim.spec.devices.requests
            if request.exactly is None
            for index, subrequest in enumerate(request.first_available)
            if f"{request.name}/{subrequest.name}" in allocated_requests
        )
    return total
