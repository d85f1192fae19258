"""Reasons of failed nodes: groups, appended reasons and counts."""

import numpy as np

from extender.extender_api.failed_nodes import FEASIBLE, FailureReason, NodeReasons

CPU = FailureReason("Insufficient cpu", plugin="NodeResourcesFit")
TAINT = FailureReason("untolerated taint", unresolvable=True, plugin="TaintToleration")


def make_reasons(count: int) -> NodeReasons:
    return NodeReasons(np.zeros(count, dtype=np.int64))


def mask(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.bool_)


def test_without_reasons_all_nodes_are_accepted() -> None:
    assert [(reason, list(nodes)) for reason, nodes in make_reasons(3).group_positions()] == [(FEASIBLE, [0, 1, 2])]


def test_nodes_are_grouped_by_reason_in_the_order_of_the_request() -> None:
    reasons = make_reasons(4)
    reasons.set_reason(mask(0, 1, 0, 1), CPU)
    reasons.set_reason(mask(1, 0, 0, 0), TAINT)
    assert list(reasons.group_positions()) == [(FEASIBLE, [2]), (CPU, [1, 3]), (TAINT, [0])]
    assert reasons.rejection_counts == {
        ("NodeResourcesFit", "Insufficient cpu"): 2,
        ("TaintToleration", "untolerated taint"): 1,
    }


def test_a_reason_without_nodes_is_left_out() -> None:
    reasons = make_reasons(2)
    reasons.set_reason(mask(0, 0), CPU)
    assert (reasons.reasons, reasons.rejection_counts) == ([FEASIBLE], {})


def test_an_appended_reason_keeps_the_first_plugin_and_may_make_the_node_unresolvable() -> None:
    reasons = make_reasons(2)
    reasons.set_reason(mask(1, 1), CPU)
    reasons.append_reason(mask(0, 1), TAINT)
    joined = FailureReason("Insufficient cpu, untolerated taint", unresolvable=True, plugin="NodeResourcesFit")
    assert list(reasons.group_positions()) == [(CPU, [0]), (joined, [1])]


def test_reasons_without_a_plugin_are_not_counted() -> None:
    reasons = make_reasons(1)
    reasons.set_reason(mask(1), FailureReason("unknown"))
    assert reasons.rejection_counts == {}


def test_a_text_of_more_than_1024_characters_is_cut_because_it_is_repeated_for_each_node() -> None:
    reasons = make_reasons(2)
    reasons.set_reason(mask(1, 0), FailureReason("x" * 1024, plugin="P"))
    reasons.set_reason(mask(0, 1), FailureReason("y" * 1025, plugin="P"))
    assert [reason.text for reason in reasons.reasons] == ["", "x" * 1024, "y" * 1021 + "..."]
    assert reasons.rejection_counts == {("P", "x" * 1024): 1, ("P", "y" * 1021 + "..."): 1}
