"""Selectors and tolerations match nodes of whole views and of parts of them."""

import numpy as np
import pytest

from extender.api.kinds.affinity import Toleration
from extender.api.matching import CompiledNodeSelector, CompiledNodeSelectorTerm, Requirement
from extender.cache.node_matching import (
    map_taint_sets,
    match_names,
    match_node_selector,
    match_node_selector_term,
    match_required_node_affinity,
    match_requirements,
    match_untolerated_taints,
)
from extender.cache.snapshot import NodeView
from tests.build import make_cluster, make_node, make_pod

HARD = {"key": "a", "effect": "NoSchedule"}
EVICTING = {"key": "a", "effect": "NoExecute"}
SOFT = {"key": "a", "effect": "PreferNoSchedule"}


def all_nodes() -> NodeView:
    nodes = (
        make_node("n0", labels={"zone": "a", "n": "5"}),
        make_node("n1", labels={"zone": "b", "n": "x"}, taints=[HARD]),
        make_node("n2", labels={"zone": "a"}, taints=[SOFT]),
        make_node("n3", taints=[EVICTING, SOFT]),
    )
    return make_cluster(*nodes).snapshot().view()


def view_of(rows: list[int]) -> NodeView:
    return all_nodes().snapshot.view(np.array(rows, dtype=np.int64))


def matching_rows(mask: np.ndarray) -> list[int]:
    assert mask.dtype == np.bool_
    return np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(
    ("requirement", "rows"),
    [
        pytest.param(Requirement("zone", "In", ("a",)), [0, 2], id="one value"),
        pytest.param(Requirement("zone", "In", ("a", "b", "z")), [0, 1, 2], id="several values, one unknown"),
        pytest.param(Requirement("zone", "In", ("z",)), [], id="unknown values only"),
        pytest.param(Requirement("zone", "NotIn", ("a",)), [1, 3], id="not one value"),
        pytest.param(Requirement("zone", "NotIn", ("z",)), [0, 1, 2, 3], id="not an unknown value"),
        pytest.param(Requirement("zone", "Exists"), [0, 1, 2], id="the key"),
        pytest.param(Requirement("zone", "DoesNotExist"), [3], id="no key"),
        pytest.param(Requirement("n", "Gt", ("4",)), [0], id="greater"),
        pytest.param(Requirement("n", "Lt", ("5",)), [], id="not less"),
        pytest.param(Requirement("example.com/unused", "NotIn", ("a",)), [0, 1, 2, 3], id="a key no node has"),
        pytest.param(Requirement("example.com/unused", "Gt", ("1",)), [], id="a number no node has"),
    ],
)
def test_a_requirement_matches_nodes(requirement: Requirement, rows: list[int]) -> None:
    assert matching_rows(match_requirements(all_nodes(), (requirement,))) == rows
    assert matching_rows(match_requirements(view_of([3, 2, 1, 0]), (requirement,))) == sorted(3 - row for row in rows)
    for row in range(4):
        assert matching_rows(match_requirements(view_of([row]), (requirement,))) == ([0] if row in rows else [])


def test_no_requirements_match_all_nodes() -> None:
    assert matching_rows(match_requirements(all_nodes(), ())) == [0, 1, 2, 3]


def test_a_caller_may_modify_a_mask() -> None:
    view = all_nodes()
    requirement = Requirement("zone", "Exists")
    match_requirements(view, (requirement,))[:] = False
    assert matching_rows(match_requirements(view, (requirement,))) == [0, 1, 2]


@pytest.mark.parametrize(
    ("term", "rows"),
    [
        pytest.param(
            CompiledNodeSelectorTerm(field_requirements=(Requirement("metadata.name", "In", ("n2",)),)),
            [2],
            id="by name",
        ),
        pytest.param(
            CompiledNodeSelectorTerm(field_requirements=(Requirement("metadata.name", "NotIn", ("n2",)),)),
            [0, 1, 3],
            id="all but a name",
        ),
        pytest.param(
            CompiledNodeSelectorTerm(field_requirements=(Requirement("metadata.name", "In", ("gone",)),)),
            [],
            id="a name no node has",
        ),
        pytest.param(
            CompiledNodeSelectorTerm(field_requirements=(Requirement("spec.x", "NotIn", ("y",)),)),
            [0, 1, 2, 3],
            id="a field taken as empty",
        ),
        pytest.param(
            CompiledNodeSelectorTerm(
                (Requirement("zone", "In", ("a",)),), (Requirement("metadata.name", "NotIn", ("n0",)),)
            ),
            [2],
            id="labels and name",
        ),
        pytest.param(
            CompiledNodeSelectorTerm((Requirement("zone", "Exists"),), errors=("bad",)), [], id="a term with errors"
        ),
    ],
)
def test_a_term_matches_nodes(term: CompiledNodeSelectorTerm, rows: list[int]) -> None:
    assert matching_rows(match_node_selector_term(all_nodes(), term)) == rows
    positions = [position for position, row in enumerate([3, 1]) if row in rows]
    assert matching_rows(match_node_selector_term(view_of([3, 1]), term)) == positions


def test_a_selector_matches_nodes_that_any_term_matches() -> None:
    terms = CompiledNodeSelector(
        (
            CompiledNodeSelectorTerm((Requirement("zone", "In", ("b",)),)),
            CompiledNodeSelectorTerm((Requirement("n", "Gt", ("1",)),)),
        )
    )
    assert matching_rows(match_node_selector(all_nodes(), terms)) == [0, 1]
    assert matching_rows(match_node_selector(all_nodes(), CompiledNodeSelector())) == []


def test_a_pod_s_node_selector_and_required_terms_must_both_match() -> None:
    terms = [{"matchExpressions": [{"key": "n", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    view = all_nodes()
    pod = make_pod(spec={"nodeSelector": {"zone": "a"}, "affinity": {"nodeAffinity": required}})
    assert matching_rows(match_required_node_affinity(view, view.snapshot.make_pod_info(pod))) == [0]
    assert matching_rows(match_required_node_affinity(view, view.snapshot.make_pod_info(make_pod()))) == [0, 1, 2, 3]


def test_names_match_in_any_view() -> None:
    assert matching_rows(match_names(all_nodes(), ("n3", "gone", "n1"))) == [1, 3]
    assert matching_rows(match_names(view_of([3, 0]), ("n3", "n1"))) == [0]


def test_taints_that_forbid_scheduling_are_untolerated_by_default() -> None:
    assert matching_rows(match_untolerated_taints(all_nodes(), ())) == [1, 3]
    tolerations = (Toleration(key="a", operator="Exists", effect="NoExecute"),)
    assert matching_rows(match_untolerated_taints(all_nodes(), tolerations)) == [1]
    assert matching_rows(match_untolerated_taints(view_of([3, 1]), tolerations)) == [1]


def test_the_function_is_called_once_for_each_distinct_list_of_taints() -> None:
    nodes = [make_node(f"n{index}", taints=[HARD] if index % 2 else []) for index in range(10)]
    calls: list[int] = []

    def function(taints: tuple[object, ...]) -> int:
        calls.append(len(taints))
        return 5 * len(taints)

    assert map_taint_sets(make_cluster(*nodes).snapshot().view(), function).tolist() == [0, 5] * 5
    assert sorted(calls) == [0, 1]
