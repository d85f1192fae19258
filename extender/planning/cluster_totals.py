"""The totals of a cluster: nodes, pods, requested and allocatable amounts, and the price of its nodes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from extender.analysis.utilization import PODS_RESOURCE, ResourceUsage, get_resource_amounts, sum_amounts
from extender.api.kinds.node import Node
from extender.cache.snapshot import Snapshot

NodePriceFunction = Callable[[Node], float | None]
"""A function that returns the price of a node, or None if it is unknown."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The sum of the prices of the nodes, and the number of nodes without a price."""

    total: float
    unpriced_nodes: int


@dataclass(frozen=True, slots=True)
class ClusterTotals:
    """The totals of a cluster.

    Attributes:
        nodes: the number of nodes.
        pods: the number of pods on nodes.
        waiting: the number of pods without a node that a profile schedules.
        resources: the requested and allocatable amounts in base units, by resource; also `pods`.
        cost: the price of the nodes; None without prices.
    """

    nodes: int
    pods: int
    waiting: int
    resources: Mapping[str, ResourceUsage]
    cost: Cost | None

    def to_values(self) -> dict[str, Any]:
        """Return the totals as plain values."""
        return {
            "nodes": self.nodes,
            "pods": self.pods,
            "waiting": self.waiting,
            "resources": {
                name: {"requested": usage.requested, "allocatable": usage.allocatable}
                for name, usage in self.resources.items()
            },
            "cost": None if self.cost is None else round(self.cost.total, 6),
            "unpricedNodes": None if self.cost is None else self.cost.unpriced_nodes,
        }


def calculate_totals(snapshot: Snapshot, waiting: int, cost: Cost | None) -> ClusterTotals:
    """Return the totals of a snapshot, without resources that no node has."""
    resources = sum_amounts(get_resource_amounts(snapshot))
    return ClusterTotals(len(snapshot), resources[PODS_RESOURCE].requested, waiting, resources, cost)


def calculate_cost(snapshot: Snapshot, get_price: NodePriceFunction) -> Cost:
    """Return the sum of the prices of all nodes."""
    prices = [get_price(node) for node in snapshot.nodes]
    known_prices = [price for price in prices if price is not None]
    return Cost(sum(known_prices), len(prices) - len(known_prices))
