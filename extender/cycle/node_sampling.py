"""Node sampling: a search stops at enough feasible nodes, and the next search starts where the last one stopped."""

from dataclasses import dataclass

import numpy as np

from extender.api.kinds.node import Node
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, make_mask

_MIN_FEASIBLE_NODES_TO_FIND = 100
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


def num_feasible_nodes_to_find(node_count: int, percentage: int) -> int:
    """Return the number of feasible nodes at which a search among *node_count* nodes stops; *percentage* is 1 to 100.

    Source: pkg/scheduler/schedule_one.go, Scheduler.numFeasibleNodesToFind (1.36).
    """
    if node_count < _MIN_FEASIBLE_NODES_TO_FIND:
        return node_count
    return max(_MIN_FEASIBLE_NODES_TO_FIND, node_count * percentage // 100)


def _get_zone_key(node: Node) -> str:
    labels = node.metadata.labels
    zone = next((labels[key] for key in _ZONE_LABELS if key in labels), "")
    region = next((labels[key] for key in _REGION_LABELS if key in labels), "")
    return f"{region}:\x00:{zone}" if region or zone else ""


def order_rows_by_zone(snapshot: Snapshot) -> IntArray:
    """Return all rows in zone order: the first node of every zone, then the second node of every zone.

    Source: pkg/scheduler/backend/cache/node_tree.go, nodeTree.list (1.36).
    """
    rows_by_zone: dict[str, list[int]] = {}
    for row, node in enumerate(snapshot.nodes):
        rows_by_zone.setdefault(_get_zone_key(node), []).append(row)
    sort_keys = [
        (position, zone_number, row)
        for zone_number, rows in enumerate(rows_by_zone.values())
        for position, row in enumerate(rows)
    ]
    return np.array([row for _, _, row in sorted(sort_keys)], dtype=np.int64)


@dataclass(slots=True)
class NodeSampler:
    """Selects the nodes that a search examines. A scheduler has one sampler.

    Attributes:
        next_start_index: the start of the next search: a position in zone order.
        has_extenders: whether extenders filter or score nodes. Extenders need several nodes even if no plugin scores.

    Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36); pkg/scheduler/schedule_one.go,
    Scheduler.findNodesThatPassFilters (1.36).
    """

    next_start_index: int = 0
    has_extenders: bool = False

    def sample(
        self, snapshot: Snapshot, allowed_mask: BoolArray, feasible: BoolArray, num_nodes_to_find: int
    ) -> tuple[BoolArray, BoolArray]:
        """Return the feasible nodes that a search finds and the nodes that it examines, as two masks.

        The masks *allowed_mask* (nodes that PreFilter allows) and *feasible* (nodes that pass all filters), and both
        results are bool with shape (number of nodes,). The search stops after *num_nodes_to_find* feasible nodes.
        """
        if not feasible.any():  # all allowed nodes are examined, in any order: to make the order takes 10 ms
            self.next_start_index = (self.next_start_index + int(np.count_nonzero(allowed_mask))) % len(snapshot)
            return feasible, allowed_mask
        order = np.roll(order_rows_by_zone(snapshot), -self.next_start_index)
        order = order[allowed_mask[order]]
        feasible_counts = np.cumsum(feasible[order])
        examined_count = (
            int(np.searchsorted(feasible_counts, num_nodes_to_find)) + 1
            if len(feasible_counts) and feasible_counts[-1] >= num_nodes_to_find
            else len(order)
        )
        examined_mask = make_mask(order[:examined_count], len(snapshot))
        self.next_start_index = (self.next_start_index + examined_count) % len(snapshot)
        return feasible & examined_mask, examined_mask

    def skip_nominated_node(self, node_count: int, count: int = 1) -> None:
        """Move the start of the next search by *count*, the nodes that were rejected with the nominated node.

        The nominated node of the pod was evaluated first. If plugins rejected it, it counts alone.

        Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.37).
        """
        self.next_start_index = (self.next_start_index + count) % node_count
