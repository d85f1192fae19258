"""GangScheduling, PodGroupPodsCount and TopologyPlacementGenerator: what hangs on the other members of a group."""

import pytest

from extender.cluster.state import ClusterState
from extender.framework.group_points import GroupQuery, Placement, Proposal
from extender.framework.points import ALLOW, Permission
from extender.framework.verdict import Code, Status, error, unresolvable
from extender.plugins.gang_scheduling import GangScheduling
from extender.plugins.pod_group_pods_count import PodGroupPodsCount
from extender.plugins.topology_placement_generator import TopologyPlacementGenerator
from tests.build import a_cluster, a_node, a_pod
from tests.groups import a_group, a_member

RING = GroupQuery("default", "ring")
RACK = "rack"


def enqueued(state: ClusterState, name: str = "a") -> Status | None:
    cluster = state.snapshot()
    return GangScheduling().pre_enqueue(cluster.query(a_member(name)), cluster)


def permitted(state: ClusterState, name: str = "a") -> Permission:
    """What Permit says about the pod, which is assumed on n1 first."""
    state.assume(a_member(name), "n1")
    cluster = state.snapshot()
    return GangScheduling().permit(cluster.query(a_member(name)), "n1", cluster, None)


def test_a_gang_is_queued_as_soon_as_enough_of_its_pods_are_known() -> None:
    """B130: those that wait and those that have nodes."""
    few = a_cluster(a_node("n1"), a_group(min_count=3), a_member("a"), a_member("b", node="n1"))
    assert enqueued(few) == unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
    few.put_pod(a_member("c"))
    assert enqueued(few) is None


def test_a_pod_that_leaves_is_known_no_more() -> None:
    state = a_cluster(a_node("n1"), a_group(min_count=2), a_member("a"), a_member("b"))
    assert enqueued(state) is None
    state.drop_pod("uid-default-b")
    assert enqueued(state) is not None


def test_a_pod_that_is_assumed_confirmed_or_forgotten_counts_once() -> None:
    state = a_cluster(a_node("n1"), a_group(min_count=2), a_member("a"), a_member("b"))
    for step in (
        lambda: state.assume(a_member("b"), "n1"),
        lambda: state.forget(a_member("b")),
        lambda: state.assume(a_member("b"), "n1"),
        lambda: state.put_pod(a_member("b", node="n1")),
    ):
        step()
        members = state.snapshot().group("default/ring")
        assert members.known == 2
        assert sorted([*members.waiting, *members.placed]) == ["uid-default-a", "uid-default-b"]
    assert [pod.assumed for pod in members.placed.values()] == [False]


def test_an_older_view_keeps_its_members() -> None:
    state = a_cluster(a_node("n1"), a_member("a"))
    held = state.snapshot()
    state.put_pod(a_member("b"))
    assert held.group("default/ring").known == 1
    assert state.snapshot().group("default/ring").known == 2


def test_a_pod_waits_for_the_rest_of_its_gang_and_has_them_tried() -> None:
    """B131."""
    state = a_cluster(a_node("n1"), a_group(min_count=2), a_member("a"), a_member("b"))
    answer = permitted(state)
    assert answer.status == Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))
    assert answer.timeout == 300
    assert [pod.metadata.name for pod in answer.activates] == ["b"]


def test_the_pod_that_completes_a_gang_lets_those_go_that_wait() -> None:
    """B131: pods that are bound need no word."""
    state = a_cluster(a_node("n1"), a_group(min_count=3), a_member("a"), a_member("b"), a_member("c", node="n1"))
    state.assume(a_member("b"), "n1")
    answer = permitted(state)
    assert answer.status is None
    assert sorted(answer.allows) == ["uid-default-a", "uid-default-b"]


def test_pods_that_belong_to_no_gang_are_allowed() -> None:
    state = a_cluster(a_node("n1"), a_group())
    cluster = state.snapshot()
    assert GangScheduling().permit(cluster.query(a_pod()), "n1", cluster, None) == ALLOW
    assert permitted(state) == ALLOW


def test_a_group_that_is_gone_is_an_error_on_permit() -> None:
    answer = permitted(a_cluster(a_node("n1")))
    text = 'failed to get podGroup default/ring: podgroup.scheduling.k8s.io "ring" not found'
    assert answer.status == error(text)


def racks(*members: tuple[str, str], topology: str = RACK) -> ClusterState:
    """Two racks, a node without one, and these members with their nodes."""
    nodes = [a_node("a1", labels={RACK: "a"}), a_node("b1", labels={RACK: "b"}), a_node("a2", labels={RACK: "a"})]
    placed = [a_member(name, node=node) for name, node in members]
    return a_cluster(*nodes, a_node("loose"), a_group(topology=topology), *placed)


def test_each_value_of_the_label_is_a_placement() -> None:
    """B133."""
    placements = TopologyPlacementGenerator().placement_generate(RING, racks().snapshot())
    assert placements == (Placement("a", frozenset({"a1", "a2"})), Placement("b", frozenset({"b1"})))


def test_without_a_constraint_all_nodes_are_one_placement() -> None:
    assert TopologyPlacementGenerator().placement_generate(RING, racks(topology="").snapshot()) == (Placement(),)


def test_members_with_nodes_pin_the_placement() -> None:
    placements = TopologyPlacementGenerator().placement_generate(RING, racks(("m", "b1")).snapshot())
    assert placements == (Placement("b", frozenset({"b1"})),)


def test_a_label_no_node_has_gives_no_placement() -> None:
    assert TopologyPlacementGenerator().placement_generate(RING, racks(topology="row").snapshot()) == ()


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([("m", "a1"), ("o", "b1")], "more than 1 domain found for pod group: a, b"),
        ([("m", "loose")], "no topology domain found for pod default/m"),
        ([("m", "gone")], 'getting node for pod default/m: nodeinfo not found for node name "gone"'),
    ],
    ids=["two domains", "no domain", "no node"],
)
def test_members_that_cannot_pin_a_placement_are_an_error(members: list[tuple[str, str]], why: str) -> None:
    answer = TopologyPlacementGenerator().placement_generate(RING, racks(*members).snapshot())
    assert answer == error(f"cannot determine domain for already scheduled pods: {why}")


def test_placements_are_rated_by_the_members_that_would_stand() -> None:
    """B134."""
    cluster, plugin = racks(("m", "a1")).snapshot(), PodGroupPodsCount()
    proposals = [Proposal(Placement(), dict.fromkeys(names, "a1")) for names in ("xyz", "x", "")]
    raw = [plugin.placement_score(RING, cluster, proposal) for proposal in proposals]
    assert raw == [4, 2, 1]
    assert plugin.normalize_placement(RING, (4, 2, 1)) == (100, 50, 25)


def test_placements_that_take_nobody_are_an_error() -> None:
    want = error("no pods from pod group are assigned to any of the candidate placements")
    assert PodGroupPodsCount().normalize_placement(RING, (0, 0)) == want
