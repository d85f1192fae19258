"""Calculate the utilization of a cluster: the requested and allocatable amounts of each resource on each node."""

from collections.abc import Mapping
from dataclasses import dataclass

from extender.answers.answer_struct import ResourceUse
from extender.answers.simulation import NodeUse
from extender.cache.snapshot import Snapshot
from extender.cache.tables.arrays import IntArray

SHOWN_NODES = 3
"""The number of the fullest nodes, and of the emptiest ones, in answers."""

PODS_RESOURCE = "pods"
"""The name for the number of pods on a node, which is limited like a resource."""


@dataclass(frozen=True, slots=True)
class ClusterUsage:
    """The utilization of a whole cluster by resource, and of each of its nodes in the snapshot's order."""

    total: Mapping[str, ResourceUse]
    nodes: tuple[NodeUse, ...]

    def list_fullest_nodes(self, count: int) -> list[NodeUse]:
        """Return the *count* fullest nodes, the fullest first."""
        return sorted(self.nodes, key=lambda node: (-node.max_fraction, node.name))[:count]

    def list_emptiest_nodes(self, count: int) -> list[NodeUse]:
        """Return the *count* emptiest nodes, the emptiest first."""
        return sorted(self.nodes, key=lambda node: (node.max_fraction, node.name))[:count]

    def list_nodes_by_title(self) -> dict[str, list[NodeUse]]:
        """Return the fullest and the emptiest nodes, `SHOWN_NODES` of each, or all nodes if there are no others."""
        if len(self.nodes) <= 2 * SHOWN_NODES:
            return {"Nodes, the fullest first": self.list_fullest_nodes(len(self.nodes))}
        return {
            "Fullest nodes": self.list_fullest_nodes(SHOWN_NODES),
            "Emptiest nodes": self.list_emptiest_nodes(SHOWN_NODES),
        }


def get_resource_amounts(snapshot: Snapshot) -> dict[str, tuple[IntArray, IntArray]]:
    """Return the requested and allocatable amounts of each node (int64), by resource that a node has; also `pods`."""
    view = snapshot.view()
    amounts = {PODS_RESOURCE: (view.pod_count, view.allowed_pods)}
    for resource_id, name in enumerate(snapshot.symbols.resources):
        allocatable = view.allocatable(resource_id)
        if allocatable.any():
            amounts[name] = view.requested(resource_id), allocatable
    return amounts


def sum_amounts(amounts: Mapping[str, tuple[IntArray, IntArray]]) -> dict[str, ResourceUse]:
    """Return the sums of the amounts of all nodes, by resource."""
    return {
        name: ResourceUse(sum(requested.tolist()), sum(allocatable.tolist()))  # they may exceed 64 bits
        for name, (requested, allocatable) in amounts.items()
    }


def calculate_cluster_usage(snapshot: Snapshot) -> ClusterUsage:
    """Return the utilization of a snapshot, without resources that no node has."""
    amounts = get_resource_amounts(snapshot)
    amounts_by_resource = {
        name: (requested.tolist(), allocatable.tolist()) for name, (requested, allocatable) in amounts.items()
    }
    nodes = tuple(
        NodeUse(
            name,
            {
                resource: ResourceUse(requested_amounts[row], allocatable_amounts[row])
                for resource, (requested_amounts, allocatable_amounts) in amounts_by_resource.items()
                if allocatable_amounts[row]
            },
        )
        for row, name in enumerate(snapshot.names)
    )
    return ClusterUsage(sum_amounts(amounts), nodes)
