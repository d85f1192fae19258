"""Moving pods in a batch gives the same node columns as moving them one by one."""

from typing import Any

import numpy as np
import pytest

from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_batch import PodBatch
from extender.cache.snapshot import Snapshot
from tests.build import make_cluster, make_node, make_pod

PORT = {"containers": [{"name": "a", "ports": [{"hostPort": 80}]}]}
DISK = {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "disk"}}]}


def _snapshot() -> Snapshot:
    return make_cluster(
        make_node("m", allocatable={"cpu": "4", "pods": "9", "example.com/gpu": "2"}),
        make_node("n"),
        make_pod("a", node="m", requests={"cpu": "1", "example.com/gpu": "2"}),
        make_pod("b", node="m", requests={"memory": "1Gi"}),
        make_pod("c", node="n", spec=PORT),
        make_pod("d", node="n", spec=DISK),
        make_pod("e", node="n", requests={"cpu": "1"}),
    ).snapshot()


def _rows(snapshot: Snapshot) -> dict[str, Any]:
    """Return everything that plugins read of each node."""
    view, resources = snapshot.view(), snapshot.symbols.resources
    port, disk = snapshot.make_pod_info(make_pod("x", spec=PORT)), snapshot.make_pod_info(make_pod("x", spec=DISK))
    return {
        "requested": {
            name: view.requested(resources.intern(name)).tolist() for name in ("cpu", "memory", "example.com/gpu")
        },
        "nonzero": [view.nonzero_requested(resource_id).tolist() for resource_id in (0, 1)],
        "pods": view.pod_count.tolist(),
        "names": [sorted(pod.key for pod in snapshot.pods_on(name).values()) for name in snapshot.names],
        "ports": snapshot.rows_with_port_conflict(port),
        "disks": snapshot.rows_with_disk_conflict(disk),
    }


def _batch(snapshot: Snapshot) -> PodBatch:
    pods = sorted(snapshot.assigned_pods(), key=lambda pod: pod.key)
    return PodBatch(pods, snapshot.rows([pod.node_name for pod in pods]))


@pytest.mark.parametrize(
    "indices",
    [[], [0], [0, 1], [2, 3, 4], [0, 1, 2, 3, 4]],
    ids=["none", "one", "a node's", "ports and disks", "all"],
)
def test_removing_pods_in_a_batch_equals_removing_them_one_by_one(indices: list[int]) -> None:
    snapshot = _snapshot()
    batch, old_rows = _batch(snapshot), _rows(snapshot)
    batched, one_by_one = Hypothesis(snapshot), Hypothesis(snapshot)

    batched.remove_pods(batch, np.array(indices, dtype=np.int64))
    for index in indices:
        one_by_one.remove_pod(batch.pods[index])

    assert _rows(batched.snapshot()) == _rows(one_by_one.snapshot())
    assert _rows(snapshot) == old_rows


def test_removed_pods_can_be_added_again() -> None:
    snapshot = _snapshot()
    batch, all_pods = _batch(snapshot), np.arange(5)
    hypothesis = Hypothesis(snapshot)

    hypothesis.remove_pods(batch, all_pods)
    hypothesis.restore_pods(batch, all_pods[:2])
    hypothesis.remove_pod(batch.pods[1])
    hypothesis.restore_pod(batch.pods[1])
    hypothesis.restore_pods(batch, all_pods[2:])

    assert _rows(hypothesis.snapshot()) == _rows(snapshot)


def test_evicting_one_of_two_pods_with_a_host_port_frees_the_port() -> None:
    """Upstream has a set of host ports for each node.

    Source: kube-scheduler/framework/types.go, HostPortInfo.CheckConflict (1.36).
    """
    snapshot = make_cluster(
        make_node("n"), make_pod("a", node="n", spec=PORT), make_pod("b", node="n", spec=PORT)
    ).snapshot()
    batch, hypothesis = _batch(snapshot), Hypothesis(snapshot)

    hypothesis.evict_pods(batch, np.array([0]))
    assert _rows(hypothesis.snapshot())["ports"] == set()

    hypothesis.restore_pods(batch, np.array([0]))
    assert _rows(hypothesis.snapshot())["ports"] == {0}


def test_moving_pods_is_recorded_in_the_change_log() -> None:
    snapshot = _snapshot()
    batch, hypothesis = _batch(snapshot), Hypothesis(snapshot)
    old = hypothesis.snapshot()

    hypothesis.remove_pods(batch, np.array([2, 3]))

    new = hypothesis.snapshot()
    assert new.position.history_id is old.position.history_id
    changed = new.find_changed_rows(old.position)
    assert changed is not None
    assert changed.tolist() == [1]


def test_values_are_summed_by_row() -> None:
    snapshot = _snapshot()
    batch = _batch(snapshot)

    assert batch.sum_by_row(np.array([1, 2, 3, 4, 5]), len(snapshot)).tolist() == [3, 12]
    assert batch.map_signatures(lambda signature: len(signature.host_ports)).tolist() == [0, 0, 1, 0, 0]


def test_selected_pods_form_a_batch_in_the_order_of_their_indices() -> None:
    snapshot = _snapshot()
    selected = _batch(snapshot).select(np.array([4, 2, 0]))

    assert [pod.key for pod in selected.pods] == ["default/e", "default/c", "default/a"]
    assert selected.rows.tolist() == [1, 1, 0]
    assert selected.indices_with_ports_volumes_or_claims == {1}, "the pod with a port"
    batched, one_by_one = Hypothesis(snapshot), Hypothesis(snapshot)
    batched.remove_pods(selected, np.arange(3))
    for pod in selected.pods:
        one_by_one.remove_pod(pod)
    assert _rows(batched.snapshot()) == _rows(one_by_one.snapshot())
