"""The settings of the scheduling queue, and pods that a QueueSort plugin cannot sort."""

from dataclasses import replace
from typing import Any

import pytest

from extender.framework.plugin_errors import check_sort_key
from extender.queueing.entity_queues import QueueSettings
from extender.queueing.pod_group_queue import make_scheduling_queue
from tests.build import make_cluster, make_pod
from tests.unit.cycle.fakes import make_profile


def test_the_defaults_are_those_of_kube_scheduler() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, DefaultPodMaxInUnschedulablePodsDuration (1.36)."""
    settings = QueueSettings()

    assert (settings.initial_backoff, settings.max_backoff) == (1.0, 10.0)
    assert settings.max_in_unschedulable_pods_duration == 300.0
    assert settings.pop_from_backoff_q
    assert not settings.generic_workload


class ByRank:
    """Sorts by the label rank, which some pods lack."""

    name = "ByRank"

    @check_sort_key
    def sort_key(self, entry: Any) -> tuple[int]:
        return (int(entry.pod.pod.metadata.labels["rank"]),)


def test_pods_for_which_the_queue_sort_plugin_fails_are_sorted_last(caplog: pytest.LogCaptureFixture) -> None:
    profile = replace(make_profile(), queue_sort=ByRank())
    queue = make_scheduling_queue({"default-scheduler": profile}, lambda _pod, _plugin: None, QueueSettings())
    for name, labels in (("a", {}), ("b", {"rank": "2"}), ("c", {}), ("d", {"rank": "1"})):
        queue.add(make_cluster().make_pod_info(make_pod(name, labels=labels)), 0.0)
    entities = [queue.pop() for _ in range(5)]
    assert [entity and entity.pods[0].key for entity in entities] == [
        "default/d",
        "default/b",
        "default/a",
        "default/c",
        None,
    ]
    assert caplog.messages == [
        "running QueueSort plugin \"ByRank\": KeyError: 'rank'; pods for which it fails, such as default/a, "
        "are sorted last"
    ]
