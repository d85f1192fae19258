"""GangScheduling: PreEnqueue, PlacementFeasible and Permit by the number of pods in the group."""

from typing import Any

import pytest

from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37
from extender.framework.binding_points import ALLOW, PermitResult
from extender.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from extender.framework.plugin_args import PluginArgs
from extender.framework.pod_group_points import PlacementProgress
from extender.framework.status import Code, Status, error_status, unresolvable_status, unschedulable_status
from extender.plugins.gang_scheduling import GangScheduling
from tests.build import make_cluster, make_node, make_pod
from tests.pod_group_builders import make_child_group, make_composite_group, make_group_member, make_pod_group

PLUGIN = GangScheduling(PluginArgs(None, FeatureGates(release=RELEASE_1_36)))
PLUGIN_1_37 = GangScheduling(PluginArgs(None, FeatureGates(release=RELEASE_1_37)))


def pre_enqueue(cache: Cache, name: str = "a") -> Status | None:
    snapshot = cache.snapshot()
    return PLUGIN.pre_enqueue(snapshot.make_pod_info(make_group_member(name)), snapshot)


def permit(cache: Cache, name: str = "a") -> PermitResult:
    """Run Permit for the pod after assuming it on n1."""
    cache.assume(make_group_member(name), "n1")
    snapshot = cache.snapshot()
    return PLUGIN.permit(snapshot.make_pod_info(make_group_member(name)), "n1", snapshot, None)


def test_a_pod_is_queued_as_soon_as_its_gang_has_min_count_pods() -> None:
    cache = make_cluster(
        make_node("n1"), make_pod_group(min_count=3), make_group_member("a"), make_group_member("b", node="n1")
    )
    assert pre_enqueue(cache) == unresolvable_status(
        "waiting for minCount pods from a gang to appear in scheduling queue"
    )
    cache.add_or_update_pod(make_group_member("c"))
    assert pre_enqueue(cache) is None


def test_a_removed_pod_no_longer_counts() -> None:
    cache = make_cluster(make_node("n1"), make_pod_group(min_count=2), make_group_member("a"), make_group_member("b"))
    assert pre_enqueue(cache) is None
    cache.remove_pod("uid-default-b")
    assert pre_enqueue(cache) is not None


def test_a_pod_that_is_assumed_confirmed_or_forgotten_counts_once() -> None:
    cache = make_cluster(make_node("n1"), make_pod_group(min_count=2), make_group_member("a"), make_group_member("b"))
    for step in (
        lambda: cache.assume(make_group_member("b"), "n1"),
        lambda: cache.forget(make_group_member("b")),
        lambda: cache.assume(make_group_member("b"), "n1"),
        lambda: cache.add_or_update_pod(make_group_member("b", node="n1")),
    ):
        step()
        members = cache.snapshot().pod_group("default/ring")
        assert members.count == 2
        assert sorted([*members.pending, *members.assigned]) == ["uid-default-a", "uid-default-b"]
    assert [pod.assumed for pod in members.assigned.values()] == [False]


def test_an_older_snapshot_keeps_its_members() -> None:
    cache = make_cluster(make_node("n1"), make_group_member("a"))
    old_snapshot = cache.snapshot()
    cache.add_or_update_pod(make_group_member("b"))
    assert old_snapshot.pod_group("default/ring").count == 1
    assert cache.snapshot().pod_group("default/ring").count == 2


def test_a_pod_waits_for_the_rest_of_its_gang_and_activates_them() -> None:
    cache = make_cluster(make_node("n1"), make_pod_group(min_count=2), make_group_member("a"), make_group_member("b"))
    result = permit(cache)
    assert result.status == Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))
    assert result.timeout == 300
    assert [pod.metadata.name for pod in result.pods_to_activate] == ["b"]


def test_the_pod_that_completes_a_gang_allows_the_waiting_pods() -> None:
    cache = make_cluster(
        make_node("n1"),
        make_pod_group(min_count=3),
        make_group_member("a"),
        make_group_member("b"),
        make_group_member("c", node="n1"),
    )
    cache.assume(make_group_member("b"), "n1")
    result = permit(cache)
    assert result.status is None
    assert sorted(result.uids_to_allow) == ["uid-default-a", "uid-default-b"]


def test_pods_without_a_gang_are_allowed() -> None:
    cache = make_cluster(make_node("n1"), make_pod_group())
    snapshot = cache.snapshot()
    assert PLUGIN.permit(snapshot.make_pod_info(make_pod()), "n1", snapshot, None) == ALLOW
    assert permit(cache) == ALLOW


