"""The resource names of pods: only those that nodes have become columns of all nodes."""

from typing import Any

from extender.analysis.pod_placer import PodPlacer
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from tests.build import make_cluster, make_node, make_pod
from tests.consistency import find_inconsistencies
from tests.unit.planning.clusters import SETUP

MANY_RESOURCES = {f"example.com/{number}": "1" for number in range(5000)}


def count_columns(cache: Cache) -> int:
    with cache.read() as snapshot:
        return len(snapshot.symbols.resources)


def place(cache: Cache, pod: Pod) -> Any:
    return PodPlacer(cache, SETUP.profiles, wiring.make_runtime()).place(pod)


def test_pods_with_many_resources_add_no_columns() -> None:
    cache = make_cluster(make_node("n1"))
    for start in (0, 250):
        requests = {f"example.com/{number}": "1" for number in range(start, start + 250)}
        attempt = place(cache, make_pod(f"pending-{start}", requests=requests))
        assert attempt.node == ""
        assert set(attempt.reasons) == {f"Insufficient {name}" for name in requests}
    cache.add_or_update_pod(make_pod("assigned", node="n1", requests={f"other-{name}": "1" for name in MANY_RESOURCES}))
    assert count_columns(cache) == 3
    assert place(cache, make_pod("plain", requests={"cpu": "1"})).node == "n1"


def test_a_pod_that_requests_a_resource_before_a_node_has_it_is_placed_there() -> None:
    cache = make_cluster(make_node("n1"), make_pod("many", node="n1", requests=MANY_RESOURCES))
    pod = make_pod("gpu", requests={"example.com/gpu": "2"})
    assert place(cache, pod).reasons == ("Insufficient example.com/gpu",)
    cache.add_or_update_node(make_node("n2", allocatable={"cpu": "1", "pods": "9", "example.com/gpu": "3"}))
    assert place(cache, pod).node == "n2"
    assert place(cache, make_pod("gpu-2", requests={"example.com/gpu": "2"})).reasons == (
        "Insufficient example.com/gpu",
    )


def test_a_node_adds_at_most_256_resources_and_another_node_can_still_add_one() -> None:
    many = make_node("n1", allocatable={"cpu": "1", "pods": "9", **MANY_RESOURCES})
    cache = make_cluster(many, make_node("n2", allocatable={"cpu": "1", "pods": "9", "example.com/gpu": "1"}))
    assert count_columns(cache) == 3 + 256 + 1
    assert place(cache, make_pod("gpu", requests={"example.com/gpu": "1"})).node == "n2"
    assert place(cache, make_pod("first", requests={"example.com/0": "1"})).node == "n1"
    assert place(cache, make_pod("last", requests={"example.com/4999": "1"})).reasons == (
        "Insufficient example.com/4999",
    )


def test_a_node_with_changing_resources_adds_at_most_1024() -> None:
    cache = make_cluster(make_node("n1"))
    for start in range(0, 5000, 200):
        new = {f"example.com/{number}": "1" for number in range(start, start + 200)}
        cache.add_or_update_node(make_node("n1", allocatable={"cpu": "1", "pods": "9", **new}))
    assert count_columns(cache) == 1 + 1024
    assert place(cache, make_pod("plain", requests={"cpu": "1"})).node == "n1"


def test_requests_count_also_if_their_pods_were_assigned_before_the_first_node_had_the_resource() -> None:
    """Several pods got the same GPU if many other resources were requested before."""
    early = make_pod("early", node="n1", requests={"example.com/gpu": "2"})
    early_2 = make_pod("early-2", node="n2", requests={"example.com/gpu": "1"})
    cache = make_cluster(make_node("n1"), make_pod("many", node="n1", requests=MANY_RESOURCES), early, early_2)
    for name in ("n1", "n2"):
        cache.add_or_update_node(make_node(name, allocatable={"cpu": "1", "pods": "9", "example.com/gpu": "3"}))
    assert find_inconsistencies(cache.snapshot()) == []
    assert place(cache, make_pod("gpu", requests={"example.com/gpu": "3"})).reasons == ("Insufficient example.com/gpu",)
    assert place(cache, make_pod("gpu", requests={"example.com/gpu": "2"})).node == "n2"
    assert place(cache, make_pod("gpu-2", requests={"example.com/gpu": "1"})).node == "n1"
    cache.remove_pod(early.metadata.uid)
    assert find_inconsistencies(cache.snapshot()) == []


def test_a_removed_pod_with_other_resources_leaves_the_amounts_as_before() -> None:
    cache = make_cluster(make_node("n1"))
    cache.add_or_update_pod(make_pod("many", node="n1", requests=MANY_RESOURCES))
    cache.add_or_update_node(make_node("n1", allocatable={"cpu": "1", "pods": "9", "example.com/4999": "3"}))
    [many] = cache.assigned_pods.values()
    cache.remove_pod(many.uid)
    with cache.read() as snapshot:
        assert all(
            snapshot.view().requested(resource_id).tolist() == [0]
            for resource_id in range(len(snapshot.symbols.resources))
        )
