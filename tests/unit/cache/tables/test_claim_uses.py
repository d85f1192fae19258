"""Node resources that pods take through resource claims count as in upstream's NodeInfo.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures,
DynamicResources.bindClaim (1.36).
"""

from typing import Any

from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.config.feature_gates import FeatureGates
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.consistency import find_inconsistencies

ON = FeatureGates({"DRANodeAllocatableResources": True})


def make_claim_user(name: str, claim: str, node: str = "", **resources: str) -> Any:
    status = {"resourceClaimName": claim, "containers": ["app"], "resources": resources}
    return make_pod(name, node=node, requests={"cpu": "1"}, status={"nodeAllocatableResourceClaimStatuses": [status]})


def requested(cache: Cache, resource: str) -> list[int]:
    view = cache.snapshot().view()
    return view.requested(cache.snapshot().symbols.resources.intern(resource)).tolist()  # type: ignore[no-any-return]


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
    old_position = cache.snapshot().pod_log_position
    cache.add_or_update_pod(make_claim_user("a", "c", "n", cpu="2"))
    assert cache.snapshot().pod_log_position == old_position
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
