"""Which nodes selectors and tolerations are content with, for whole views and parts of them."""

import numpy as np
import pytest

from extender.cluster.node_matching import (
    by_taint_set,
    named_mask,
    required_affinity_mask,
    requirements_mask,
    term_mask,
    terms_mask,
    untolerated_mask,
)
from extender.cluster.snapshot import NodeView
from extender.objects.affinity import Toleration
from extender.objects.matching import NodeTerm, NodeTerms, Requirement
from tests.build import a_cluster, a_node, a_pod

HARD = {"key": "a", "effect": "NoSchedule"}
EVICTING = {"key": "a", "effect": "NoExecute"}
SOFT = {"key": "a", "effect": "PreferNoSchedule"}


def everyone() -> NodeView:
    nodes = (
        a_node("n0", labels={"zone": "a", "n": "5"}),
        a_node("n1", labels={"zone": "b", "n": "x"}, taints=[HARD]),
        a_node("n2", labels={"zone": "a"}, taints=[SOFT]),
        a_node("n3", taints=[EVICTING, SOFT]),
    )
    return a_cluster(*nodes).snapshot().view()


def some(rows: list[int]) -> NodeView:
    return everyone().snapshot.view(np.array(rows, dtype=np.int64))


def chosen(mask: np.ndarray) -> list[int]:
    assert mask.dtype == np.bool_
    return np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(
    ("rule", "rows"),
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
        pytest.param(Requirement("unheard.of/key", "NotIn", ("a",)), [0, 1, 2, 3], id="a key no node has"),
        pytest.param(Requirement("unheard.of/key", "Gt", ("1",)), [], id="a number no node has"),
    ],
)
def test_a_requirement_is_met_by_these_nodes(rule: Requirement, rows: list[int]) -> None:
    assert chosen(requirements_mask(everyone(), (rule,))) == rows
    assert chosen(requirements_mask(some([3, 2, 1, 0]), (rule,))) == sorted(3 - row for row in rows)
    for row in range(4):
        assert chosen(requirements_mask(some([row]), (rule,))) == ([0] if row in rows else [])


def test_no_requirements_are_met_by_all() -> None:
    assert chosen(requirements_mask(everyone(), ())) == [0, 1, 2, 3]


def test_a_mask_is_the_caller_s_to_change() -> None:
    view = everyone()
    rule = Requirement("zone", "Exists")
    requirements_mask(view, (rule,))[:] = False
    assert chosen(requirements_mask(view, (rule,))) == [0, 1, 2]


@pytest.mark.parametrize(
    ("term", "rows"),
    [
        pytest.param(NodeTerm(fields=(Requirement("metadata.name", "In", ("n2",)),)), [2], id="by name"),
        pytest.param(
            NodeTerm(fields=(Requirement("metadata.name", "NotIn", ("n2",)),)), [0, 1, 3], id="all but a name"
        ),
        pytest.param(NodeTerm(fields=(Requirement("metadata.name", "In", ("gone",)),)), [], id="a name nobody has"),
        pytest.param(
            NodeTerm(fields=(Requirement("spec.x", "NotIn", ("y",)),)), [0, 1, 2, 3], id="a field taken as empty"
        ),
        pytest.param(
            NodeTerm((Requirement("zone", "In", ("a",)),), (Requirement("metadata.name", "NotIn", ("n0",)),)),
            [2],
            id="labels and name",
        ),
        pytest.param(NodeTerm((Requirement("zone", "Exists"),), errors=("bad",)), [], id="a faulty term"),
    ],
)
def test_a_term_is_met_by_these_nodes(term: NodeTerm, rows: list[int]) -> None:
    assert chosen(term_mask(everyone(), term)) == rows
    assert chosen(term_mask(some([3, 1]), term)) == [place for place, row in enumerate([3, 1]) if row in rows]


def test_any_term_of_a_selector_will_do() -> None:
    terms = NodeTerms((NodeTerm((Requirement("zone", "In", ("b",)),)), NodeTerm((Requirement("n", "Gt", ("1",)),))))
    assert chosen(terms_mask(everyone(), terms)) == [0, 1]
    assert chosen(terms_mask(everyone(), NodeTerms())) == []


def test_a_pod_s_selector_and_required_terms_must_both_hold() -> None:
    terms = [{"matchExpressions": [{"key": "n", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    view = everyone()
    both = a_pod(spec={"nodeSelector": {"zone": "a"}, "affinity": {"nodeAffinity": required}})
    assert chosen(required_affinity_mask(view, view.snapshot.query(both))) == [0]
    assert chosen(required_affinity_mask(view, view.snapshot.query(a_pod()))) == [0, 1, 2, 3]


def test_names_are_found_in_any_view() -> None:
    assert chosen(named_mask(everyone(), ("n3", "gone", "n1"))) == [1, 3]
    assert chosen(named_mask(some([3, 0]), ("n3", "n1"))) == [0]


def test_hard_taints_are_untolerated_unless_told_otherwise() -> None:
    assert chosen(untolerated_mask(everyone(), ())) == [1, 3]
    assert chosen(untolerated_mask(everyone(), (), {"PreferNoSchedule"})) == [2, 3]
    tolerant = (Toleration(key="a", operator="Exists", effect="NoExecute"),)
    assert chosen(untolerated_mask(everyone(), tolerant)) == [1]
    assert chosen(untolerated_mask(some([3, 1]), tolerant)) == [1]


def test_each_distinct_list_of_taints_is_judged_once() -> None:
    nodes = [a_node(f"n{index}", taints=[HARD] if index % 2 else []) for index in range(10)]
    asked: list[int] = []

    def judge(taints: tuple[object, ...]) -> int:
        asked.append(len(taints))
        return 5 * len(taints)

    assert by_taint_set(a_cluster(*nodes).snapshot().view(), judge).tolist() == [0, 5] * 5
    assert sorted(asked) == [0, 1]
