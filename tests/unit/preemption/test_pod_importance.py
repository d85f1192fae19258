"""The order in which pods are reprieved."""

import numpy as np

from extender.cache.pod_batch import PodBatch
from extender.preemption.pod_importance import NOT_STARTED, get_start_time, order_by_importance
from tests.build import make_cluster
from tests.unit.preemption.builders import make_small_node, make_victim


def test_pods_are_ordered_by_group_priority_and_start() -> None:
    """Source: pkg/scheduler/util/utils.go, MoreImportantPod (1.36)."""
    pods = {
        "young": make_victim("young", "n1", start="12:00"),
        "old": make_victim("old", "n1", start="08:00"),
        "not-started": make_victim("not-started", "n1", start=""),
        "important": make_victim("important", "n1", priority=9, start="12:00"),
        "other-group": make_victim("other-group", "n1", priority=99),
    }
    snapshot = make_cluster(make_small_node("n1"), *pods.values()).snapshot()
    assigned = {pod.pod.metadata.name: pod for pod in snapshot.pods_on("n1").values()}
    batch = PodBatch([assigned[name] for name in pods], np.zeros(5, dtype=np.int64))

    order = order_by_importance(batch, np.array([0, 0, 0, 0, 1]))

    names = list(pods)
    assert [names[index] for index in order] == ["important", "old", "young", "not-started", "other-group"]


def test_a_pod_without_a_start_time_has_not_started() -> None:
    snapshot = make_cluster(make_small_node("n1"), make_victim("a", "n1", start="")).snapshot()
    (pod,) = snapshot.pods_on("n1").values()

    assert get_start_time(pod) == NOT_STARTED
