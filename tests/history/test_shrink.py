"""A failing input is reduced to the parts that it needs, with a limited number of tries."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.programs import Programs
from tests.history import harness
from tests.history.checker import Violation, find_violations
from tests.history.cluster_state import History
from tests.history.history_builder import HistoryBuilder
from tests.history.shrink import describe_history, shrink, shrink_history
from tests.history.workload import Operation, make_operations


def test_an_input_is_reduced_to_the_items_that_fail_together() -> None:
    assert shrink(range(40), lambda items: {7, 31} <= set(items), 200) == [7, 31]


def test_an_input_that_needs_all_items_stays_as_it_is() -> None:
    assert shrink([1, 2, 3], lambda items: items == [1, 2, 3], 50) == [1, 2, 3]


def test_an_input_that_fails_without_items_becomes_empty() -> None:
    assert shrink([1, 2, 3], lambda _: True, 50) == []


def test_the_number_of_tries_is_limited() -> None:
    tries = []

    def still_fails(items: list[int]) -> bool:
        tries.append(items)
        return 0 in items

    assert shrink(range(8), still_fails, 2) == [0, 1, 2, 3]
    assert tries == [[0, 1, 2, 3], []]


def test_a_history_is_reduced_to_the_objects_of_its_violation() -> None:
    builder = HistoryBuilder()
    for node in ("alpha", "beta", "gamma"):
        builder.node(node)
    for number, node in enumerate(("alpha", "beta", "alpha", "gamma")):
        builder.pod(f"pod-{number}", requests={"cpu": "3"})
        builder.pod(f"pod-{number}", node, requests={"cpu": "3"})
    builder.pod("later")
    history = builder.history()
    violation = find_violations(history)[0]
    assert (violation.rule, violation.pod, violation.revision) == ("allocatable", "default/pod-2", 9)
    shortest = shrink_history(history, violation)
    assert [(change.revision, change.key) for change in shortest.changes] == [
        (1, "alpha"),
        (4, "default/pod-0"),
        (5, "default/pod-0"),
        (8, "default/pod-2"),
        (9, "default/pod-2"),
    ]


def test_the_lines_of_a_history_have_the_fields_that_rules_read() -> None:
    builder = HistoryBuilder()
    builder.node(unschedulable=True)
    builder.pod("web", "alpha", requests={"cpu": "1"}, priority=5)
    builder.delete("Pod", "default/web")
    allocatable = "{'cpu': '4', 'memory': '8Gi', 'pods': '3', 'example.com/gpu': '1'}"
    assert describe_history(builder.history()).splitlines() == [
        f"      1    0.000 s Node alpha unschedulable=True allocatable={allocatable}",
        "      2    0.010 s Pod default/web nodeName=alpha priority=5 phase=Pending requests=[{'cpu': '1'}]",
        "      3    0.020 s Pod default/web deleted",
    ]
    assert describe_history(builder.history(), max_lines=1).splitlines() == [
        "        ...",
        "      3    0.020 s Pod default/web deleted",
    ]


def make_failed_run(operations: Sequence[Operation], *rules: str) -> harness.Run:
    """Make a run that broke *rules*."""
    violations = [Violation(rule, "default/web", "alpha", 1, "") for rule in rules]
    return harness.Run("none", 1, operations, History(()), violations, (), 1, 0.5)


def test_the_workload_of_a_failed_run_is_reduced_to_the_operations_that_break_the_same_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    operations = make_operations(1, 2.0)
    needed = operations[3]

    def run(*_: object, operations: Sequence[Operation], **__: Any) -> harness.Run:
        return make_failed_run(operations, "taint" if needed in operations else "hostPort")

    monkeypatch.setattr(harness, "run", run)
    plane = ControlPlane(Programs({}), tmp_path)
    smallest = harness.shrink_operations(plane, make_failed_run(operations, "taint"), 50, "extender", 2.0)
    assert smallest.operations == [needed]
    assert [violation.rule for violation in smallest.violations] == ["taint"]
