"""Members of a pod group are pending or assigned, and follow the pods of the cache."""

import pytest

from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_groups import NO_MEMBERS, get_pod_group_key
from tests.build import make_cluster, make_node, make_pod


def make_member(name: str, node: str = "") -> Pod:
    return make_pod(name, node=node, spec={"schedulingGroup": {"podGroupName": "g"}})


def members(cache: Cache) -> tuple[list[str], list[str]]:
    """The uids of the pending and of the assigned members."""
    group = cache.snapshot().pod_group("default/g")
    return sorted(group.pending), sorted(group.assigned)


@pytest.mark.parametrize(
    ("pod", "key"),
    [(make_pod(), None), (make_member("a"), "default/g")],
    ids=["a pod without a group", "a member"],
)
def test_the_key_of_a_group_has_the_namespace_of_the_pod(pod: Pod, key: str | None) -> None:
    assert get_pod_group_key(pod) == key


def test_a_group_without_members_is_empty() -> None:
    assert make_cluster(make_pod()).snapshot().pod_group("default/g") is NO_MEMBERS


def test_members_move_from_pending_to_assigned_and_back() -> None:
    cache = make_cluster(make_node("n"), make_member("a"), make_member("b", node="n"))
    assert members(cache) == (["uid-default-a"], ["uid-default-b"])
    cache.assume(make_member("a"), "n")
    assert members(cache) == ([], ["uid-default-a", "uid-default-b"])
    cache.forget(make_member("a"))
    assert members(cache) == (["uid-default-a"], ["uid-default-b"])


def test_a_group_is_removed_with_its_last_member() -> None:
    cache = make_cluster(make_node("n"), make_member("a"), make_member("b", node="n"))
    cache.remove_pod("uid-default-a")
    assert cache.snapshot().pod_group("default/g").count == 1
    cache.remove_pod("uid-default-b")
    assert cache.snapshot().pod_group("default/g") is NO_MEMBERS


def test_a_snapshot_does_not_see_members_added_later() -> None:
    cache = make_cluster(make_member("a"))
    old = cache.snapshot()
    cache.add_or_update_pod(make_member("b"))
    assert sorted(old.pod_group("default/g").pending) == ["uid-default-a"]
    assert members(cache) == (["uid-default-a", "uid-default-b"], [])
