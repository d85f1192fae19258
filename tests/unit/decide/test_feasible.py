"""Who can take a pod, who refuses first, and the message that counts the reasons."""

from typing import Any

import pytest

from extender.decide.engine import Engine
from extender.decide.feasible import Feasibility, feasible
from extender.framework.points import PreFiltered
from extender.framework.verdict import Code, Status
from tests.build import a_cluster, a_node, a_pod
from tests.unit.decide.stand_ins import Before, Broken, Refusing, a_profile

UNSCHEDULABLE, UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNRESOLVABLE


def asked(
    *plugins: Any, nodes: tuple[str, ...] = ("a", "b", "c"), reasons: bool = True
) -> tuple[Feasibility, list[str]]:
    """What comes of asking *plugins* about these nodes, and the names of the feasible ones."""
    cluster = a_cluster(*map(a_node, nodes)).snapshot()
    found = feasible(cluster.query(a_pod()), cluster, a_profile(*plugins), Engine(), reasons=reasons)
    return found, [name for name, fits in zip(cluster.names, found.feasible, strict=True) if fits]


def test_without_filters_every_node_is_feasible() -> None:
    found, names = asked()

    assert found.any
    assert names == ["a", "b", "c"]


def test_a_node_is_explained_by_the_first_plugin_that_refuses_it() -> None:
    first, second = Refusing("First", "a"), Refusing("Second", "a", "b")

    found, names = asked(first, second)

    assert names == ["c"]
    assert found.counted() == {"refused by First": 1, "refused by Second": 1}
    assert found.rejectors == {"First", "Second"}


def test_no_further_plugin_is_asked_once_no_node_is_left() -> None:
    last = Refusing("Last")

    asked(Refusing("First", "a", "b", "c"), last)

    assert last.asked == []


def test_a_plugin_is_asked_about_the_nodes_that_are_left_if_those_are_few() -> None:
    last = Refusing("Last")

    asked(Refusing("First", "a", "b"), last)

    assert last.asked == [["c"]]


def test_reasons_are_counted_and_sorted_as_text() -> None:
    """So "10 x" stands before "2 y" (A046)."""
    names = tuple(f"n{i}" for i in range(12))

    found, _ = asked(Refusing("Few", *names[:2], text="y"), Refusing("Many", *names, text="x"), nodes=names)

    assert found.message() == "0/12 nodes are available: 10 x, 2 y."


def test_what_post_filter_says_comes_last() -> None:
    found, _ = asked(Refusing("All", "a", "b", "c", text="no"))

    assert found.message("preemption: no victims") == "0/3 nodes are available: 3 no. preemption: no victims"


def test_without_nodes_the_message_says_so() -> None:
    """Source: A018."""
    found, _ = asked(nodes=())

    assert not found.any
    assert found.message() == "no nodes available to schedule pods"


@pytest.mark.parametrize("code", [UNSCHEDULABLE, UNRESOLVABLE])
def test_a_pre_filter_that_turns_the_pod_away_explains_it_without_a_count(code: Code) -> None:
    found, names = asked(Before("Early", PreFiltered(Status(code, ("claim missing",)))), Refusing("Later", "a"))

    assert names == []
    assert found.message() == "0/3 nodes are available: claim missing."
    assert found.before.status == Status(code, ("claim missing",), "Early")
    assert found.rejectors == {"Early"}


def test_the_last_unschedulable_pre_filter_is_the_one_that_is_told() -> None:
    """Source: A056."""
    early, late = (Before(name, PreFiltered(Status(UNSCHEDULABLE, (name,)))) for name in ("Early", "Late"))

    assert asked(early, late)[0].before.status == Status(UNSCHEDULABLE, ("Late",), "Late")


def test_an_unresolvable_pre_filter_ends_the_round() -> None:
    early = Before("Early", PreFiltered(Status(UNRESOLVABLE, ("Early",))))
    late = Before("Late", PreFiltered(Status(UNSCHEDULABLE, ("Late",))))

    assert asked(early, late)[0].before.status == Status(UNRESOLVABLE, ("Early",), "Early")


def test_which_nodes_were_left_is_not_told_once_a_plugin_ended_the_round() -> None:
    found, _ = asked(
        Before("A", PreFiltered(nodes=frozenset(("a",)))), Before("B", PreFiltered(Status(Code.UNRESOLVABLE, ("no",))))
    )
    assert found.before.nodes is None


def test_a_skipped_plugin_is_not_asked_to_filter() -> None:
    skipping = Before("Skipping", PreFiltered(skip=True))

    asked(skipping)

    assert skipping.asked == 0


def test_nodes_that_pre_filter_leaves_out_are_told_with_the_plugin() -> None:
    """Source: A059."""
    found, names = asked(
        Before("Picky", PreFiltered(nodes=frozenset({"b", "unknown"}))), Refusing("Rest", "b", text="no")
    )

    assert names == []
    assert found.message() == "0/3 nodes are available: 1 no, 2 node(s) didn't satisfy plugin(s) [Picky]."


@pytest.mark.parametrize(
    ("sets", "text"),
    [
        ([()], "node(s) didn't satisfy plugin P0"),
        ([("a",), ("b",)], "node(s) didn't satisfy plugin(s) [P0 P1] simultaneously"),
    ],
    ids=["one plugin leaves no node", "two plugins have no node in common"],
)
def test_plugins_that_leave_no_node_over(sets: list[tuple[str, ...]], text: str) -> None:
    """Source: A057."""
    plugins = [Before(f"P{i}", PreFiltered(nodes=frozenset(names))) for i, names in enumerate(sets)]

    assert asked(*plugins)[0].before.status == Status(UNRESOLVABLE, (text,), "")


def test_a_filter_that_raises_ends_the_attempt_with_its_name() -> None:
    found, _ = asked(Refusing("First", "a"), Broken())

    assert not found.any
    assert found.error == Status(Code.ERROR, ('running PreFilter plugin "Broken": ValueError: out of order',), "Broken")


def test_an_error_on_the_first_node_by_name_is_the_one_that_is_told() -> None:
    """Source: A092."""
    broken = Refusing("Odd", "b", "c", text="broken", code=Code.ERROR)

    found, _ = asked(Refusing("First", "b"), broken)

    assert found.message() == 'running "Odd" filter plugin: broken'
    assert found.error is not None
    assert found.error.plugin == "Odd"


def test_an_error_on_a_node_that_is_refused_anyway_does_no_harm() -> None:
    found, names = asked(Refusing("First", "b"), Refusing("Odd", "b", text="broken", code=Code.ERROR))

    assert found.error is None
    assert names == ["a", "c"]


def test_reasons_are_left_out_if_nobody_asks_and_a_node_is_feasible() -> None:
    found, names = asked(Refusing("First", "a"), reasons=False)

    assert names == ["b", "c"]
    assert found.refusals == ()