def test_a_missing_group_is_an_error_in_permit() -> None:
    result = permit(make_cluster(make_node("n1")))
    message = 'failed to get podGroup default/ring: podgroup.scheduling.k8s.io "ring" not found'
    assert result.status == error_status(message)


@pytest.mark.parametrize(
    ("min_count", "scheduled", "remaining", "status"),
    [
        (3, 3, 0, None),
        (3, 2, 1, Status(Code.WAIT, ("minCount (3) is not yet satisfied: 2 scheduled, 1 remaining",))),
        (3, 1, 1, unschedulable_status("minCount (3) cannot be satisfied: 1 scheduled, 1 remaining")),
        (None, 1, 0, None),
        (None, 0, 1, Status(Code.WAIT, ("minCount (1) is not yet satisfied: 0 scheduled, 1 remaining",))),
        (None, 0, 0, unschedulable_status("minCount (1) cannot be satisfied: 0 scheduled, 0 remaining")),
    ],
)
def test_a_placement_is_feasible_with_min_count_scheduled_pods(
    min_count: int | None, scheduled: int, remaining: int, status: Status | None
) -> None:
    """Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, PlacementFeasible (1.37)."""
    progress = PlacementProgress(scheduled, remaining)
    assert PLUGIN_1_37.placement_feasible(make_pod_group(min_count=min_count), progress) == status


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (make_pod_group(min_count=3), make_pod_group(min_count=2), QueueingHint.QUEUE),
        (make_pod_group(min_count=2), make_pod_group(min_count=2), QueueingHint.SKIP),
        (make_pod_group(min_count=2), make_pod_group(min_count=3), QueueingHint.SKIP),
        (make_pod_group(), make_pod_group(min_count=1), QueueingHint.SKIP),
        (make_pod_group("other", min_count=3), make_pod_group("other", min_count=2), QueueingHint.SKIP),
    ],
    ids=["lower", "equal", "higher", "another policy", "another group"],
)
def test_a_lower_min_count_requeues_the_members_since_1_37(old: Any, new: Any, hint: QueueingHint) -> None:
    """Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, EventsToRegister (1.37)."""
    event = ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE, old, new)
    pod = make_cluster(make_node("n1")).snapshot().make_pod_info(make_group_member("a"))
    (registered,) = (item for item in PLUGIN_1_37.events_to_register() if item.action is ActionType.UPDATE)
    assert registered.resource is EventResource.POD_GROUP
    assert registered.hint is not None
    assert registered.hint(pod, event) is hint
    assert all(item.action is ActionType.ADD for item in PLUGIN.events_to_register())


# -- composite pod groups

COMPOSITE_GATES = FeatureGates(
    dict.fromkeys(("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"), True), RELEASE_1_37
)
COMPOSITE_PLUGIN = GangScheduling(PluginArgs(None, COMPOSITE_GATES))
NO_QUORUM = 'waiting for composite pod group "root" tree to meet quorum'


def make_tree(*objects: Any) -> Cache:
    """Return a gang of two child groups: x with two pods, and y."""
    return make_cluster(
        make_node("n1"),
        make_composite_group(min_group_count=2),
        make_child_group("x", min_count=2),
        make_child_group("y"),
        *objects,
        gates=COMPOSITE_GATES,
    )


def ask_composite(cache: Cache, name: str, group: str) -> Status | None:
    snapshot = cache.snapshot()
    return COMPOSITE_PLUGIN.pre_enqueue(snapshot.make_pod_info(make_group_member(name, group=group)), snapshot)


@pytest.mark.parametrize(
    ("pods", "reason"),
    [("xxy", None), ("xx", NO_QUORUM), ("xy", NO_QUORUM)],
    ids=["enough", "a child group without pods", "a child group with too few pods"],
)
def test_a_pod_is_queued_as_soon_as_its_tree_has_enough_pods(pods: str, reason: str | None) -> None:
    members = [make_group_member(f"{group}{number}", group=group) for number, group in enumerate(pods)]
    expected = None if reason is None else unresolvable_status(reason)
    assert ask_composite(make_tree(*members), "x0", "x") == expected


def test_a_pod_is_held_while_a_group_above_it_does_not_exist() -> None:
    cache = make_cluster(make_child_group("x"), make_group_member("a", group="x"), gates=COMPOSITE_GATES)
    prefix = "failed to build hierarchy snapshot:"
    assert ask_composite(cache, "a", "x") == unresolvable_status(
        f"{prefix} composite pod group object not found in state for compositepodgroup/default/root"
    )
    assert ask_composite(cache, "a", "z") == unresolvable_status(
        f"{prefix} pod group object not found in state for podgroup/default/z"
    )


