"""Backoff durations, and the order in which pods leave the backoff queue."""

import math
from typing import Any

import pytest

from extender.plugins.priority_sort import PrioritySort
from extender.queueing.backoff_queue import BackoffQueue, calculate_backoff
from extender.queueing.queued_entities import QueuedPodInfo
from tests.build import make_cluster, make_pod

QUEUE_SORT = PrioritySort()
SNAPSHOT = make_cluster().snapshot()


def make_queue(**settings: Any) -> BackoffQueue:
    return BackoffQueue(
        lambda pod: QUEUE_SORT.sort_key(pod.queue_sort_entry),
        **({"initial_backoff": 1.0, "max_backoff": 10.0} | settings),
    )


def make_queued_pod(
    name: str, timestamp: float, *, rejections: int = 0, errors: int = 0, priority: int = 0
) -> QueuedPodInfo:
    return QueuedPodInfo(
        SNAPSHOT.make_pod_info(make_pod(name, priority=priority)),
        timestamp=timestamp,
        unschedulable_count=rejections,
        consecutive_error_count=errors,
        unschedulable_plugins=frozenset({"NodeResourcesFit"}) if rejections else frozenset(),
    )


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (500, 10)])
def test_the_backoff_doubles_up_to_its_maximum(failures: int, seconds: float) -> None:
    """Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.calculateBackoffDuration (1.36)."""
    assert calculate_backoff(failures, 1, 10) == seconds


def test_the_count_of_errors_takes_precedence_over_that_of_rejections() -> None:
    """Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.calculateBackoffDuration,
    backoffQueue.getBackoffTime (1.36).
    """
    assert make_queue().get_backoff_expiration(make_queued_pod("a", 100, rejections=4, errors=1)) == 101


def test_expirations_are_rounded_down_to_whole_seconds() -> None:
    """Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.getBackoffTime (1.36)."""
    assert make_queue().get_backoff_expiration(make_queued_pod("a", 100.7, rejections=1)) == 101
    assert make_queue(align_to_windows=False).get_backoff_expiration(
        make_queued_pod("a", 100.7, rejections=1)
    ) == pytest.approx(101.7)


def test_a_pod_backs_off_until_the_end_of_the_second_in_which_its_backoff_expires() -> None:
    """Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.isPodBackingoff (1.36)."""
    queue, pod = make_queue(), make_queued_pod("a", 100, rejections=1)

    assert queue.is_pod_backing_off(pod, 101.9)
    assert not queue.is_pod_backing_off(pod, 102.0)


def test_a_pod_that_never_failed_does_not_back_off_even_in_the_second_of_its_arrival() -> None:
    queue, pod = make_queue(), make_queued_pod("a", 100)

    assert queue.get_backoff_expiration(pod) == -math.inf
    assert not queue.is_pod_backing_off(pod, 100)


def test_a_maximum_of_zero_disables_backoff() -> None:
    assert not make_queue(max_backoff=0).is_pod_backing_off(make_queued_pod("a", 100, rejections=5), 100)


def test_completed_pods_are_popped_rejected_ones_first() -> None:
    queue = make_queue()
    for pod in (
        make_queued_pod("error", 100, errors=1),
        make_queued_pod("low", 100.2, rejections=1, priority=1),
        make_queued_pod("high", 100.8, rejections=1, priority=9),
        make_queued_pod("late", 103, rejections=1),
    ):
        queue.add_or_update(pod)

    assert queue.pop_all_backoff_completed(101.5) == []
    popped = [pod.key for pod in queue.pop_all_backoff_completed(102)]
    assert popped == ["default/high", "default/low", "default/error"]
    assert len(queue) == 1


def test_only_rejected_pods_are_popped_before_their_backoff_expires() -> None:
    """Source: pkg/scheduler/backend/queue/active_queue.go, activeQueue.unlockedPop (1.36)."""
    queue = make_queue()
    queue.add_or_update(make_queued_pod("error", 100, errors=1))
    assert not queue.can_pop_backoff

    queue.add_or_update(make_queued_pod("rejected", 100, rejections=3))
    popped = queue.pop_backoff()

    assert popped is not None
    assert popped.key == "default/rejected"
    assert "default/error" in queue


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(-1, 0.0), (0, 0.0), (1, 1.5), (2, 3.0), (3, 6.0), (4, 10.0), (60, 10.0), (61, 10.0), (10_000, 10.0)],
)
def test_the_backoff_doubles_with_each_failure_up_to_the_maximum(failures: int, seconds: float) -> None:
    assert calculate_backoff(failures, 1.5, 10.0) == seconds
