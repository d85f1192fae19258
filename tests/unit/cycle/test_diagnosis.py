"""Feasible nodes, the first rejection of the others, and the message that counts the reasons."""

from dataclasses import replace
from typing import Any

import pytest

from extender.cycle.diagnosis import Diagnosis, find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.extension_points import PreFilterResult
from extender.framework.status import Code, Status
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import FakePreFilter, RaisingPlugin, RejectingFilter, make_profile

UNSCHEDULABLE, UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNRESOLVABLE


def diagnose(
    *plugins: Any, nodes: tuple[str, ...] = ("a", "b", "c"), reasons: bool = True
) -> tuple[Diagnosis, list[str]]:
    """Run *plugins* on these nodes; return the diagnosis and the names of the feasible nodes."""
    snapshot = make_cluster(*map(make_node, nodes)).snapshot()
    diagnosis = find_nodes_that_pass_filters(
        snapshot.make_pod_info(make_pod()), snapshot, make_profile(*plugins), PluginRuntime(), with_rejections=reasons
    )
    return diagnosis, [name for name, fits in zip(snapshot.names, diagnosis.feasible, strict=True) if fits]


def test_without_filters_every_node_is_feasible() -> None:
    diagnosis, names = diagnose()

    assert diagnosis.has_feasible_node
    assert names == ["a", "b", "c"]


def test_the_first_plugin_that_rejects_a_node_gives_its_reason() -> None:
    first, second = RejectingFilter("First", "a"), RejectingFilter("Second", "a", "b")

    diagnosis, names = diagnose(first, second)

    assert names == ["c"]
    assert diagnosis.count_reasons() == {"refused by First": 1, "refused by Second": 1}
    assert diagnosis.rejectors == {"First", "Second"}


def test_nodes_that_do_not_exist_take_the_place_of_nodes_that_pre_filter_excluded() -> None:
    """Source: pkg/scheduler/framework/types.go, FitError.Error (1.36)."""
    diagnosis, _ = diagnose(FakePreFilter("P", PreFilterResult(node_names=frozenset({"a"}))), RejectingFilter("F", "a"))
    excluded = "node(s) didn't satisfy plugin(s) [P]"
    assert diagnosis.count_reasons() == {"refused by F": 1, excluded: 2}
    assert replace(diagnosis, unknown_nodes={"x": "gone"}).count_reasons() == {
        "gone": 1,
        "refused by F": 1,
        excluded: 1,
    }
    assert replace(diagnosis, unknown_nodes=dict.fromkeys("xyz", "gone")).count_reasons() == {
        "gone": 3,
        "refused by F": 1,
    }


def test_no_further_plugin_runs_once_no_node_is_left() -> None:
    last = RejectingFilter("Last")

    diagnose(RejectingFilter("First", "a", "b", "c"), last)

    assert last.calls == []


def test_a_plugin_runs_on_the_remaining_nodes_if_these_are_few() -> None:
    last = RejectingFilter("Last")

    diagnose(RejectingFilter("First", "a", "b"), last)

    assert last.calls == [["c"]]


def test_reasons_are_counted_and_sorted_as_text() -> None:
    """Sorted as text, "10 x" comes before "2 y".

    Source: pkg/scheduler/framework/types.go, FitError.Error (1.36).
    """
    names = tuple(f"n{i}" for i in range(12))

    diagnosis, _ = diagnose(
        RejectingFilter("Few", *names[:2], text="y"), RejectingFilter("Many", *names, text="x"), nodes=names
    )

    assert diagnosis.format_message() == "0/12 nodes are available: 10 x, 2 y."


def test_the_message_of_post_filter_comes_last() -> None:
    diagnosis, _ = diagnose(RejectingFilter("All", "a", "b", "c", text="no"))

    assert diagnosis.format_message("preemption: no victims") == "0/3 nodes are available: 3 no. preemption: no victims"


def test_a_cluster_without_nodes_has_its_own_message() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.schedulingAlgorithm (1.36)."""
    diagnosis, _ = diagnose(nodes=())

    assert not diagnosis.has_feasible_node
    assert diagnosis.format_message() == "no nodes available to schedule pods"


@pytest.mark.parametrize("code", [UNSCHEDULABLE, UNRESOLVABLE])
def test_a_rejection_of_pre_filter_is_reported_without_a_count(code: Code) -> None:
    diagnosis, names = diagnose(
        FakePreFilter("Early", PreFilterResult(Status(code, ("claim missing",)))), RejectingFilter("Later", "a")
    )

    assert names == []
    assert diagnosis.format_message() == "0/3 nodes are available: claim missing."
    assert diagnosis.pre_filter_run.status == Status(code, ("claim missing",), "Early")
    assert diagnosis.rejectors == {"Early"}


def test_the_last_unschedulable_pre_filter_is_reported() -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreFilterPlugins (1.36)."""
    early, late = (FakePreFilter(name, PreFilterResult(Status(UNSCHEDULABLE, (name,)))) for name in ("Early", "Late"))

    assert diagnose(early, late)[0].pre_filter_run.status == Status(UNSCHEDULABLE, ("Late",), "Late")


