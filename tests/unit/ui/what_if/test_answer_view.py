"""The contents of the answer: tables of pods with the problems first, and totals."""

from typing import Any

from extender.app import wiring
from extender.planning.scenario import AddedNodes, Scale, Scenario
from extender.planning.what_if import WhatIfRunner
from extender.ui.scheduler_pages import LiveCell
from extender.ui.what_if.answer_view import MAX_ROWS, AnswerView, make_answer_view
from tests.unit.planning.clusters import SETUP, budget, make_cache, node, pod

WEB = {"app": "web"}


def make_view(*objects: dict[str, Any], **changes: Any) -> AnswerView:
    cache = make_cache(*objects)
    outcome = WhatIfRunner(cache, SETUP.profiles, wiring.make_runtime()).run(Scenario(**changes))
    pods = {pod.key for pod in cache.assigned_pods.values()} | {pod.key for pod in cache.pending_pods.values()}
    return make_answer_view(outcome, pods, cache.snapshot().names)


def test_problems_come_before_moves() -> None:
    view = make_view(
        node("n1", "9"),
        node("n2", "2"),
        pod("a", "2", on="n1"),
        pod("b", "1", on="n1"),
        pod("single", "1", on="n1", owner=""),
        pod("old", "20"),
        drain=("n1",),
    )
    assert [table.title for table in view.tables] == [
        "Left without a node (1)",
        "Lost, because no controller creates a new pod (1)",
        "Moves (1)",
        "Waiting before and after (1)",
    ]
    assert [table.is_folded for table in view.tables] == [False, False, False, True]
    assert view.tables[0].rows == (
        (
            LiveCell("default/b", "pods"),
            LiveCell("n1", "nodes"),
            LiveCell("Insufficient cpu, node(s) were unschedulable"),
        ),
    )
    assert view.tables[2].rows == ((LiveCell("default/a", "pods"), LiveCell("n1", "nodes"), LiveCell("n2", "nodes")),)
    assert view.summary == "1 pod moves, 1 is left without a node, 1 is lost."
    assert not view.is_good


def test_totals_that_differ_are_marked() -> None:
    view = make_view(node("n1", "4"), pod("a", "1", on="n1"), add=(AddedNodes(1, "n1"),))
    rows = {row.name: (row.before, row.after, row.differs) for row in view.totals}
    assert rows["nodes"] == ("1", "2", True)
    assert rows["waiting pods"] == ("0", "0", False)
    assert rows["cpu"] == ("1 of 4 (25%)", "1 of 8 (12%)", True)
    assert list(rows)[2:5] == ["cpu", "memory", "pods"]
    assert view.is_good
    assert view.tables == ()


def test_a_pod_that_the_scenario_adds_is_no_link() -> None:
    view = make_view(
        node("n1", "4"), pod("web-0", on="n1", owner="StatefulSet"), scale=(Scale("statefulset", "default", "web", 2),)
    )
    (table,) = view.tables
    assert table.rows == ((LiveCell("default/web-1"), LiveCell("n1", "nodes")),)


def test_a_pod_that_would_evict_others_names_them() -> None:
    view = make_view(
        node("n1", "1"), pod("low", "1", on="n1"), pod("high", "1", priority=10), cordon=(), pods=(), preempt=False
    )
    (table,) = view.tables
    assert table.rows[0][1].text == "Insufficient cpu; would evict default/low on n1, with preemption allowed"


def test_blocked_pods_name_their_budget() -> None:
    view = make_view(node("n1"), node("n2"), pod("a", on="n1", labels=WEB), budget("web", WEB, 0), drain=("n1",))
    assert [table.title for table in view.tables] == ["Not evicted, because a budget does not allow it (1)"]
    assert view.tables[0].rows[0][2] == LiveCell("default/web")


def test_a_long_table_says_how_many_pods_it_leaves_out() -> None:
    pods = [pod(f"p{number:03}", "10m", on="n1") for number in range(105)]
    view = make_view(node("n1", pods=200), node("n2", pods=200), *pods, drain=("n1",))
    assert (view.tables[0].title, len(view.tables[0].rows), view.tables[0].omitted) == ("Moves (105)", MAX_ROWS, 5)
