"""The last attempts to schedule pods, and their numbers per second."""

from extender.scheduler.attempt_history import AttemptCounts, AttemptHistory, AttemptRecord
from tests.build import make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness


def make_attempt(time: float, pod: str = "a", result: str = "scheduled") -> AttemptRecord:
    return AttemptRecord(time, f"default/{pod}", f"uid-{pod}", result, "n1", "", 0.25, 1)


def test_the_newest_attempts_come_first_and_old_ones_are_dropped() -> None:
    history = AttemptHistory()
    for number in range(1001):
        history.record(make_attempt(float(number), pod=str(number)))
    assert [attempt.pod for attempt in history.list_attempts(2)] == ["default/1000", "default/999"]
    assert len(history.list_attempts(5000)) == 1000
    assert history.list_attempts_of_pod("uid-0") == []
    assert [attempt.time for attempt in history.list_attempts_of_pod("uid-1")] == [1.0]


def test_attempts_are_counted_by_the_second_in_which_they_end() -> None:
    history = AttemptHistory()
    for time, result in ((100.1, "scheduled"), (100.9, "error"), (102.0, "scheduled"), (103.5, "scheduled")):
        history.record(make_attempt(time, result=result))
    counts = history.count_per_second(103.9)
    assert len(counts) == 60
    assert counts[-3:] == [AttemptCounts(100, 1, 2, 0.5), AttemptCounts(101), AttemptCounts(102, 1, 1, 0.25)]
    assert history.count_per_second(1000.0) == [AttemptCounts(second) for second in range(940, 1000)]


def test_the_scheduler_records_bound_pods_and_failures() -> None:
    harness = SchedulerHarness(make_node("n1", allocatable={"cpu": "1", "pods": "10"}))
    harness.create(make_pod("web", requests={"cpu": "1"}))
    harness.run()
    harness.create(make_pod("large", requests={"cpu": "8"}))
    harness.run()
    large, web = harness.context.attempt_history.list_attempts(5)
    assert (web.pod, web.result, web.node, web.message, web.number) == ("default/web", "scheduled", "n1", "", 1)
    assert (large.pod, large.result, large.node, large.number) == ("default/large", "unschedulable", "", 1)
    assert large.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert web.uid == make_pod("web").metadata.uid
