"""Searches that stop early: how many nodes are enough, in which order, and where the next one goes on."""

import numpy as np
import pytest

from extender.decide.sampling import Search, nodes_to_find, zone_order
from tests.build import a_cluster, a_node

ZONE, REGION, OLD_ZONE = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
)


@pytest.mark.parametrize(
    ("nodes", "percentage", "enough"),
    [(50, 10, 50), (99, 1, 99), (100, 10, 100), (1000, 42, 420), (5000, 10, 500), (6000, 5, 300), (15000, 5, 750)],
)
def test_how_many_feasible_nodes_are_enough(nodes: int, percentage: int, enough: int) -> None:
    """Source: A085, A086."""
    assert nodes_to_find(nodes, percentage) == enough


def test_zones_take_turns() -> None:
    """Source: A093."""
    zones = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "c1": "c", "c2": "c"}
    cluster = a_cluster(*(a_node(name, labels={ZONE: zone}) for name, zone in zones.items())).snapshot()

    assert [cluster.names[row] for row in zone_order(cluster)] == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_the_old_zone_label_counts_first_and_nodes_without_zone_are_one_zone() -> None:
    nodes = [
        a_node("old", labels={OLD_ZONE: "a", ZONE: "b"}),
        a_node("new", labels={ZONE: "a"}),
        a_node("x"),
        a_node("y"),
    ]
    cluster = a_cluster(*nodes).snapshot()

    assert [cluster.names[row] for row in zone_order(cluster)] == ["old", "x", "new", "y"]


def test_a_search_stops_at_enough_and_the_next_goes_on_there() -> None:
    """Source: A088."""
    cluster = a_cluster(*(a_node(f"n{i}") for i in range(6))).snapshot()
    everyone = np.ones(6, dtype=np.bool_)
    fits = np.array([True, False, True, True, True, True])
    search = Search()

    found, looked_at = search.limited(cluster, everyone, fits, 2)
    assert np.flatnonzero(found).tolist() == [0, 2]
    assert np.flatnonzero(looked_at).tolist() == [0, 1, 2]

    found, _ = search.limited(cluster, everyone, fits, 2)
    assert np.flatnonzero(found).tolist() == [3, 4]

    found, _ = search.limited(cluster, everyone, fits, 2)
    assert np.flatnonzero(found).tolist() == [0, 5]


def test_a_search_that_never_has_enough_looks_at_all() -> None:
    cluster = a_cluster(*(a_node(f"n{i}") for i in range(3))).snapshot()
    everyone = np.ones(3, dtype=np.bool_)

    found, looked_at = Search().limited(cluster, everyone, np.array([True, False, False]), 2)

    assert np.flatnonzero(found).tolist() == [0]
    assert looked_at.all()
