"""The placement score of NodeResourcesFit: how much of a placement's resources is requested, with the group's pods.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go, resourceAllocationScorer.scorePlacement;
pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostResourceScorer (1.36).
"""

from collections.abc import Iterable, Sequence

from extender.cache.snapshot import NodeView, Snapshot
from extender.framework.normalize import MAX_SCORE
from extender.framework.pod_group_points import Placement
from extender.plugin_parts.scored_resources import ResourceSpec, build_scored_resources


def compute_placement_score(
    specs: Sequence[ResourceSpec], pod_requests: Iterable[Sequence[int]], placement: Placement, snapshot: Snapshot
) -> int:
    """Return the weighted mean of the requested percentages of the resources, 0 to 100, over all nodes of *placement*.

    Args:
        specs: the configured resources.
        pod_requests: for each assigned pod of the group, its request for each of *specs*, in base units.
        placement: the nodes.
        snapshot: the cluster without the pods of *pod_requests*.
    """
    group_requests = [sum(amounts) for amounts in zip(*pod_requests, strict=True)] or [0] * len(specs)
    nodes = _view_placement(placement, snapshot)
    total = total_weight = 0
    for resource in build_scored_resources(specs, group_requests, snapshot.symbols.resources, nonzero=True):
        allocatable = resource.allocatable(nodes)
        capacity = int(allocatable.sum())
        if not capacity:
            continue
        requested = int(resource.requested(nodes)[allocatable != 0].sum()) + resource.request
        total += min(requested, capacity) * MAX_SCORE // capacity * resource.weight
        total_weight += resource.weight
    return total // total_weight if total_weight else 0


def _view_placement(placement: Placement, snapshot: Snapshot) -> NodeView:
    if placement.node_names is None:
        return snapshot.view()
    rows = snapshot.rows(list(placement.node_names))
    return snapshot.view(rows[rows >= 0])
