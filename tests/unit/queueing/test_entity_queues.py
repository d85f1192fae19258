"""The default settings of the scheduling queue."""

from extender.queueing.entity_queues import QueueSettings


def test_the_defaults_are_those_of_kube_scheduler() -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, DefaultPodMaxInUnschedulablePodsDuration (1.36)."""
    settings = QueueSettings()

    assert (settings.initial_backoff, settings.max_backoff) == (1.0, 10.0)
    assert settings.max_in_unschedulable_pods_duration == 300.0
    assert settings.pop_from_backoff_q
    assert not settings.generic_workload