def test_an_unresolvable_pre_filter_ends_the_run() -> None:
    early = FakePreFilter("Early", PreFilterResult(Status(UNRESOLVABLE, ("Early",))))
    late = FakePreFilter("Late", PreFilterResult(Status(UNSCHEDULABLE, ("Late",))))

    assert diagnose(early, late)[0].pre_filter_run.status == Status(UNRESOLVABLE, ("Early",), "Early")


def test_node_names_are_unknown_after_a_plugin_ended_the_run() -> None:
    diagnosis, _ = diagnose(
        FakePreFilter("A", PreFilterResult(node_names=frozenset(("a",)))),
        FakePreFilter("B", PreFilterResult(Status(Code.UNRESOLVABLE, ("no",)))),
    )
    assert diagnosis.pre_filter_run.node_names is None


def test_plugins_that_leave_some_nodes_are_no_rejectors_after_a_plugin_ended_the_run() -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreFilterPlugins (1.36)."""
    diagnosis, _ = diagnose(
        FakePreFilter("A", PreFilterResult(node_names=frozenset(("a",)))),
        FakePreFilter("B", PreFilterResult(Status(Code.UNRESOLVABLE, ("no",)))),
    )
    assert diagnosis.rejectors == {"B"}


def test_filter_of_a_skipped_plugin_does_not_run() -> None:
    skipping = FakePreFilter("Skipping", PreFilterResult(skip=True))

    diagnose(skipping)

    assert skipping.filter_calls == 0


def test_nodes_that_pre_filter_excludes_are_counted_with_the_plugin() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36)."""
    diagnosis, names = diagnose(
        FakePreFilter("Picky", PreFilterResult(node_names=frozenset({"b", "unknown"}))),
        RejectingFilter("Rest", "b", text="no"),
    )

    assert names == []
    assert diagnosis.format_message() == "0/3 nodes are available: 1 no, 2 node(s) didn't satisfy plugin(s) [Picky]."


@pytest.mark.parametrize(
    ("sets", "text"),
    [
        ([()], "node(s) didn't satisfy plugin P0"),
        ([("a",), ("b",)], "node(s) didn't satisfy plugin(s) [P0 P1] simultaneously"),
    ],
    ids=["one plugin leaves no node", "two plugins have no node in common"],
)
def test_plugins_that_exclude_every_node_are_named(sets: list[tuple[str, ...]], text: str) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreFilterPlugins (1.36)."""
    plugins = [FakePreFilter(f"P{i}", PreFilterResult(node_names=frozenset(names))) for i, names in enumerate(sets)]

    assert diagnose(*plugins)[0].pre_filter_run.status == Status(UNRESOLVABLE, (text,), "")


def test_an_exception_ends_the_attempt_and_names_the_plugin() -> None:
    diagnosis, _ = diagnose(RejectingFilter("First", "a"), RaisingPlugin())

    assert not diagnosis.has_feasible_node
    assert diagnosis.error == Status(
        Code.ERROR, ('running PreFilter plugin "Broken": ValueError: out of order',), "Broken"
    )


def test_the_error_on_the_first_node_by_name_is_reported() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatPassFilters (1.36)."""
    broken = RejectingFilter("Odd", "b", "c", text="broken", code=Code.ERROR)

    diagnosis, _ = diagnose(RejectingFilter("First", "b"), broken)

    assert diagnosis.format_message() == 'running "Odd" filter plugin: broken'
    assert diagnosis.error is not None
    assert diagnosis.error.plugin == "Odd"


def test_an_error_on_an_already_rejected_node_is_ignored() -> None:
    diagnosis, names = diagnose(
        RejectingFilter("First", "b"), RejectingFilter("Odd", "b", text="broken", code=Code.ERROR)
    )

    assert diagnosis.error is None
    assert names == ["a", "c"]


def test_rejections_are_omitted_unless_requested_if_a_node_is_feasible() -> None:
    diagnosis, names = diagnose(RejectingFilter("First", "a"), reasons=False)

    assert names == ["b", "c"]
    assert diagnosis.rejections == ()