@pytest.mark.parametrize(("composite_count", "is_held"), [(4, False), (5, True)])
def test_a_tree_of_more_than_four_composite_groups_above_each_other_is_held(
    composite_count: int, is_held: bool
) -> None:
    """Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.BuildHierarchySnapshotFromPod (1.37)."""
    composites = [
        make_composite_group(f"c{number}", parent=f"c{number + 1}" if number < composite_count else "")
        for number in range(1, composite_count + 1)
    ]
    pod = make_group_member("a", group="x")
    cache = make_cluster(*composites, make_child_group("x", parent="c1"), pod, gates=COMPOSITE_GATES)
    status = ask_composite(cache, "a", "x")
    message = "composite pod group object not found in state for compositepodgroup/default/c1"
    held = unresolvable_status(f"failed to build hierarchy snapshot: {message}")
    assert status == (held if is_held else None)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ("c0", "cycle detected in composite pod group hierarchy: compositepodgroup/default/c0"),
        ("c1 c0", "cycle detected in composite pod group hierarchy: compositepodgroup/default/c1"),
        ("c1 c2 c0", "cycle detected in composite pod group hierarchy: compositepodgroup/default/c0"),
        ("c1 c1", "cycle detected in composite pod group hierarchy: compositepodgroup/default/c1"),
        ("c1 c2 c3 c4 c0", "cycle detected in composite pod group hierarchy: compositepodgroup/default/c3"),
        ("c1 c2 c3 c4 c4", "composite pod group object not found in state for compositepodgroup/default/c0"),
    ],
)
def test_a_tree_with_a_cycle_is_held(parents: str, message: str) -> None:
    """The messages are those of kube-scheduler 1.37.2 for the parents of the groups c0, c1 and so on."""
    composites = [make_composite_group(f"c{number}", parent=parent) for number, parent in enumerate(parents.split())]
    cache = make_cluster(
        *composites, make_child_group("x", parent="c0"), make_group_member("a", group="x"), gates=COMPOSITE_GATES
    )
    assert ask_composite(cache, "a", "x") == unresolvable_status(f"failed to build hierarchy snapshot: {message}")


def test_permit_waits_for_the_whole_tree_and_then_allows_it() -> None:
    a, b, c = (make_group_member(name, group=group) for name, group in (("a", "x"), ("b", "x"), ("c", "y")))
    cache = make_tree(a, b, c)
    for pod, pending in ((a, ["b", "c"]), (b, ["c"])):
        cache.assume(pod, "n1")
        snapshot = cache.snapshot()
        result = COMPOSITE_PLUGIN.permit(snapshot.make_pod_info(pod), "n1", snapshot, None)
        assert result.status == Status(Code.WAIT, (NO_QUORUM,))
        assert [waiting.metadata.name for waiting in result.pods_to_activate] == pending
    cache.assume(c, "n1")
    snapshot = cache.snapshot()
    allowed = COMPOSITE_PLUGIN.permit(snapshot.make_pod_info(c), "n1", snapshot, None)
    assert (allowed.status, sorted(allowed.uids_to_allow)) == (
        ALLOW.status,
        ["uid-default-a", "uid-default-b", "uid-default-c"],
    )


def test_placement_feasible_counts_child_groups_by_min_group_count() -> None:
    group = make_composite_group(min_group_count=2)
    assert COMPOSITE_PLUGIN.placement_feasible(group, PlacementProgress(0, 1)) == unschedulable_status(
        "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    )
    assert COMPOSITE_PLUGIN.placement_feasible(group, PlacementProgress(2, 0)) is None


@pytest.mark.parametrize(
    ("resource", "hierarchy", "hint"),
    [
        (EventResource.COMPOSITE_POD_GROUP, {"default/x", "default/y"}, QueueingHint.QUEUE),
        (EventResource.COMPOSITE_POD_GROUP, {"default/y"}, QueueingHint.SKIP),
        (EventResource.POD_GROUP, {"default/x"}, QueueingHint.QUEUE),
        (EventResource.POD_GROUP, set(), QueueingHint.SKIP),
    ],
)
def test_new_groups_of_the_tree_requeue_its_pods(
    resource: EventResource, hierarchy: set[str], hint: QueueingHint
) -> None:
    new = make_composite_group() if resource is EventResource.COMPOSITE_POD_GROUP else make_child_group("y")
    event = ClusterEvent(resource, ActionType.ADD, new=new, hierarchy=frozenset(hierarchy))
    pod = make_cluster().snapshot().make_pod_info(make_group_member("a", group="x"))
    (registered,) = (
        each for each in COMPOSITE_PLUGIN.events_to_register() if each.resource is resource and each.matches(event)
    )
    assert registered.hint is not None
    assert registered.hint(pod, event) is hint
