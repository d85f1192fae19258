"""Counts of matched terms by topology domain."""

import numpy as np

from extender.cache.snapshot import NodeView
from extender.cache.tables.node_table import ABSENT
from extender.plugins.inter_pod_affinity.domain_counts import TopologyToMatchedTermCount
from tests.build import make_cluster, make_node


def view_zones(*zones: str) -> NodeView:
    """Return a node in each zone; the value id of a zone is its position."""
    view = make_cluster(*(make_node(zone, labels={"zone": zone}) for zone in zones)).snapshot().view()
    assert view.label_value_ids("zone").tolist() == list(range(len(zones)))
    return view


def test_each_node_has_the_count_of_its_domain_with_which_the_counts_begin() -> None:
    counts = TopologyToMatchedTermCount({"zone": np.array([2, 0, 4], dtype=np.int64)})
    assert counts.get_counts_by_node(view_zones("east", "north", "west"), "zone").tolist() == [2, 0, 4]
    assert (counts.topology_keys, counts.is_empty) == (("zone",), False)


def test_an_update_does_not_write_to_the_shared_array() -> None:
    shared = np.array([1], dtype=np.int64)
    counts = TopologyToMatchedTermCount({"zone": shared})
    counts.update("zone", 0, -1)
    assert (counts.is_empty, shared.tolist()) == (True, [1])


def test_an_absent_value_is_not_counted() -> None:
    counts = TopologyToMatchedTermCount()
    counts.update("zone", ABSENT, 1)
    assert counts.is_empty


def test_a_clone_is_updated_independently() -> None:
    counts = TopologyToMatchedTermCount()
    counts.update("zone", 1, 3)
    clone = counts.clone()
    clone.update("zone", 1, 1)
    counts.update("zone", 0, 2)
    nodes = view_zones("east", "west")
    assert clone.get_counts_by_node(nodes, "zone").tolist() == [0, 4]
    assert counts.get_counts_by_node(nodes, "zone").tolist() == [2, 3]


def test_nodes_get_the_count_of_their_domain_and_0_without_the_label() -> None:
    nodes = [make_node("a", labels={"zone": "east"}), make_node("b", labels={"zone": "west"}), make_node("c")]
    view = make_cluster(*nodes).snapshot().view()
    east = view.label_value_ids("zone").tolist()[0]
    counts = TopologyToMatchedTermCount()
    counts.update("zone", east, 7)
    assert counts.get_counts_by_node(view, "zone").tolist() == [7, 0, 0]
    assert counts.is_positive_by_node(view, "zone").tolist() == [True, False, False]


def test_each_row_has_only_its_own_change_of_the_count_of_its_domain() -> None:
    view = view_zones("east", "north", "west")
    counts = TopologyToMatchedTermCount({"zone": np.array([1, 0, 4], dtype=np.int64)})

    changed = counts.clone()
    changed.deltas_by_row = {"zone": np.array([-1, 2, -1], dtype=np.int64)}

    assert changed.get_counts_by_node(view, "zone").tolist() == [0, 2, 3]
    assert changed.is_positive_by_node(view, "zone").tolist() == [False, True, True]
    assert counts.get_counts_by_node(view, "zone").tolist() == [1, 0, 4]


def test_each_row_finds_whether_its_own_change_empties_all_domains() -> None:
    view = view_zones("east", "north", "west")
    counts = TopologyToMatchedTermCount({"zone": np.array([1, 0, 0], dtype=np.int64)})
    assert counts.is_empty_by_node(view) is False

    counts.deltas_by_row = {"zone": np.array([-1, 0, 1], dtype=np.int64)}

    assert np.asarray(counts.is_empty_by_node(view)).tolist() == [True, False, False]


def test_changes_of_rows_add_their_topology_keys() -> None:
    counts = TopologyToMatchedTermCount()
    counts.deltas_by_row = {"zone": np.array([1], dtype=np.int64)}

    assert counts.topology_keys == ("zone",)
    assert counts.clone().get_counts_by_node(view_zones("east"), "zone").tolist() == [1]
