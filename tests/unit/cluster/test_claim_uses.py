"""What pods take of their nodes through claims, as upstream's NodeInfo counts it. Source: B122, H063."""

from typing import Any

from extender.cluster.audit import validate
from extender.cluster.hypothesis import Hypothesis
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from tests.build import a_cluster, a_node, a_pod, a_query

ON = FeatureGates({"DRANodeAllocatableResources": True})


def taking(name: str, claim: str, node: str = "", **resources: str) -> Any:
    status = {"resourceClaimName": claim, "containers": ["app"], "resources": resources}
    return a_pod(name, node=node, requests={"cpu": "1"}, status={"nodeAllocatableResourceClaimStatuses": [status]})


def requested(state: ClusterState, resource: str) -> list[int]:
    view = state.snapshot().view()
    return view.requested(state.snapshot().vocabulary.resources.id(resource)).tolist()  # type: ignore[no-any-return]


def users(state: ClusterState, key: str) -> dict[int, list[str]]:
    return {row: sorted(uids) for row, uids in state.snapshot().claim_users(key).items()}


def test_it_counts_with_the_requests_of_the_pod() -> None:
    state = a_cluster(a_node("n"), taking("a", "c", "n", cpu="2", memory="1Gi"), gates=ON)
    assert (requested(state, "cpu"), requested(state, "memory")) == ([3000], [1 << 30])
    assert state.snapshot().view().nonzero_requested(0).tolist() == [3000]
    state.drop_pod("uid-default-a")
    assert (requested(state, "cpu"), users(state, "default/c")) == ([0], {})


def test_it_does_not_count_while_the_gate_is_off() -> None:
    state = a_cluster(a_node("n"), taking("a", "c", "n", cpu="2"))
    assert (requested(state, "cpu"), users(state, "default/c")) == ([1000], {})


def test_a_request_of_the_pod_as_a_whole_has_it_inside() -> None:
    status = {"resourceClaimName": "c", "containers": ["app"], "resources": {"cpu": "2", "memory": "1Gi"}}
    spec = {"resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "100m"}}
    pod = a_pod("a", node="n", spec=spec, status={"nodeAllocatableResourceClaimStatuses": [status]})
    state = a_cluster(a_node("n"), pod, gates=ON)
    assert (requested(state, "cpu"), requested(state, "memory")) == ([4100], [1 << 30])


def test_pods_are_known_by_the_claims_they_take_resources_through() -> None:
    state = a_cluster(
        a_node("n1"), a_node("n2"), taking("a", "c", "n1", cpu="1"), taking("b", "c", "n2", cpu="1"), gates=ON
    )
    state.put_pod(taking("d", "c", "n2", cpu="1"))
    assert users(state, "default/c") == {0: ["uid-default-a"], 1: ["uid-default-b", "uid-default-d"]}
    assert users(state, "other/c") == {}
    assert validate(state.snapshot()) == []


def test_they_follow_their_node_to_another_row() -> None:
    state = a_cluster(a_node("n1"), a_node("n2"), taking("b", "c", "n2", cpu="1"), gates=ON)
    state.drop_node("n1")
    assert users(state, "default/c") == {0: ["uid-default-b"]}
    assert validate(state.snapshot()) == []


def test_what_an_assumed_pod_takes_is_gone_when_it_is_forgotten() -> None:
    state = a_cluster(a_node("n"), gates=ON)
    state.assume(taking("a", "c", cpu="2"), "n")
    assert (requested(state, "cpu"), users(state, "default/c")) == ([3000], {0: ["uid-default-a"]})
    state.forget(a_pod("a", requests={"cpu": "1"}))
    assert (requested(state, "cpu"), users(state, "default/c")) == ([0], {})


def test_a_pod_that_is_seen_with_what_was_assumed_changes_nothing() -> None:
    state = a_cluster(a_node("n"), gates=ON)
    state.assume(taking("a", "c", cpu="2"), "n")
    before = state.snapshot().pod_position
    state.put_pod(taking("a", "c", "n", cpu="2"))
    assert state.snapshot().pod_position == before
    state.put_pod(taking("a", "c", "n", cpu="3"))
    assert requested(state, "cpu") == [4000]
    assert validate(state.snapshot()) == []


def test_a_hypothesis_has_its_own() -> None:
    state = a_cluster(a_node("n"), taking("a", "c", "n", cpu="2"), gates=ON)
    what_if = Hypothesis(state.snapshot())
    what_if.remove(state.snapshot().pods_on("n")["uid-default-a"])
    what_if.place(a_query(taking("b", "c", cpu="1"), state), "n")
    imagined = what_if.snapshot()
    assert {row: set(uids) for row, uids in imagined.claim_users("default/c").items()} == {0: {"uid-default-b"}}
    assert imagined.view().requested(imagined.vocabulary.resources.id("cpu")).tolist() == [2000]
    assert users(state, "default/c") == {0: ["uid-default-a"]}


def test_gates_say_what_counts_of_a_pod_on_its_node() -> None:
    """Source: A112."""
    pod = a_pod(
        "a",
        node="n",
        spec={
            "containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}],
            "resources": {"requests": {"cpu": "4"}},
        },
    )
    assert requested(a_cluster(a_node("n"), pod), "cpu") == [4000]
    off = FeatureGates({"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False})
    assert requested(a_cluster(a_node("n"), pod, gates=off), "cpu") == [1000]
