"""How long pods back off, in which order they come out, and who may come out early."""

import pytest

from extender.basics.backoff import delay
from extender.plugins.priority_sort import PrioritySort
from extender.queueing.backoff import BackoffQueue
from extender.queueing.queued import QueuedPod
from tests.build import a_cluster, a_pod

SORT = PrioritySort()
CLUSTER = a_cluster().snapshot()


def a_queue(**settings: float) -> BackoffQueue:
    return BackoffQueue(lambda pod: SORT.sort_key(pod.entry), **{"initial": 1.0, "most": 10.0, **settings})


def waiting(name: str, since: float, *, rejections: int = 0, errors: int = 0, priority: int = 0) -> QueuedPod:
    rejectors = frozenset({"NodeResourcesFit"}) if rejections else frozenset()
    query = CLUSTER.query(a_pod(name, priority=priority))
    return QueuedPod(query, since, rejections=rejections, errors=errors, rejectors=rejectors)


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (500, 10)])
def test_the_delay_doubles_up_to_a_bound(failures: int, seconds: float) -> None:
    """Source: D022."""
    assert delay(failures, 1, 10) == seconds


def test_errors_count_apart_from_rejections() -> None:
    """Source: D021, D026."""
    assert a_queue().ends(waiting("a", 100, rejections=4, errors=1)) == 101


def test_ends_are_cut_down_to_whole_seconds() -> None:
    """Source: D023."""
    assert a_queue().ends(waiting("a", 100.7, rejections=1)) == 101
    assert a_queue(windows=False).ends(waiting("a", 100.7, rejections=1)) == pytest.approx(101.7)


def test_a_pod_backs_off_through_the_second_in_which_its_backoff_ends() -> None:
    """Source: D024."""
    queue, pod = a_queue(), waiting("a", 100, rejections=1)

    assert queue.backs_off(pod, 101.9)
    assert not queue.backs_off(pod, 102.0)


def test_no_backoff_at_all_if_the_most_is_zero() -> None:
    assert not a_queue(most=0).backs_off(waiting("a", 100, rejections=5), 100)


def test_completed_pods_come_out_rejected_ones_first() -> None:
    queue = a_queue()
    for pod in (
        waiting("error", 100, errors=1),
        waiting("low", 100.2, rejections=1, priority=1),
        waiting("high", 100.8, rejections=1, priority=9),
        waiting("late", 103, rejections=1),
    ):
        queue.put(pod)

    assert queue.next_end() == 101
    assert queue.pop_completed(101.5) == []
    assert [pod.query.pod.metadata.name for pod in queue.pop_completed(102)] == ["high", "low", "error"]
    assert len(queue) == 1


def test_only_rejected_pods_come_out_early() -> None:
    """Source: D007."""
    queue = a_queue()
    queue.put(waiting("error", 100, errors=1))
    assert not queue.can_pop_early

    queue.put(waiting("rejected", 100, rejections=3))
    popped = queue.pop_early()

    assert popped is not None
    assert popped.key == "default/rejected"
    assert "default/error" in queue
