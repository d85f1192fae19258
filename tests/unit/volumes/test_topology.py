"""Topology requirements are matched with the nodes of a view, with and without the index by label value."""

from collections.abc import Callable

import numpy as np
import pytest

from extender.api.kinds.storage import TopologySelectorLabelRequirement, TopologySelectorTerm
from extender.api.matching import (
    NOTHING,
    CompiledNodeSelector,
    CompiledNodeSelectorTerm,
    Requirement,
    Selector,
    selector_from_labels,
)
from extender.volumes.topology import TopologyIndex
from tests.build import make_cluster, make_node

SIZES = [8, 40]
"""Cluster sizes without and with the index."""


def make_topology(size: int, rows: Callable[[int], list[int]] | None = None) -> TopologyIndex:
    """Index a view of *size* nodes, the odd ones in zone a; *rows* selects some of them."""
    nodes = [make_node(f"n{i}", labels={"host": f"n{i}", **({"zone": "a"} if i % 2 else {})}) for i in range(size)]
    snapshot = make_cluster(*nodes).snapshot()
    return TopologyIndex(snapshot.view(None if rows is None else np.array(rows(size), dtype=np.int64)))


HOSTS = Requirement("host", "In", ("n1", "n2", "n3"))
ZONED = Requirement("zone", "Exists")


@pytest.mark.parametrize("size", SIZES)
def test_requirements_of_every_kind_match(size: int) -> None:
    topology = make_topology(size)
    assert topology.match_requirements([Requirement("zone", "DoesNotExist")]).tolist() == list(range(0, size, 2))
    assert topology.match_requirements([HOSTS, ZONED]).tolist() == [1, 3]
    assert topology.match_requirements([Requirement("host", "In", ("elsewhere",))]).tolist() == []
    assert topology.match_requirements([]).tolist() == list(range(size))


@pytest.mark.parametrize("size", SIZES)
def test_positions_count_in_the_view_and_not_in_the_cluster(size: int) -> None:
    topology = make_topology(2 * size, lambda all_nodes: list(range(all_nodes - 1, all_nodes - 1 - size, -1)))
    hosts = Requirement("host", "In", (f"n{2 * size - 1}", f"n{2 * size - 2}", "n0"))
    assert sorted(topology.match_requirements([hosts]).tolist()) == [0, 1]
    assert topology.match_requirements([hosts, ZONED]).tolist() == [0]


@pytest.mark.parametrize("size", SIZES)
def test_any_term_matches_except_those_with_errors(size: int) -> None:
    topology = make_topology(size)
    selector = CompiledNodeSelector(
        (
            CompiledNodeSelectorTerm((Requirement("host", "In", ("n5", "n2")),)),
            CompiledNodeSelectorTerm((Requirement("host", "In", ("n2",)),)),
            CompiledNodeSelectorTerm((ZONED,), errors=("bad",)),
        )
    )
    assert topology.match_node_selector(selector).tolist() == [2, 5]
    assert topology.match_node_selector(CompiledNodeSelector()).tolist() == []
    assert topology.match_node_selector(None) is topology.all_positions


def test_equal_terms_return_the_same_array() -> None:
    topology = make_topology(8)
    first, second = (CompiledNodeSelector((CompiledNodeSelectorTerm((HOSTS,)),)) for _ in range(2))
    assert topology.match_node_selector(first) is topology.match_node_selector(second)


def test_a_label_selector_is_matched_once() -> None:
    """A pod may have 100 claims, and each node a storage pool with a selector."""
    topology = make_topology(8)
    selector = Selector((ZONED,))
    assert topology.match_label_selector(selector) is topology.match_label_selector(selector)


def test_a_selector_that_matches_nothing_has_no_nodes() -> None:
    topology = make_topology(8)
    assert topology.match_label_selector(NOTHING).tolist() == []
    assert topology.match_label_selector(Selector()).tolist() == list(range(8))
    assert topology.match_label_selector(selector_from_labels({"zone": "a"})).tolist() == [1, 3, 5, 7]


def make_term(**values: tuple[str, ...]) -> TopologySelectorTerm:
    return TopologySelectorTerm(
        match_label_expressions=tuple(
            TopologySelectorLabelRequirement(key=key, values=label_values) for key, label_values in values.items()
        )
    )


@pytest.mark.parametrize(
    ("terms", "positions"),
    [
        pytest.param([], [0, 1, 2, 3, 4, 5, 6, 7], id="no terms"),
        pytest.param([make_term()], [], id="an empty term"),
        pytest.param([make_term(host=())], [], id="no values"),
        pytest.param([make_term(host=("n1", "n2"), zone=("a",))], [1], id="two labels"),
        pytest.param([make_term(host=("n4",)), make_term(host=("n1", "n4"))], [1, 4], id="two terms"),
    ],
)
def test_allowed_topologies_match(terms: list[TopologySelectorTerm], positions: list[int]) -> None:
    """Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.checkVolumeProvisions (1.36)."""
    assert make_topology(8).match_topologies(terms).tolist() == positions
