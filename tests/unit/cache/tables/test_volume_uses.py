"""PVCs and disks in use follow the pods on nodes, and writing a hypothesis leaves its snapshot unchanged."""

from typing import Any

from extender.cache.hypothesis import Hypothesis
from extender.cache.snapshot import Snapshot
from tests.build import make_cluster, make_node, make_pod, make_pod_info

CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"name": "g", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
DISK = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}


def make_user(name: str, *volumes: dict[str, Any], node: str = "") -> Any:
    return make_pod(name, node=node, spec={"volumes": list(volumes)})


def uses(snapshot: Snapshot) -> tuple[bool, set[int], set[int], set[int]]:
    return (
        snapshot.is_pvc_used_by_pods("default/data"),
        snapshot.rows_using_pvc("default/data"),
        snapshot.rows_using_pvc("default/p-g"),
        snapshot.rows_with_disk_conflict(snapshot.make_pod_info(make_user("incoming", DISK))),
    )


def test_uses_follow_the_pods() -> None:
    cache = make_cluster(make_node("a"), make_node("b"), make_user("p", CLAIM, EPHEMERAL, DISK, node="b"))
    assert uses(cache.snapshot()) == (True, {1}, {1}, {1})
    cache.add_or_update_pod(make_user("q", CLAIM, node="a"))
    assert cache.snapshot().rows_using_pvc("default/data") == {0, 1}
    cache.remove_pod("uid-default-p")
    assert uses(cache.snapshot()) == (True, {0}, set(), set())
    cache.remove_pod("uid-default-q")
    assert uses(cache.snapshot()) == (False, set(), set(), set())


def test_the_pvc_of_an_ephemeral_volume_is_used_but_not_named() -> None:
    snapshot = make_cluster(make_node("a"), make_user("p", EPHEMERAL, node="a")).snapshot()
    assert (snapshot.is_pvc_used_by_pods("default/p-g"), snapshot.rows_using_pvc("default/p-g")) == (False, {0})


def test_uses_move_with_their_node_and_return_when_it_is_added_again() -> None:
    cache = make_cluster(make_node("a"), make_node("b"), make_user("p", CLAIM, node="b"))
    cache.remove_node("a")
    assert cache.snapshot().rows_using_pvc("default/data") == {0}
    cache.remove_node("b")
    assert not cache.snapshot().is_pvc_used_by_pods("default/data")
    cache.add_or_update_node(make_node("b"))
    assert cache.snapshot().is_pvc_used_by_pods("default/data")


def test_a_hypothesis_does_not_change_its_snapshot() -> None:
    cache = make_cluster(make_node("a"), make_node("b"), make_user("p", CLAIM, DISK, node="a"))
    snapshot = cache.snapshot()
    hypothesis = Hypothesis(snapshot)
    hypothesis.remove_pod(snapshot.pods_on("a")["uid-default-p"])
    hypothesis.assume_pod(make_pod_info(make_user("q", DISK), cache), "b")
    assert uses(hypothesis.snapshot()) == (False, set(), set(), {1})
    assert uses(snapshot) == (True, {0}, set(), {0})
