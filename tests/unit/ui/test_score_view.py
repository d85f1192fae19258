"""Scores as stacked bars, from the values of an explanation."""

from typing import Any

from extender.ui.score_view import Gain, Segment, make_score_view


def make_score(**weighted: int) -> dict[str, Any]:
    plugins = {name: {"raw": 7, "normalized": score, "weighted": score} for name, score in weighted.items()}
    return {"total": sum(weighted.values()), "plugins": plugins}


def make_values(scores: dict[str, Any], best: list[str], assigned: str = "") -> dict[str, Any]:
    return {"scores": scores, "best": best, "assigned": {"node": assigned} if assigned else None}


def test_nodes_are_ordered_by_total_and_bars_are_relative_to_the_highest() -> None:
    values = make_values({"a": make_score(Fit=30, Spread=20), "b": make_score(Fit=60, Spread=40)}, ["b"])
    view = make_score_view(values, show_all=False)
    assert view is not None
    assert [(node.name, node.total, node.is_best) for node in view.nodes] == [("b", 100, True), ("a", 50, False)]
    assert view.nodes[1].segments == (
        Segment("Fit", 0, 7, 30, 30, 0.0, 300.0),
        Segment("Spread", 1, 7, 20, 20, 300.0, 200.0),
    )


def test_the_plugins_that_decided_are_the_differences_to_the_next_node() -> None:
    scores = {
        "a": make_score(Fit=60, Spread=40, Taint=9),
        "b": make_score(Fit=60, Spread=40, Taint=9),
        "c": make_score(Fit=70, Spread=10, Taint=9),
    }
    view = make_score_view(make_values(scores, ["a", "b"]), show_all=False)
    assert view is not None
    assert (view.best, view.next_node, view.margin) == (("a", "b"), "c", 20)
    assert view.gains == (Gain("Spread", 30), Gain("Fit", -10))


def test_equal_totals_have_no_next_node() -> None:
    view = make_score_view(make_values({"a": make_score(Fit=1), "b": make_score(Fit=1)}, ["a", "b"]), show_all=False)
    assert view is not None
    assert (view.next_node, view.margin, view.gains) == ("", 0, ())


def test_ten_nodes_and_the_pod_s_own_node_are_shown_until_all_are_requested() -> None:
    scores = {f"n{number:02}": make_score(Fit=50 - number) for number in range(15)}
    values = make_values(scores, ["n00"], assigned="n13")
    view, complete_view = make_score_view(values, show_all=False), make_score_view(values, show_all=True)
    assert view is not None
    assert complete_view is not None
    assert [node.name for node in view.nodes] == [*(f"n{number:02}" for number in range(10)), "n13"]
    assert [node.name for node in view.nodes if node.is_assigned] == ["n13"]
    assert (view.feasible_count, len(complete_view.nodes)) == (15, 15)


def test_at_most_500_nodes_are_shown() -> None:
    scores = {f"n{number:03}": make_score(Fit=1000 - number) for number in range(600)}
    view = make_score_view(make_values(scores, ["n000"], assigned="n599"), show_all=True)
    assert view is not None
    assert (len(view.nodes), view.feasible_count) == (501, 600)
    assert (view.nodes[499].name, view.nodes[500].name) == ("n499", "n599")


def test_a_negative_score_and_a_total_of_0_have_bars_without_width() -> None:
    view = make_score_view(make_values({"a": make_score(Fit=-5, Spread=5)}, ["a"]), show_all=False)
    assert view is not None
    assert [(part.start, part.width) for part in view.nodes[0].segments] == [(0.0, 0.0), (0.0, 5000.0)]


def test_without_scores_there_is_no_view() -> None:
    assert make_score_view(make_values({}, []), show_all=True) is None
