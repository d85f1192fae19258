"""The order of the pods on a node, which decides between equally important victims of preemption."""

from collections.abc import Callable

import pytest

from extender.cache.cache import Cache
from tests.build import make_node, make_pod


def delete(cache: Cache, name: str) -> None:
    cache.remove_pod(f"uid-default-{name}")


def change_status(cache: Cache, name: str) -> None:
    cache.add_or_update_pod(make_pod(name, node="n1", status={"message": "changed"}))


def change_requests(cache: Cache, name: str) -> None:
    cache.add_or_update_pod(make_pod(name, node="n1", requests={"cpu": "1"}))


@pytest.mark.parametrize(
    ("change", "name", "expected"),
    [
        (delete, "a", ["d", "b", "c"]),
        (delete, "c", ["a", "b", "d"]),
        (delete, "d", ["a", "b", "c"]),
        (change_status, "a", ["d", "b", "c", "a"]),
        (change_status, "d", ["a", "b", "c", "d"]),
        (change_requests, "b", ["a", "d", "c", "b"]),
    ],
)
def test_the_last_pod_takes_the_place_of_one_that_is_removed_or_changed(
    change: Callable[[Cache, str], None], name: str, expected: list[str]
) -> None:
    """A changed pod is the last one, as after RemovePod and AddPod of kube-scheduler's NodeInfo."""
    cache = Cache()
    cache.add_or_update_node(make_node("n1"))
    for pod_name in "abcd":
        cache.add_or_update_pod(make_pod(pod_name, node="n1"))
    change(cache, name)
    assert [pod.pod.metadata.name for pod in cache.snapshot().pods_on("n1").values()] == expected


def test_a_confirmed_pod_is_the_last_one() -> None:
    cache = Cache()
    cache.add_or_update_node(make_node("n1"))
    for name in ("a", "b"):
        cache.assume(make_pod(name), "n1")
    cache.add_or_update_pod(make_pod("a", node="n1"))
    assert [pod.pod.metadata.name for pod in cache.snapshot().pods_on("n1").values()] == ["b", "a"]
