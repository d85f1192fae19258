"""The contents of the page of a pod, for pods of the demo's recorded cluster."""

from collections.abc import Sequence
from typing import Any

from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from extender.ui.page_source import RecordedSource
from extender.ui.pod_view import Gain, PodView, Segment, make_pod_view, make_score_view


def make_view(source: RecordedSource, key: str, unfold: str = "") -> PodView:
    pod, report = source.explain(key)
    return make_pod_view(report, pod, unfold=unfold)


def test_a_pod_that_fits_nowhere_waits_and_has_near_misses(demo_source: RecordedSource) -> None:
    view = make_view(demo_source, "shop/frontend-5d8c-k7wzd")
    assert view.state == "waits"
    assert view.headline == (
        "fits on none of 12 nodes: 6 nodes would break its topology spread, 3 nodes have taints that it does not"
        " tolerate, 2 nodes have too little cpu, 1 node is cordoned"
    )
    assert view.near_misses[0].node == "general-c1"
    assert view.near_misses[0].lines == ("Insufficient cpu: wants 500m, but only 400m are free (100m short)",)
    assert view.scores is None


def test_nodes_with_equal_results_are_one_row(demo_source: RecordedSource) -> None:
    view = make_view(demo_source, "shop/frontend-5d8c-k7wzd")
    assert view.plugins == ("PodTopologySpread", "NodeResourcesFit", "NodeUnschedulable", "TaintToleration")
    rows = [(row.count, row.names) for row in view.rows]
    assert rows[0] == (6, ("general-a1", "general-a2", "general-a3", "general-b1", "general-b2", "general-b3"))
    assert rows[1] == (2, ("general-c1", "general-c2"))
    assert sum(count for count, _ in rows) == 12
    cells = {cell.plugin: (cell.code, cell.reasons, cell.is_first) for cell in view.rows[1].cells}
    assert cells["NodeResourcesFit"] == ("Unschedulable", ("Insufficient cpu",), True)
    assert cells["PodTopologySpread"] == ("", (), False)


def test_the_first_plugin_that_rejects_a_node_is_marked(demo_source: RecordedSource) -> None:
    view = make_view(demo_source, "shop/frontend-5d8c-k7wzd")
    (cordoned,) = (row for row in view.rows if row.names == ("general-c3",))
    assert [(cell.plugin, cell.is_first) for cell in cordoned.cells if cell.code] == [
        ("NodeUnschedulable", True),
        ("TaintToleration", False),
    ]


def test_a_pod_that_fits_has_scores_and_the_feasible_nodes_first(demo_source: RecordedSource) -> None:
    view = make_view(demo_source, "shop/api-7f4b-g3ypl")
    assert (view.state, view.headline) == ("fits", "fits on 6 of 12 nodes; it only has to be scheduled")
    assert view.rows[0].is_feasible
    assert view.rows[0].count == 6
    assert view.scores is not None
    assert (view.scores.best, view.scores.margin) == (("general-a3",), 11)
    assert view.near_misses == ()


def test_a_gated_pod_has_only_its_gates(demo_source: RecordedSource) -> None:
    view = make_view(demo_source, "batch/import")
    assert (view.state, view.headline) == ("gated", "is not enqueued, because of SchedulingGates")
    assert (view.rows, view.scores) == ((), None)


def test_a_placed_pod_is_compared_with_the_nodes_where_it_could_be(demo_source: RecordedSource) -> None:
    view = make_view(demo_source, "shop/api-7f4b-c6jd2")
    assert view.state == "placed"
    assert view.headline.startswith("is on node general-a1; ")
    assert view.scores is not None
    assert [node.name for node in view.scores.nodes if node.is_assigned] == ["general-a1"]


def test_a_row_names_six_nodes_until_it_is_unfolded() -> None:
    source = make_source_of_equal_nodes(30)
    folded = make_view(source, "default/large")
    assert (folded.rows[0].count, len(folded.rows[0].names)) == (30, 6)
    assert len(make_view(source, "default/large", "0").rows[0].names) == 30
    assert len(make_view(source, "default/large", "1").rows[0].names) == 6
    assert len(make_view(source, "default/large", "all").rows[0].names) == 30


def test_the_page_says_when_only_the_nearest_nodes_are_compared() -> None:
    assert make_view(make_source_of_equal_nodes(40), "default/large").examined_count == 0
    assert make_view(make_source_of_equal_nodes(41), "default/large").examined_count == 40


def make_source_of_equal_nodes(count: int, spec: str = "", full_nodes: Sequence[str] = ()) -> RecordedSource:
    """A source with *count* nodes of one CPU, a pod of one CPU on each of *full_nodes*, and a pending pod.

    The pending pod requests two CPUs, or one if *spec* has its other fields.
    """
    nodes = "".join(
        f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: n{number:02}}}\n"
        "status: {allocatable: {cpu: 1, pods: 9}}\n"
        for number in range(count)
    )
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: large, namespace: default}\n"
    cpu = 1 if spec else 2
    pod += f"spec: {{{spec}containers: [{{name: a, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\n"
    for name in full_nodes:
        pod += f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: on-{name}, namespace: default}}\n"
        pod += f"spec: {{nodeName: {name}, containers: [{{name: a, resources: {{requests: {{cpu: 1}}}}}}]}}\n"
    setup = wiring.build_setup()
    recording = parse_recording((nodes + pod).encode(), "nodes.yaml")
    return RecordedSource(recording, setup.profiles, wiring.make_runtime())


def test_twenty_candidates_of_preemption_are_shown_the_nominated_node_first() -> None:
    source = make_source_of_equal_nodes(30, "priority: 9, ", [f"n{number:02}" for number in range(30)])
    view = make_view(source, "default/large")
    assert len(view.values["preemption"]["candidates"]) == 30
    assert (len(view.candidates), next(iter(view.candidates))) == (20, view.values["preemption"]["nominatedNode"])
    unfolded = make_view(source, "default/large", "all")
    assert (len(unfolded.candidates), unfolded.is_unfolded) == (30, True)


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
