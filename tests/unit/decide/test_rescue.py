"""What PostFilter plugins come to together, and which nodes they may hope for."""

from typing import Any

import pytest

from extender.decide.engine import Engine
from extender.decide.feasible import Feasibility, feasible
from extender.decide.rescue import Attempt, Rescue, rescue
from extender.framework.points import PreFiltered
from extender.framework.verdict import Code, Status
from tests.build import a_cluster, a_node, a_pod
from tests.unit.decide.stand_ins import Before, Broken, Helping, Refusing, a_profile

UNSCHEDULABLE, UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNRESOLVABLE


def _failed(*plugins: Any) -> tuple[Any, Any, Feasibility, Any]:
    cluster, profile = a_cluster(*map(a_node, "abc")).snapshot(), a_profile(*plugins)
    query = cluster.query(a_pod())
    return query, cluster, feasible(query, cluster, profile, Engine()), profile


def _rescued(*plugins: Any) -> Rescue:
    query, cluster, failed, profile = _failed(Refusing("Refusing", "a", "b", "c"), *plugins)
    return rescue(query, cluster, Attempt(failed, profile, Engine()))


def test_the_first_to_succeed_ends_the_round() -> None:
    last = Helping("Last", Code.SUCCESS, nominated="b")

    found = _rescued(Helping("First", UNSCHEDULABLE, "no"), Helping("Second", Code.SUCCESS, nominated="a"), last)

    assert (found.status.code, found.status.plugin, found.nominated) == (Code.SUCCESS, "Second", "a")
    assert list(found.answers) == ["First", "Second"]
    assert last.asked == 0


@pytest.mark.parametrize("code", [UNSCHEDULABLE, Code.PENDING], ids=["unschedulable", "pending"])
def test_those_that_merely_cannot_help_pass_on_and_are_all_told(code: Code) -> None:
    found = _rescued(Helping("First", code, "x", nominated=""), Helping("Second", code, "y", "z"))

    assert found.status == Status(UNSCHEDULABLE, ("x", "y", "z"), "First")
    assert found.nominated == ""


@pytest.mark.parametrize(
    ("code", "nominated"), [(UNRESOLVABLE, "a"), (Code.ERROR, None)], ids=["for good", "with an error"]
)
def test_any_other_answer_ends_the_round_and_stands_alone(code: Code, nominated: str | None) -> None:
    found = _rescued(
        Helping("First", UNSCHEDULABLE, "x"), Helping("Second", code, "y", nominated="a"), Helping("Last", code)
    )

    assert (found.status, found.nominated) == (Status(code, ("y",), "Second"), nominated)


def test_a_plugin_that_raises_ends_the_round_as_an_error() -> None:
    query, cluster, failed, _ = _failed(Refusing("Refusing", "a", "b", "c"))
    raising = a_profile(Helping("First", UNSCHEDULABLE, "x", nominated=""), Broken())

    found = rescue(query, cluster, Attempt(failed, raising, Engine()))

    assert (found.status.code, found.status.plugin, found.nominated) == (Code.ERROR, "Broken", None)
    assert found.answers["Broken"].status.code is Code.ERROR


def test_details_are_kept_by_plugin() -> None:
    assert _rescued(Helping("First", UNSCHEDULABLE), Helping("Second", Code.SUCCESS)).details == {}


# -- which nodes there is hope for


def test_nodes_refused_for_good_by_the_first_to_refuse_them_are_without_hope() -> None:
    *_, failed, _ = _failed(Refusing("First", "a", code=UNRESOLVABLE), Refusing("Second", "a", "b", "c"))

    assert failed.merely_unschedulable().tolist() == [False, True, True]
    assert [failed.code(row) for row in (0, 1, None)] == [UNRESOLVABLE, UNSCHEDULABLE, UNRESOLVABLE]


def test_nodes_that_were_left_out_are_without_hope() -> None:
    *_, failed, _ = _failed(Before("Choosing", PreFiltered(nodes=frozenset("b"))), Refusing("Refusing", "b"))

    assert failed.merely_unschedulable().tolist() == [False, True, False]
    assert failed.code(0) is UNRESOLVABLE


@pytest.mark.parametrize(("code", "hope"), [(UNSCHEDULABLE, True), (UNRESOLVABLE, False)], ids=["now", "for good"])
def test_a_pod_turned_away_before_any_node_shares_its_hope_with_all(code: Code, hope: bool) -> None:
    *_, failed, _ = _failed(Before("Refusing", PreFiltered(Status(code, ("no",)))))

    assert failed.merely_unschedulable().tolist() == [hope] * 3
    assert [failed.code(row) for row in (0, None)] == [code, code]
