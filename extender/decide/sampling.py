"""Which nodes are looked at when the search is to stop early: the share, the order and where it goes on.

Source: A085 to A089, A093.
"""

from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.snapshot import Snapshot
from extender.objects.node import Node

_LEAST = 100
_ZONES = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGIONS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


def nodes_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes are enough among *nodes*, at *percentage* (1 to 100). Source: A085, A086."""
    if nodes < _LEAST:
        return nodes
    return max(_LEAST, nodes * percentage // 100)


def _zone(node: Node) -> str:
    labels = node.metadata.labels
    zone = next((labels[key] for key in _ZONES if labels.get(key)), "")
    region = next((labels[key] for key in _REGIONS if labels.get(key)), "")
    return f"{region}:\x00:{zone}" if region or zone else ""


def zone_order(cluster: Snapshot) -> IntArray:
    """All rows, zone by zone in turn: the first node of every zone, then the second of every zone. Source: A093."""
    zones: dict[str, list[int]] = {}
    for row, node in enumerate(cluster.nodes):
        zones.setdefault(_zone(node), []).append(row)
    turns = [(turn, number, row) for number, rows in enumerate(zones.values()) for turn, row in enumerate(rows)]
    return np.array([row for _, _, row in sorted(turns)], dtype=np.int64)


@dataclass(slots=True)
class Search:
    """Where the next search starts; one for a scheduler. Source: A088.

    Attributes:
        start: the position in the order of nodes.
        compares: somebody beside the plugins filters or rates nodes, so that the first to pass will not do even if no
            plugin scores. Source: A087, F034.
    """

    start: int = 0
    compares: bool = False

    def limited(
        self, cluster: Snapshot, asked: BoolArray, feasible: BoolArray, enough: int
    ) -> tuple[BoolArray, BoolArray]:
        """What a search that stops after *enough* feasible nodes finds, and what it looks at: bool arrays over rows.

        Args:
            cluster: gives the order of nodes.
            asked: the rows PreFilter left over.
            feasible: of these, the rows no plugin refuses.
            enough: when to stop.
        """
        order = np.roll(zone_order(cluster), -self.start)
        order = order[asked[order]]
        hits = np.cumsum(feasible[order])
        stop = int(np.searchsorted(hits, enough)) + 1 if len(hits) and hits[-1] >= enough else len(order)
        looked_at = np.zeros(len(cluster), dtype=np.bool_)
        looked_at[order[:stop]] = True
        self.start = (self.start + stop) % len(cluster)
        return feasible & looked_at, looked_at
