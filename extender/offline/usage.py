"""How full a cluster is: what its pods request of what its nodes offer, resource by resource and node by node."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.cluster.snapshot import Snapshot

PODS = "pods"
"""The number of pods, which nodes limit like a resource."""


@dataclass(frozen=True, slots=True)
class Share:
    """What is requested of a resource, and what there is; base units (milli-CPU, bytes, counts)."""

    requested: int
    allocatable: int

    @property
    def fraction(self) -> float:
        """Requested of allocatable; 0 where there is none."""
        return self.requested / self.allocatable if self.allocatable else 0.0


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """One node: its shares by resource, those it has none of left out."""

    name: str
    shares: Mapping[str, Share]

    @property
    def fullness(self) -> float:
        """The share of the resource that is used most."""
        return max((share.fraction for share in self.shares.values()), default=0.0)


@dataclass(frozen=True, slots=True)
class Usage:
    """A cluster: its shares by resource, and its nodes in order."""

    total: Mapping[str, Share]
    nodes: tuple[NodeUsage, ...]

    def fullest(self, count: int) -> list[NodeUsage]:
        """The *count* nodes with the least room, the fullest first."""
        return sorted(self.nodes, key=lambda node: (-node.fullness, node.name))[:count]

    def emptiest(self, count: int) -> list[NodeUsage]:
        """The *count* nodes with the most room, the emptiest first."""
        return sorted(self.nodes, key=lambda node: (node.fullness, node.name))[:count]


def usage(cluster: Snapshot) -> Usage:
    """How full *cluster* is now. Resources that no node offers are left out."""
    view = cluster.view()
    requested = {PODS: view.pod_count}
    allocatable = {PODS: view.allowed_pods}
    for number, name in enumerate(cluster.vocabulary.resources):
        offered = view.allocatable(number)
        if offered.any():
            requested[name], allocatable[name] = view.requested(number), offered
    total = {name: Share(int(requested[name].sum()), int(np.sum(allocatable[name]))) for name in requested}
    lists = {name: (requested[name].tolist(), allocatable[name].tolist()) for name in requested}
    nodes = tuple(
        NodeUsage(name, {word: Share(has[row], of[row]) for word, (has, of) in lists.items() if of[row]})
        for row, name in enumerate(cluster.names)
    )
    return Usage(total, nodes)
