"""Moving many pods at once shows the same on every row as moving them one by one."""

from typing import Any

import numpy as np
import pytest

from extender.cluster.batches import PodBatch
from extender.cluster.hypothesis import Hypothesis
from extender.cluster.snapshot import Snapshot
from tests.build import a_cluster, a_node, a_pod

PORT = {"containers": [{"name": "a", "ports": [{"hostPort": 80}]}]}
DISK = {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "disk"}}]}


def _cluster() -> Snapshot:
    return a_cluster(
        a_node("m"),
        a_node("n"),
        a_pod("a", node="m", requests={"cpu": "1", "example.com/gpu": "2"}),
        a_pod("b", node="m", requests={"memory": "1Gi"}),
        a_pod("c", node="n", spec=PORT),
        a_pod("d", node="n", spec=DISK),
        a_pod("e", node="n", requests={"cpu": "1"}),
    ).snapshot()


def _rows(cluster: Snapshot) -> dict[str, Any]:
    """All that is shown of each node."""
    view, words = cluster.view(), cluster.vocabulary.resources
    port, disk = cluster.query(a_pod("x", spec=PORT)), cluster.query(a_pod("x", spec=DISK))
    return {
        "requested": {name: view.requested(words.id(name)).tolist() for name in ("cpu", "memory", "example.com/gpu")},
        "nonzero": [view.nonzero_requested(line).tolist() for line in (0, 1)],
        "pods": view.pod_count.tolist(),
        "names": [sorted(pod.key for pod in cluster.pods_on(name).values()) for name in cluster.names],
        "ports": cluster.port_conflicts(port),
        "disks": cluster.disk_conflicts(disk),
    }


def _batch(cluster: Snapshot) -> PodBatch:
    pods = sorted(cluster.placed_pods(), key=lambda pod: pod.key)
    return PodBatch(pods, cluster.rows([pod.node_name for pod in pods]))


@pytest.mark.parametrize(
    "which",
    [[], [0], [0, 1], [2, 3, 4], [0, 1, 2, 3, 4]],
    ids=["none", "one", "a node's", "ports and disks", "all"],
)
def test_pods_taken_away_together_are_gone_as_if_one_by_one(which: list[int]) -> None:
    cluster = _cluster()
    batch, before = _batch(cluster), _rows(cluster)
    together, alone = Hypothesis(cluster), Hypothesis(cluster)

    together.take_away(batch, np.array(which, dtype=np.int64))
    for index in which:
        alone.remove(batch.pods[index])

    assert _rows(together.snapshot()) == _rows(alone.snapshot())
    assert _rows(cluster) == before


def test_pods_that_are_brought_back_are_there_again() -> None:
    cluster = _cluster()
    batch, everybody = _batch(cluster), np.arange(5)
    what_if = Hypothesis(cluster)

    what_if.take_away(batch, everybody)
    what_if.bring(batch, everybody[:2])
    what_if.remove(batch.pods[1])
    what_if.restore(batch.pods[1])
    what_if.bring(batch, everybody[2:])

    assert _rows(what_if.snapshot()) == _rows(cluster)


def test_a_port_that_two_pods_of_a_node_have_is_free_when_one_of_them_goes() -> None:
    """Upstream keeps a set of ports a node. Source: B028."""
    cluster = a_cluster(a_node("n"), a_pod("a", node="n", spec=PORT), a_pod("b", node="n", spec=PORT)).snapshot()
    batch, what_if = _batch(cluster), Hypothesis(cluster)

    what_if.take_away(batch, np.array([0]))
    assert _rows(what_if.snapshot())["ports"] == set()

    what_if.bring(batch, np.array([0]))
    assert _rows(what_if.snapshot())["ports"] == {0}


def test_kept_answers_learn_which_rows_were_written() -> None:
    cluster = _cluster()
    batch, what_if = _batch(cluster), Hypothesis(cluster)
    before = what_if.snapshot()

    what_if.take_away(batch, np.array([2, 3]))

    after = what_if.snapshot()
    assert after.lineage is before.lineage
    changed = after.changed_rows(node_position=before.node_position, pod_position=before.pod_position)
    assert changed is not None
    assert changed.tolist() == [1]


def test_numbers_are_added_up_by_row() -> None:
    cluster = _cluster()
    batch = _batch(cluster)

    assert batch.sums(np.array([1, 2, 3, 4, 5]), len(cluster)).tolist() == [3, 12]
    assert batch.by_shape(lambda shape: len(shape.host_ports)).tolist() == [0, 0, 1, 0, 0]


def test_a_part_of_a_batch_is_a_batch_in_the_order_asked_for() -> None:
    cluster = _cluster()
    part = _batch(cluster).only(np.array([4, 2, 0]))

    assert [pod.key for pod in part.pods] == ["default/e", "default/c", "default/a"]
    assert part.rows.tolist() == [1, 1, 0]
    assert part.special == {1}, "the pod with a port"
    together, alone = Hypothesis(cluster), Hypothesis(cluster)
    together.take_away(part, np.arange(3))
    for pod in part.pods:
        alone.remove(pod)
    assert _rows(together.snapshot()) == _rows(alone.snapshot())


def test_what_is_imagined_on_a_hypothesis_knows_who_left() -> None:
    cluster = _cluster()
    batch, first = _batch(cluster), Hypothesis(cluster)
    first.take_away(batch, np.array([0, 4]))

    second = Hypothesis(first.snapshot())
    second.take_away(batch, np.array([1]))
    first.bring(batch, np.array([4]))

    assert _rows(second.snapshot())["names"] == [[], ["default/c", "default/d"]]
    assert _rows(first.snapshot())["names"] == [["default/b"], ["default/c", "default/d", "default/e"]]


def test_pods_are_listed_by_row() -> None:
    cluster = a_cluster(a_node("m"), a_node("n"), a_pod("a", node="n"), a_pod("b", node="n")).snapshot()

    there = cluster.pods_by_row(np.array([1, 0]))

    assert [[pod.key for pod in pods] for pods in there] == [["default/a", "default/b"], []]
