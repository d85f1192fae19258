"""How much preferred the alternatives are that were found on each node. Source: B116."""

from typing import Final

import numpy as np

from extender.allocation.allocator import Solution
from extender.cluster.arrays import IntArray
from extender.cluster.snapshot import NodeView
from extender.objects.devices import ResourceClaim
from extender.plugins.dynamic_resources.cycle import Cycle

_BEST: Final = 8


def scores(cycle: Cycle, nodes: NodeView) -> IntArray:
    """int64, one a node of the view: for each request with alternatives 8 for the first, 7 for the second, and so on.

    A node on which nothing was allocated has 0.
    """
    raw = np.zeros(len(nodes), dtype=np.int64)
    if not any(request.first_available for claim in cycle.claims for request in claim.spec.devices.requests):
        return raw
    for position, name in enumerate(nodes.names):
        found = cycle.found.get(name)
        if found is not None:
            raw[position] = _score(cycle, found[0])
    return raw


def _score(cycle: Cycle, solution: Solution) -> int:
    total = 0
    chosen = iter(solution.chosen)
    for claim in cycle.claims:
        allocation = claim.status.allocation
        if allocation is not None:
            names = {result.request for result in allocation.devices.results}
        else:
            names = {each.request.qualified for each in next(chosen)}
        total += _worth(claim, names)
    return total


def _worth(claim: ResourceClaim, names: set[str]) -> int:
    return sum(
        _BEST - place
        for request in claim.spec.devices.requests
        if request.exactly is None
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in names
    )
