"""The document of the two maps: the same nodes before and after the changes."""

from extender.ui.what_if.answers import make_maps_document
from tests.build import make_cluster, make_node, make_pod

SIZE = {"cpu": "4", "pods": "10"}


def test_nodes_that_go_and_come_are_absent_on_one_side() -> None:
    before = make_cluster(
        make_node("n1", allocatable=SIZE),
        make_node("n2", allocatable=SIZE),
        make_pod("p", node="n1", requests={"cpu": "1"}),
    )
    after = make_cluster(
        make_node("n2", allocatable=SIZE, unschedulable=True),
        make_node("n3", allocatable={**SIZE, "example.com/gpu": "1"}),
        make_pod("p", node="n2", requests={"cpu": "2"}),
    )
    document = make_maps_document(before.snapshot(), after.snapshot())
    assert document["nodes"] == ["n1", "n2", "n3"]
    assert document["resources"] == ["cpu", "pods", "example.com/gpu"]
    assert document["before"]["use"] == {
        "cpu": [250, 0, -2],
        "pods": [100, 0, -2],
        "example.com/gpu": [-1, -1, -2],
    }
    assert document["after"]["use"] == {"cpu": [-2, 500, 0], "pods": [-2, 100, 0], "example.com/gpu": [-2, -1, 0]}
    assert (document["before"]["pods"], document["after"]["pods"]) == ([1, 0, 0], [0, 1, 0])
    assert document["before"]["unschedulable"] == [False, False, False]
    assert document["after"]["unschedulable"] == [False, True, False]


def test_the_groups_are_those_of_all_nodes() -> None:
    zone = "topology.kubernetes.io/zone"
    before = make_cluster(make_node("n1", labels={zone: "a"}))
    after = make_cluster(make_node("n1", labels={zone: "b"}), make_node("n2", labels={zone: "c"}))
    groups = make_maps_document(before.snapshot(), after.snapshot())["groups"]
    assert groups[zone] == {"values": ["b", "c"], "index": [0, 1]}
