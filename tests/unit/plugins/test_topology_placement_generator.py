"""TopologyPlacementGenerator: one placement for each topology domain."""

import pytest

from extender.cache.cache import Cache
from extender.framework.pod_group_points import Placement, PodGroupInfo
from extender.framework.status import error_status
from extender.plugins.topology_placement_generator import TopologyPlacementGenerator
from tests.build import make_cluster, make_node
from tests.pod_group_builders import make_group_member, make_pod_group

RING = PodGroupInfo("default", "ring")
RACK = "rack"


def make_racks(*members: tuple[str, str], topology: str = RACK) -> Cache:
    """Build two racks, an unlabelled node, and *members* with their nodes."""
    nodes = [
        make_node("a1", labels={RACK: "a"}),
        make_node("b1", labels={RACK: "b"}),
        make_node("a2", labels={RACK: "a"}),
    ]
    assigned_pods = [make_group_member(name, node=node) for name, node in members]
    return make_cluster(*nodes, make_node("unlabelled"), make_pod_group(topology=topology), *assigned_pods)


def test_each_label_value_is_a_placement() -> None:
    placements = TopologyPlacementGenerator().generate_placements(RING, make_racks().snapshot())
    assert placements == (Placement("a", frozenset({"a1", "a2"})), Placement("b", frozenset({"b1"})))


def test_without_a_constraint_all_nodes_are_one_placement() -> None:
    assert TopologyPlacementGenerator().generate_placements(RING, make_racks(topology="").snapshot()) == (Placement(),)


def test_scheduled_members_determine_the_placement() -> None:
    placements = TopologyPlacementGenerator().generate_placements(RING, make_racks(("m", "b1")).snapshot())
    assert placements == (Placement("b", frozenset({"b1"})),)


def test_a_label_that_no_node_has_generates_no_placement() -> None:
    assert TopologyPlacementGenerator().generate_placements(RING, make_racks(topology="row").snapshot()) == ()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("m", "a1"), ("o", "b1")], "more than 1 domain found for pod group: a, b"),
        ([("m", "unlabelled")], "no topology domain found for pod default/m"),
        ([("m", "gone")], 'getting node for pod default/m: nodeinfo not found for node name "gone"'),
    ],
    ids=["two domains", "no domain", "no node"],
)
def test_scheduled_members_without_a_single_domain_are_an_error(members: list[tuple[str, str]], message: str) -> None:
    result = TopologyPlacementGenerator().generate_placements(RING, make_racks(*members).snapshot())
    assert result == error_status(f"cannot determine domain for already scheduled pods: {message}")
