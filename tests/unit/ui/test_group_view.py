"""The contents of the page of a pod group."""

from typing import Any

import pytest

from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37
from extender.ui.group_view import GroupMember, GroupView, make_group_view
from extender.ui.page_source import PageSource
from tests.build import make_cluster, make_node
from tests.pod_group_builders import make_child_group, make_composite_group, make_group_member, make_pod_group

KEY = "default/ring"
CPU = {"cpu": "1"}


GANG_GATES = FeatureGates({"GenericWorkload": True, "GangScheduling": True}, RELEASE_1_36)
TREE_GATE_NAMES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
TREE_GATES = FeatureGates(dict.fromkeys(TREE_GATE_NAMES, True), RELEASE_1_37)


def view(cpu: str, *objects: Any, key: str = KEY, gates: FeatureGates = GANG_GATES) -> GroupView | None:
    """Return the view of the group *key* on a cluster of one node with these CPUs."""
    cache = make_cluster(make_node("n1", allocatable={"cpu": cpu, "pods": "9"}), *objects, gates=gates)
    profiles = wiring.build_setup(gates=gates).profiles
    return make_group_view(PageSource("a", cache, lambda: profiles, wiring.make_runtime, lambda: 0.0), key)


def members(*names: str) -> list[Any]:
    return [make_group_member(name, requests=CPU) for name in names]


def test_a_gang_without_enough_pods_lacks_pods() -> None:
    result = view("4", make_pod_group(min_count=3), *members("a", "b"))
    assert result is not None
    assert (result.state, result.policy) == ("waits", "The gang needs 3 pods at the same time.")
    assert result.headline == "0 of 2 pods placed; the gang lacks 1 more pod, which must be created"


def test_a_gang_without_enough_nodes_lacks_nodes() -> None:
    result = view("2", make_pod_group(min_count=3), *members("a", "b", "c"))
    assert result is not None
    assert result.state == "waits"
    assert result.headline == "0 of 3 pods placed; the gang lacks nodes for 1 pod"
    assert result.message
    assert [(member.key, member.node) for member in result.members] == [
        ("default/a", ""),
        ("default/b", ""),
        ("default/c", ""),
    ]
    assert "Insufficient cpu" in result.members[2].message
    assert result.shortfall_lines[0] == (
        "the group needs 3 pods with a node at the same time: 0 placed, 2 fitting, 1 missing"
    )


def test_a_gang_that_fits_shows_its_nodes() -> None:
    result = view("4", make_pod_group(min_count=2, topology="zone"), *members("a", "b"))
    assert result is not None
    assert (result.topology_keys, result.policy) == (("zone",), "The gang needs 2 pods at the same time.")
    result = view("4", make_pod_group(min_count=2), *members("a", "b"))
    assert result is not None
    assert (result.state, result.headline) == ("fits", "0 of 2 pods placed; the group can be scheduled now")
    assert result.members[0] == GroupMember("default/a", "n1", is_placed=False)
    assert result.message == ""


def test_placed_members_are_first_with_their_nodes() -> None:
    result = view("4", make_pod_group(), make_group_member("z", node="n1", requests=CPU), *members("a"))
    assert result is not None
    assert [(member.key, member.is_placed) for member in result.members] == [("default/z", True), ("default/a", False)]
    assert result.policy == "The pods are scheduled together, but each may be placed without the others."
    result = view("4", make_pod_group(), make_group_member("z", node="n1", requests=CPU))
    assert result is not None
    assert (result.state, result.headline) == ("placed", "1 of 1 pod placed")


def test_a_page_shows_some_of_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pending members, which have messages, are shown even if many others are placed."""
    monkeypatch.setattr("extender.ui.group_view.MAX_MEMBERS", 2)
    placed = [make_group_member(name, node="n1") for name in ("a", "b", "c")]
    result = view("9", make_pod_group(min_count=4), *placed, *members("d", "e", "f", "g"))
    assert result is not None
    assert [member.key for member in result.members] == ["default/a", "default/b", "default/d", "default/e"]
    assert result.omitted_count == 3


def test_members_without_their_object_say_so_and_an_unknown_group_has_no_page() -> None:
    result = view("4", *members("a"))
    assert result is not None
    assert result.policy == "There is no PodGroup object of this name."
    assert result.headline == "0 of 1 pod placed; a PreEnqueue plugin does not allow a pending member"
    assert view("4") is None


def test_a_group_of_a_tree_shows_the_groups_of_the_tree() -> None:
    groups = (
        make_composite_group(min_group_count=2),
        make_child_group("x", min_count=1),
        make_child_group("y", min_count=2),
    )
    pods = [make_group_member(name, group=name[0], requests=CPU) for name in ("x1", "y1", "y2")]
    result = view("2", *groups, *pods, key="default/y", gates=TREE_GATES)
    assert result is not None
    assert (result.state, result.headline) == ("waits", "0 of 2 pods placed")
    lines = [line.partition(":")[0] for line in result.shortfall_lines]
    assert lines == [
        "the groups of the tree",
        "  composite pod group default/root needs 2 of 2 child groups",
        "    pod group default/x needs 1 of 1 pod",
        "    pod group default/y needs 2 of 2 pods",
    ]
