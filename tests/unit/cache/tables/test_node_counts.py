"""Counts by node row are summed by topology domain, those of few nodes in one step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from extender.cache.cache import Cache
from extender.cache.tables.node_counts import NodeCounts, OwnerToken, sum_by_domain
from extender.cache.tables.node_table import NodeTable
from tests.build import make_cluster, make_node


def make_cluster_of_two_zones() -> Cache:
    """Make three nodes in the zones a, b and a, and one without a zone."""
    zones = {"one": {"zone": "a"}, "two": {"zone": "b"}, "three": {"zone": "a"}, "four": {}}
    return make_cluster(*(make_node(name, labels=labels) for name, labels in zones.items()))


def few(counts: dict[int, int]) -> NodeCounts:
    return NodeCounts(counts, OwnerToken(), total=sum(counts.values()))


def many(*counts: int) -> NodeCounts:
    return NodeCounts(np.array(counts, dtype=np.int64), OwnerToken(), total=sum(counts))


def sums(*weighted_counts: tuple[str, NodeCounts, int]) -> dict[str, list[int]]:
    nodes = make_cluster_of_two_zones().snapshot().tables.nodes
    return {key: counts.tolist() for key, counts in sum_by_domain(weighted_counts, nodes).items()}


def test_counts_are_added_with_their_weights_by_topology_key() -> None:
    assert sums(("zone", few({0: 1, 1: 1}), 1), ("zone", few({2: 2}), -10)) == {"zone": [-19, 1]}
    assert sums(("zone", many(1, 1, 0, 1), 1), ("zone", many(0, 0, 2, 0), 3)) == {"zone": [7, 1]}
    assert sums(("zone", many(1, 1, 0, 1), 2), ("zone", few({1: 1}), 5)) == {"zone": [2, 7]}


def test_sums_of_0_are_returned() -> None:
    assert sums(("zone", few({0: 1}), 1), ("zone", few({2: 1}), -1)) == {"zone": [0, 0]}


@pytest.mark.parametrize("counts", [few({3: 1}), many(0, 0, 0, 1)], ids=["few nodes", "many nodes"])
def test_a_key_without_a_pod_in_a_domain_is_not_in_the_result(counts: NodeCounts) -> None:
    assert sums(("zone", counts, 1), ("rack", few({0: 1}), 1)) == {}


def test_the_array_of_one_summand_is_not_copied() -> None:
    nodes, counts = make_cluster_of_two_zones().snapshot().tables.nodes, many(1, 1, 0, 0)
    assert sum_by_domain([("zone", counts, 1)], nodes)["zone"] is counts.domain_counts["zone"]


def test_the_counts_of_few_nodes_are_added_in_one_step_for_each_key(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = make_cluster_of_two_zones().snapshot().tables.nodes
    get_label_column: Callable[..., Any] = NodeTable.get_label_column
    read_keys = []

    def record(table: NodeTable, key: str) -> Any:
        read_keys.append(key)
        return get_label_column(table, key)

    monkeypatch.setattr(NodeTable, "get_label_column", record)
    total = sum_by_domain((("zone", few({number % 2: 1}), 1) for number in range(100)), nodes)
    assert total["zone"].tolist() == [50, 50]
    assert read_keys == ["zone"]
    # The terms of a few pods may have thousands of keys that no node has. Each took a step of its own.
    sum_by_domain((("rack", few({0: 1}), 1), ("zone", few({0: 1}), 1)), nodes)
    assert read_keys == ["zone", "zone"]


@pytest.mark.parametrize(
    ("counts", "selected"),
    [
        pytest.param(few({0: 1, 2: 3}), {2: 3}, id="few nodes"),
        pytest.param(many(1, 0, 3, 0), [0, 0, 3, 0], id="many nodes"),
    ],
)
def test_counts_are_restricted_to_some_nodes(counts: NodeCounts, selected: object) -> None:
    nodes = make_cluster_of_two_zones().snapshot().tables.nodes
    restricted = counts.restrict_to(np.array([False, True, True, False]), nodes)
    rows = restricted.row_counts
    assert (rows if isinstance(rows, dict) else rows.tolist()) == selected
    assert restricted.total == 3
