"""Searches that stop early: the number of nodes, their order and the start of the next search."""

import numpy as np
import pytest

from extender.cycle.node_sampling import NodeSampler, num_feasible_nodes_to_find, order_rows_by_zone
from tests.build import make_cluster, make_node

ZONE, REGION, OLD_ZONE = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
)


@pytest.mark.parametrize(
    ("nodes", "percentage", "num_nodes"),
    [(50, 10, 50), (99, 1, 99), (100, 10, 100), (1000, 42, 420), (5000, 10, 500), (6000, 5, 300), (15000, 5, 750)],
)
def test_how_many_feasible_nodes_are_enough(nodes: int, percentage: int, num_nodes: int) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.numFeasibleNodesToFind (1.36)."""
    assert num_feasible_nodes_to_find(nodes, percentage) == num_nodes


def test_zones_take_turns() -> None:
    """Source: pkg/scheduler/backend/cache/node_tree.go, nodeTree.list (1.36)."""
    zones = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "c1": "c", "c2": "c"}
    snapshot = make_cluster(*(make_node(name, labels={ZONE: zone}) for name, zone in zones.items())).snapshot()

    assert [snapshot.names[row] for row in order_rows_by_zone(snapshot)] == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_the_old_zone_label_counts_first_and_nodes_without_zone_are_one_zone() -> None:
    nodes = [
        make_node("old", labels={OLD_ZONE: "a", ZONE: "b"}),
        make_node("new", labels={ZONE: "a"}),
        make_node("x"),
        make_node("y"),
        make_node("z", labels={OLD_ZONE: "", ZONE: "a"}),
    ]
    snapshot = make_cluster(*nodes).snapshot()

    assert [snapshot.names[row] for row in order_rows_by_zone(snapshot)] == ["old", "x", "new", "y", "z"]


def test_a_search_stops_at_enough_nodes_and_the_next_starts_there() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36)."""
    snapshot = make_cluster(*(make_node(f"n{i}") for i in range(6))).snapshot()
    all_rows = np.ones(6, dtype=np.bool_)
    fits = np.array([True, False, True, True, True, True])
    sampler = NodeSampler()

    sampled, examined = sampler.sample(snapshot, all_rows, fits, 2)
    assert np.flatnonzero(sampled).tolist() == [0, 2]
    assert np.flatnonzero(examined).tolist() == [0, 1, 2]

    sampled, _ = sampler.sample(snapshot, all_rows, fits, 2)
    assert np.flatnonzero(sampled).tolist() == [3, 4]

    sampled, _ = sampler.sample(snapshot, all_rows, fits, 2)
    assert np.flatnonzero(sampled).tolist() == [0, 5]


def test_a_search_that_never_finds_enough_examines_all_nodes() -> None:
    snapshot = make_cluster(*(make_node(f"n{i}") for i in range(3))).snapshot()
    all_rows = np.ones(3, dtype=np.bool_)

    sampled, examined = NodeSampler().sample(snapshot, all_rows, np.array([True, False, False]), 2)

    assert np.flatnonzero(sampled).tolist() == [0]
    assert examined.all()


def test_a_search_without_feasible_nodes_examines_the_allowed_nodes_and_moves_by_their_number() -> None:
    snapshot = make_cluster(*(make_node(f"n{i}") for i in range(3))).snapshot()
    allowed = np.array([True, False, True])
    sampler = NodeSampler(next_start_index=2)

    sampled, examined = sampler.sample(snapshot, allowed, np.zeros(3, dtype=np.bool_), 2)

    assert (sampled.tolist(), examined.tolist()) == ([False, False, False], [True, False, True])
    assert sampler.next_start_index == 1
