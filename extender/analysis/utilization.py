"""Calculate the utilization of a cluster: the requested and allocatable amounts of each resource on each node."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.cache.snapshot import Snapshot

PODS_RESOURCE = "pods"
"""The name for the number of pods on a node, which is limited like a resource."""


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """The requested and allocatable amounts of a resource, in base units (milli-CPU, bytes, counts)."""

    requested: int
    allocatable: int

    @property
    def fraction(self) -> float:
        """The requested amount divided by the allocatable amount; 0 if the allocatable amount is 0."""
        return self.requested / self.allocatable if self.allocatable else 0.0


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """The utilization of one node by resource, without the resources that the node does not have."""

    name: str
    resources: Mapping[str, ResourceUsage]

    @property
    def max_fraction(self) -> float:
        """The largest fraction over all resources."""
        return max((usage.fraction for usage in self.resources.values()), default=0.0)


@dataclass(frozen=True, slots=True)
class ClusterUsage:
    """The utilization of a whole cluster by resource, and of each of its nodes in the snapshot's order."""

    total: Mapping[str, ResourceUsage]
    nodes: tuple[NodeUsage, ...]

    def list_fullest_nodes(self, count: int) -> list[NodeUsage]:
        """Return the *count* fullest nodes, the fullest first."""
        return sorted(self.nodes, key=lambda node: (-node.max_fraction, node.name))[:count]

    def list_emptiest_nodes(self, count: int) -> list[NodeUsage]:
        """Return the *count* emptiest nodes, the emptiest first."""
        return sorted(self.nodes, key=lambda node: (node.max_fraction, node.name))[:count]


def calculate_cluster_usage(snapshot: Snapshot) -> ClusterUsage:
    """Return the utilization of a snapshot, without resources that no node has."""
    view = snapshot.view()
    requested_by_resource = {PODS_RESOURCE: view.pod_count}
    allocatable_by_resource = {PODS_RESOURCE: view.allowed_pods}
    for resource_id, name in enumerate(snapshot.symbols.resources):
        amounts = view.allocatable(resource_id)
        if amounts.any():
            requested_by_resource[name], allocatable_by_resource[name] = view.requested(resource_id), amounts
    total = {
        name: ResourceUsage(int(requested_by_resource[name].sum()), int(np.sum(allocatable_by_resource[name])))
        for name in requested_by_resource
    }
    amounts_by_resource = {
        name: (requested_by_resource[name].tolist(), allocatable_by_resource[name].tolist())
        for name in requested_by_resource
    }
    nodes = tuple(
        NodeUsage(
            name,
            {
                resource: ResourceUsage(requested_amounts[row], allocatable_amounts[row])
                for resource, (requested_amounts, allocatable_amounts) in amounts_by_resource.items()
                if allocatable_amounts[row]
            },
        )
        for row, name in enumerate(snapshot.names)
    )
    return ClusterUsage(total, nodes)
