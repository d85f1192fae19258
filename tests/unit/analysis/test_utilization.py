"""The utilization of a cluster by resource and node."""

from extender.analysis.utilization import PODS_RESOURCE, calculate_cluster_usage
from extender.answers.answer_struct import ResourceUse
from extender.cache.cache import Cache
from tests.build import make_node, make_pod


def make_cluster() -> Cache:
    cache = Cache()
    cache.add_or_update_node(make_node("full", allocatable={"cpu": "2", "pods": "10"}))
    cache.add_or_update_node(make_node("empty", allocatable={"cpu": "6", "pods": "10"}))
    cache.add_or_update_pod(make_pod("web", node="full", requests={"cpu": "1500m"}))
    return cache


def test_totals_are_sums_over_all_nodes() -> None:
    total = calculate_cluster_usage(make_cluster().snapshot()).total
    assert total["cpu"] == ResourceUse(1500, 8000)
    assert total[PODS_RESOURCE] == ResourceUse(1, 20)
    assert "ephemeral-storage" not in total


def test_nodes_are_ordered_by_their_largest_fraction() -> None:
    usage = calculate_cluster_usage(make_cluster().snapshot())
    assert [(node.name, node.max_fraction) for node in usage.list_fullest_nodes(2)] == [("full", 0.75), ("empty", 0.0)]
    assert [node.name for node in usage.list_emptiest_nodes(1)] == ["empty"]


def test_a_resource_without_allocatable_amount_has_the_fraction_0() -> None:
    assert ResourceUse(5, 0).fraction == 0.0


def test_totals_may_exceed_64_bits() -> None:
    """The total of two nodes with 8Ei of memory was negative."""
    cache = Cache()
    for name in ("a", "b"):
        cache.add_or_update_node(make_node(name, allocatable={"memory": "8Ei", "pods": "10"}))
    assert calculate_cluster_usage(cache.snapshot()).total["memory"] == ResourceUse(0, 2 * (2**63 - 1))
