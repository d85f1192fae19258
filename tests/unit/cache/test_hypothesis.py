"""A hypothesis changes pods, nodes and nominations of a copy; its snapshot and the cache stay as they are."""

from collections.abc import Callable

import numpy as np
import pytest

from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_batch import PodBatch
from extender.cache.snapshot import Snapshot
from tests.build import make_cluster, make_node, make_pod


def pod_names(snapshot: Snapshot) -> list[list[str]]:
    """The names of the pods on each node."""
    return [sorted(pod.pod.metadata.name for pod in snapshot.pods_on(name).values()) for name in snapshot.names]


def test_a_pod_is_assumed_on_a_node_of_the_copy_only() -> None:
    cache = make_cluster(make_node("n"), make_pod("a", node="n", requests={"cpu": "1"}))
    snapshot = cache.snapshot()
    hypothesis = Hypothesis(snapshot)

    assumed_pod = hypothesis.assume_pod(snapshot.make_pod_info(make_pod("b", requests={"cpu": "2"})), "n")

    assert (assumed_pod.node_name, assumed_pod.assumed) == ("n", True)
    assert pod_names(hypothesis.snapshot()) == [["a", "b"]]
    assert hypothesis.snapshot().view().requested(0).tolist() == [3000]
    assert pod_names(snapshot) == [["a"]]
    assert snapshot.view().requested(0).tolist() == [1000]


def test_a_removed_pod_can_be_restored() -> None:
    snapshot = make_cluster(make_node("n"), make_pod("a", node="n")).snapshot()
    hypothesis = Hypothesis(snapshot)
    (pod,) = snapshot.assigned_pods()

    hypothesis.remove_pod(pod)
    assert pod_names(hypothesis.snapshot()) == [[]]
    with pytest.raises(KeyError):
        hypothesis.remove_pod(pod)
    hypothesis.restore_pod(pod)

    assert pod_names(hypothesis.snapshot()) == [["a"]]


def test_the_ports_of_an_evicted_pod_are_free_even_if_another_pod_uses_them() -> None:
    """Source: kube-scheduler/framework/types.go, HostPortInfo.Remove (1.37)."""
    spec = {"containers": [{"name": "app", "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]}]}
    snapshot = make_cluster(make_node("n"), *(make_pod(name, node="n", spec=spec) for name in "ab")).snapshot()
    pods = snapshot.assigned_pods()
    ports, batch = pods[0].signature.host_ports, PodBatch(pods, np.zeros(2, dtype=np.int64))

    def find_rows_in_use(change: Callable[[Hypothesis], object]) -> set[int]:
        hypothesis = Hypothesis(snapshot)
        change(hypothesis)
        return hypothesis.snapshot().tables.host_ports.find_conflicting_rows(ports)

    assert find_rows_in_use(lambda hypothesis: hypothesis.evict_pod(pods[0])) == set()
    assert find_rows_in_use(lambda hypothesis: hypothesis.evict_pods(batch, np.array([0]))) == set()
    assert find_rows_in_use(lambda hypothesis: hypothesis.remove_pod(pods[0])) == {0}
    assert find_rows_in_use(lambda hypothesis: hypothesis.remove_pods(batch, np.array([0]))) == {0}
    assert find_rows_in_use(lambda hypothesis: hypothesis.remove_pods(batch, np.array([0, 1]))) == set()
    assert snapshot.tables.host_ports.find_conflicting_rows(ports) == {0}


def test_the_images_of_all_nodes_are_forgotten_in_the_copy_only() -> None:
    snapshot = make_cluster(make_node("n", images=[{"names": ["web:v1"], "sizeBytes": 5}])).snapshot()
    hypothesis = Hypothesis(snapshot)

    hypothesis.forget_images()

    assert hypothesis.snapshot().image_state("web:v1") is None
    assert snapshot.image_state("web:v1") is not None


def test_nominations_of_one_pod_are_removed() -> None:
    first, second = make_pod("first"), make_pod("second")
    cache = make_cluster(make_node("n"), first, second)
    cache.nominate(first, "n")
    cache.nominate(second, "n")
    snapshot = cache.snapshot()
    hypothesis = Hypothesis(snapshot)

    hypothesis.remove_nomination(snapshot.make_pod_info(first))

    assert [pod.key for pod in hypothesis.snapshot().nominated_pods("n")] == ["default/second"]
    assert [pod.key for pod in snapshot.nominated_pods("n")] == ["default/first", "default/second"]


def test_a_nominated_pod_is_replaced_on_its_node() -> None:
    first, second = make_pod("first", priority=5), make_pod("second", priority=5)
    cache = make_cluster(make_node("n"), first, second)
    cache.nominate(first, "n")
    cache.nominate(second, "n")
    snapshot = cache.snapshot()
    hypothesis = Hypothesis(snapshot)

    hypothesis.replace_nominated_pod(snapshot.make_pod_info(make_pod("first")))

    assert [(pod.key, pod.priority) for pod in hypothesis.snapshot().nominated_pods("n")] == [
        ("default/first", 0),
        ("default/second", 5),
    ]
    assert [pod.priority for pod in snapshot.nominated_pods("n")] == [5, 5]


def test_pods_of_a_replaced_node_still_count() -> None:
    snapshot = make_cluster(make_node("n"), make_pod("a", node="n", requests={"cpu": "1"})).snapshot()
    hypothesis = Hypothesis(snapshot)

    hypothesis.add_or_update_node(make_node("n", allocatable={"cpu": "2", "pods": "1"}))
    hypothesis.add_or_update_node(make_node("m"))

    view = hypothesis.snapshot().view()
    assert (view.allocatable(0).tolist(), view.requested(0).tolist()) == ([2000, 4000], [1000, 0])
    assert snapshot.view().allocatable(0).tolist() == [4000]


def test_a_hypothesis_of_a_hypothesis_has_its_removed_pods_too() -> None:
    snapshot = make_cluster(
        make_node("m"),
        make_node("n"),
        make_pod("a", node="m"),
        make_pod("b", node="m"),
        make_pod("c", node="n"),
        make_pod("d", node="n"),
        make_pod("e", node="n"),
    ).snapshot()
    pods = sorted(snapshot.assigned_pods(), key=lambda pod: pod.key)
    batch, first = PodBatch(pods, snapshot.rows([pod.node_name for pod in pods])), Hypothesis(snapshot)
    first.remove_pods(batch, np.array([0, 4]))

    second = Hypothesis(first.snapshot())
    second.remove_pods(batch, np.array([1]))
    first.restore_pods(batch, np.array([4]))

    assert pod_names(second.snapshot()) == [[], ["c", "d"]]
    assert pod_names(first.snapshot()) == [["b"], ["c", "d", "e"]]
