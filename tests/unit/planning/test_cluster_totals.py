"""The totals and the cost of a cluster."""

import msgspec

from extender.planning.cluster_totals import Cost, calculate_cost, calculate_totals
from tests.unit.planning.clusters import make_cache, node, pod


def test_totals_are_sums_over_all_nodes() -> None:
    cache = make_cache(node("n1", "4", pods=10), node("n2", "2", pods=10), pod("a", "1500m", on="n1"), pod("b"))
    totals = calculate_totals(cache.snapshot(), 1, Cost(3.5, 1))
    assert msgspec.to_builtins(totals) == {
        "nodes": 2,
        "pods": 1,
        "waiting": 1,
        "resources": {
            "pods": {"requested": 1, "allocatable": 20},
            "cpu": {"requested": 1500, "allocatable": 6000},
            "memory": {"requested": 0, "allocatable": 64 << 30},
        },
        "cost": 3.5,
        "unpricedNodes": 1,
    }


def test_the_cost_is_the_sum_of_the_known_prices() -> None:
    snapshot = make_cache(node("n1"), node("n2"), node("n3")).snapshot()
    prices = {"n1": 1.5, "n3": 2.0}
    assert calculate_cost(snapshot, lambda priced: prices.get(priced.metadata.name)) == Cost(3.5, 1)
    assert calculate_totals(snapshot, 0, None).cost is None
