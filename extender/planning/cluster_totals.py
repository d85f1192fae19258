"""The totals of a cluster: nodes, pods, requested and allocatable amounts, and the price of its nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from extender.analysis.utilization import PODS_RESOURCE, get_resource_amounts, sum_amounts
from extender.answers.planning import Totals
from extender.api.kinds.node import Node
from extender.cache.snapshot import Snapshot

NodePriceFunction = Callable[[Node], float | None]
"""A function that returns the price of a node, or None if it is unknown."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The sum of the prices of the nodes, and the number of nodes without a price."""

    total: float
    unpriced_nodes: int


def calculate_totals(snapshot: Snapshot, waiting: int, cost: Cost | None) -> Totals:
    """Return the totals of a snapshot, without resources that no node has."""
    resources = sum_amounts(get_resource_amounts(snapshot))
    return Totals(
        len(snapshot),
        resources[PODS_RESOURCE].requested,
        waiting,
        resources,
        None if cost is None else round(cost.total, 6),
        None if cost is None else cost.unpriced_nodes,
    )


def calculate_cost(snapshot: Snapshot, get_price: NodePriceFunction) -> Cost:
    """Return the sum of the prices of all nodes."""
    prices = [get_price(node) for node in snapshot.nodes]
    known_prices = [price for price in prices if price is not None]
    return Cost(sum(known_prices), len(prices) - len(known_prices))
