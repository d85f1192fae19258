"""The report of a comparison: text, and plain values."""

from extender.answers.simulation import DecisionTimes
from extender.planning.compare import Comparison, compare
from extender.planning.compare_report import format_comparison, make_comparison_values
from tests.unit.planning.test_compare import MOST_ALLOCATED, configured_cluster, make_small_cluster


def make_comparison() -> Comparison:
    comparison = compare(
        configured_cluster(make_small_cluster()), configured_cluster(make_small_cluster(), MOST_ALLOCATED)
    )
    comparison.first.milliseconds, comparison.second.milliseconds = DecisionTimes(2.0, 2.0), DecisionTimes(4.0, 4.0)
    return comparison


def test_the_text_has_the_differences_first() -> None:
    lines = format_comparison(make_comparison(), ("DEFAULT", "most.yaml")).splitlines()
    assert lines[:5] == [
        "1 of 2 pods goes elsewhere.",
        "",
        "  POD        DEFAULT  most.yaml",
        "  default/b  empty    full",
        "",
    ]
    rows = [line.split() for line in lines]
    assert ["waiting", "pods", "1", "1"] in rows
    assert ["nodes", "with", "pods", "2", "1"] in rows
    assert ["cpu", "3,", "38%,", "sd", "12.5%", "3,", "38%,", "sd", "37.5%"] in rows
    assert max(map(len, lines[:-1])) <= 80
    assert ["time", "per", "pod,", "median", "2.00", "ms", "4.00", "ms"] in rows


def test_the_text_of_equal_placements_says_so() -> None:
    comparison = compare(configured_cluster(make_small_cluster()), configured_cluster(make_small_cluster()))
    assert format_comparison(comparison, ("A", "B")).startswith("2 pods, no difference.\n\nTotals\n")


def test_the_values_have_both_outcomes() -> None:
    values = make_comparison_values(make_comparison(), 7)
    assert (values["seed"], values["pods"]) == (7, 2)
    assert values["different"] == [
        {
            "pod": "default/b",
            "first": {"node": "empty", "message": None, "reasons": [], "reasonCodes": []},
            "second": {"node": "full", "message": None, "reasons": [], "reasonCodes": []},
        }
    ]
    second = values["second"]
    assert (second["placed"], second["waiting"], second["evicted"], second["usedNodes"]) == (1, 1, [], 1)
    assert second["resources"]["cpu"] == {"requested": 3000, "allocatable": 8000, "deviation": 0.375}
    assert second["milliseconds"] == {"p50": 4.0, "p99": 4.0}
