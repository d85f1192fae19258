"""PVCs and disks in use follow the pods on nodes, and writing a hypothesis leaves its snapshot unchanged."""

from typing import Any

from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.consistency import find_inconsistencies

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


ON = FeatureGates({"DRANodeAllocatableResources": True})


def make_claim_user(name: str, claim: str, node: str = "", **resources: str) -> Any:
    status = {"resourceClaimName": claim, "containers": ["app"], "resources": resources}
    return make_pod(name, node=node, requests={"cpu": "1"}, status={"nodeAllocatableResourceClaimStatuses": [status]})


def requested(cache: Cache, resource: str) -> list[int]:
    view = cache.snapshot().view()
    return view.requested(cache.snapshot().symbols.resources.intern(resource)).tolist()


def users(cache: Cache, key: str) -> dict[int, list[str]]:
    return {row: sorted(uids) for row, uids in cache.snapshot().node_allocatable_claim_users(key).items()}


def test_claimed_resources_count_with_the_requests_of_the_pod() -> None:
    cache = make_cluster(make_node("n"), make_claim_user("a", "c", "n", cpu="2", memory="1Gi"), gates=ON)
    assert (requested(cache, "cpu"), requested(cache, "memory")) == ([3000], [1 << 30])
    assert cache.snapshot().view().nonzero_requested(0).tolist() == [3000]
    cache.remove_pod("uid-default-a")
    assert (requested(cache, "cpu"), users(cache, "default/c")) == ([0], {})


def test_claimed_resources_do_not_count_while_the_gate_is_off() -> None:
    cache = make_cluster(make_node("n"), make_claim_user("a", "c", "n", cpu="2"))
    assert (requested(cache, "cpu"), users(cache, "default/c")) == ([1000], {})


def test_a_pod_level_request_includes_claimed_resources() -> None:
    status = {"resourceClaimName": "c", "containers": ["app"], "resources": {"cpu": "2", "memory": "1Gi"}}
    spec = {"resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "100m"}}
    pod = make_pod("a", node="n", spec=spec, status={"nodeAllocatableResourceClaimStatuses": [status]})
    cache = make_cluster(make_node("n"), pod, gates=ON)
    assert (requested(cache, "cpu"), requested(cache, "memory")) == ([4100], [1 << 30])


def test_pods_are_listed_by_the_claims_through_which_they_take_resources() -> None:
    cache = make_cluster(
        make_node("n1"),
        make_node("n2"),
        make_claim_user("a", "c", "n1", cpu="1"),
        make_claim_user("b", "c", "n2", cpu="1"),
        gates=ON,
    )
    cache.add_or_update_pod(make_claim_user("d", "c", "n2", cpu="1"))
    assert users(cache, "default/c") == {0: ["uid-default-a"], 1: ["uid-default-b", "uid-default-d"]}
    assert users(cache, "other/c") == {}
    assert find_inconsistencies(cache.snapshot()) == []


def test_users_follow_their_node_to_another_row() -> None:
    cache = make_cluster(make_node("n1"), make_node("n2"), make_claim_user("b", "c", "n2", cpu="1"), gates=ON)
    cache.remove_node("n1")
    assert users(cache, "default/c") == {0: ["uid-default-b"]}
    assert find_inconsistencies(cache.snapshot()) == []


def test_forgetting_an_assumed_pod_removes_its_claimed_resources() -> None:
    cache = make_cluster(make_node("n"), gates=ON)
    cache.assume(make_claim_user("a", "c", cpu="2"), "n")
    assert (requested(cache, "cpu"), users(cache, "default/c")) == ([3000], {0: ["uid-default-a"]})
    cache.forget(make_pod("a", requests={"cpu": "1"}))
    assert (requested(cache, "cpu"), users(cache, "default/c")) == ([0], {})


def test_confirming_a_pod_with_the_assumed_claims_changes_nothing() -> None:
    cache = make_cluster(make_node("n"), gates=ON)
    cache.assume(make_claim_user("a", "c", cpu="2"), "n")
    old_position = cache.snapshot().position.pod_log_position
    cache.add_or_update_pod(make_claim_user("a", "c", "n", cpu="2"))
    assert cache.snapshot().position.pod_log_position == old_position
    cache.add_or_update_pod(make_claim_user("a", "c", "n", cpu="3"))
    assert requested(cache, "cpu") == [4000]
    assert find_inconsistencies(cache.snapshot()) == []


def test_a_hypothesis_has_its_own_users() -> None:
    cache = make_cluster(make_node("n"), make_claim_user("a", "c", "n", cpu="2"), gates=ON)
    hypothesis = Hypothesis(cache.snapshot())
    hypothesis.remove_pod(cache.snapshot().pods_on("n")["uid-default-a"])
    hypothesis.assume_pod(make_pod_info(make_claim_user("b", "c", cpu="1"), cache), "n")
    changed = hypothesis.snapshot()
    assert {row: set(uids) for row, uids in changed.node_allocatable_claim_users("default/c").items()} == {
        0: {"uid-default-b"}
    }
    assert changed.view().requested(changed.symbols.resources.intern("cpu")).tolist() == [2000]
    assert users(cache, "default/c") == {0: ["uid-default-a"]}


def test_gates_select_which_requests_of_a_pod_count_on_its_node() -> None:
    """Source: component-helpers/resource/helpers.go, PodRequests (1.36)."""
    pod = make_pod(
        "a",
        node="n",
        spec={
            "containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}],
            "resources": {"requests": {"cpu": "4"}},
        },
    )
    assert requested(make_cluster(make_node("n"), pod), "cpu") == [4000]
    off = FeatureGates({"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False})
    assert requested(make_cluster(make_node("n"), pod, gates=off), "cpu") == [1000]
