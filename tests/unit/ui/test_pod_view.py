"""The contents of the page of a pod, for pods of the demo's recorded cluster."""

from collections.abc import Sequence

from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from extender.ui.pod_view import PodView, make_pod_view
from extender.ui.recorded_source import RecordedSource


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


def test_a_row_names_twelve_nodes_until_it_is_unfolded() -> None:
    source = make_source_of_equal_nodes(30)
    folded = make_view(source, "default/large")
    assert (folded.rows[0].count, len(folded.rows[0].names)) == (30, 12)
    assert len(make_view(source, "default/large", "0").rows[0].names) == 30
    assert len(make_view(source, "default/large", "1").rows[0].names) == 12
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
