"""A pod in the cache is nominated for at most one node, until it has a node or is gone."""

from collections.abc import Callable

import pytest

from extender.cache.cache import Cache
from tests.build import make_cluster, make_node, make_pod


def test_a_pod_is_nominated_until_it_is_assumed() -> None:
    pod = make_pod("web", priority=5)
    cache = make_cluster(make_node("n1"), pod)

    cache.nominate(pod, "n1")
    assert [pod_info.key for pod_info in cache.snapshot().nominated_pods("n1")] == ["default/web"]

    cache.assume(pod, "n1")
    assert cache.snapshot().nominated_pods("n1") == ()


def test_a_pod_is_nominated_for_one_node_at_a_time() -> None:
    pod = make_pod("web")
    cache = make_cluster(make_node("n1"), make_node("n2"), pod)

    cache.nominate(pod, "n1")
    cache.nominate(pod, "n2")

    assert [pod_info.key for pod_info in cache.snapshot().nominated_pods("n1")] == []
    assert [pod_info.key for pod_info in cache.snapshot().nominated_pods("n2")] == ["default/web"]


@pytest.mark.parametrize(
    "change",
    [
        lambda cache: cache.add_or_update_pod(make_pod("web", node="n2")),
        lambda cache: cache.add_or_update_pod(make_pod("web", status={"phase": "Succeeded"})),
        lambda cache: cache.remove_pod("uid-default-web"),
    ],
    ids=["it gets another node", "it finishes", "it is deleted"],
)
def test_a_pod_is_nominated_until(change: Callable[[Cache], None]) -> None:
    cache = make_cluster(make_node("n1"), make_node("n2"), make_pod("web"))
    for name, node in (("web", "n1"), ("other", "n2")):
        cache.nominate(make_pod(name), node)
    change(cache)
    nominated_pods = cache.snapshot().nominated_pods_by_node
    assert {node: [pod.key for pod in pods] for node, pods in nominated_pods.items()} == {"n2": ["default/other"]}
    assert dict(cache.pending_pods) == {}
