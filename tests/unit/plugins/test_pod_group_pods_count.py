"""PodGroupPodsCount: scores of placements by their number of scheduled pods."""

from extender.framework.pod_group_points import Placement, PodGroupAssignments, PodGroupInfo
from extender.framework.status import error_status
from extender.plugins.pod_group_pods_count import PodGroupPodsCount
from tests.build import make_cluster, make_node
from tests.pod_group_builders import make_group_member, make_pod_group

RING = PodGroupInfo("default", "ring")


def test_placements_are_scored_by_the_number_of_scheduled_pods() -> None:
    cache = make_cluster(make_node("a1"), make_pod_group(), make_group_member("m", node="a1"))
    snapshot, plugin = cache.snapshot(), PodGroupPodsCount()
    assignments = [PodGroupAssignments(Placement(), dict.fromkeys(names, "a1")) for names in ("xyz", "x", "")]
    raw_scores = [plugin.score_placement(RING, snapshot, assignment) for assignment in assignments]
    assert raw_scores == [4, 2, 1]
    assert plugin.normalize_placement_score(RING, (4, 2, 1)) == (100, 50, 25)


def test_no_assigned_pod_in_any_placement_is_an_error() -> None:
    expected = error_status("no pods from pod group are assigned to any of the candidate placements")
    assert PodGroupPodsCount().normalize_placement_score(RING, (0, 0)) == expected


def test_the_pods_of_all_groups_below_a_composite_group_count() -> None:
    members = [make_group_member(name, node="a1", group=group) for name, group in (("a", "x"), ("b", "y"), ("c", "z"))]
    snapshot = make_cluster(make_node("a1"), *members).snapshot()
    tree = PodGroupInfo("default", "root", True, (PodGroupInfo("default", "x"), PodGroupInfo("default", "y")))
    assert PodGroupPodsCount().score_placement(tree, snapshot, PodGroupAssignments(Placement(), {"d": "a1"})) == 3


def test_a_tree_of_more_than_four_groups_above_each_other_is_an_error() -> None:
    """Source: pkg/scheduler/framework/plugins/helper/podgroup.go, GetPodGroupStates (1.37)."""
    tree = PodGroupInfo("default", "x")
    for name in ("c4", "c3", "c2", "c1"):
        tree = PodGroupInfo("default", name, True, (tree,))
    score = PodGroupPodsCount().score_placement(tree, make_cluster().snapshot(), PodGroupAssignments(Placement(), {}))
    assert score == error_status("exceeded maximum hierarchy depth at podgroup/default/x")
