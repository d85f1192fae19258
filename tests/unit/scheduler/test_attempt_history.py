"""The last attempts to schedule pods, and their numbers per second."""

from dataclasses import replace

from extender.framework.status import Code
from extender.scheduler.attempt_history import AttemptCounts, AttemptHistory, AttemptRecord, PluginTimer
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


def test_a_message_of_more_than_16_384_characters_is_cut_because_the_error_of_an_extender_may_be_long() -> None:
    history = AttemptHistory()
    for length in (16_384, 16_385):
        history.record(replace(make_attempt(1.0), message="x" * length))
    cut, whole = (attempt.message for attempt in history.list_attempts(2))
    assert whole == "x" * 16_384
    assert cut == "x" * 16_384 + "... (16385 characters)"


def test_attempts_are_counted_by_the_second_in_which_they_end() -> None:
    history = AttemptHistory()
    for time, result in ((100.1, "scheduled"), (100.9, "error"), (102.0, "scheduled"), (103.5, "scheduled")):
        history.record(make_attempt(time, result=result))
    counts = history.count_per_second(103.9)
    assert len(counts) == 60
    assert counts[-3:] == [AttemptCounts(100, 1, 2, 0.5), AttemptCounts(101), AttemptCounts(102, 1, 1, 0.25)]
    assert history.count_per_second(1000.0) == [AttemptCounts(second) for second in range(940, 1000)]


def test_only_the_last_sixty_seconds_have_counts() -> None:
    history = AttemptHistory()
    for second in range(200):
        history.record(make_attempt(float(second)))
    assert [counts.second for counts in history._counts] == list(range(140, 200))


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


def test_the_time_of_plugins_belongs_to_the_scheduling_cycle_of_their_pod() -> None:
    history = AttemptHistory(PluginTimer())
    timer = history.plugin_timer
    assert timer is not None
    history.start_cycle("uid-a")
    timer.observe_plugin_call("A", "Filter", Code.SUCCESS, 0.25)
    timer.observe_plugin_call("A", "Score", Code.SUCCESS, 0.5)
    history.start_cycle("uid-b")
    timer.observe_plugin_call("A", "Bind", Code.SUCCESS, 8.0)  # the binding cycle of the first pod
    timer.observe_plugin_call("B", "Filter", Code.UNSCHEDULABLE, 0.125)
    for pod in ("b", "a", "a"):
        history.record(make_attempt(100.0, pod))
    assert [attempt.plugin_seconds for attempt in history.list_attempts(3)] == [{}, {"A": 0.75}, {"B": 0.125}]
    assert history.count_per_second(101.0)[-1].plugin_seconds == {"A": 0.75, "B": 0.125}


def test_cycles_without_an_end_are_dropped() -> None:
    timer = PluginTimer()
    for number in range(1001):
        timer.start_cycle(str(number))
        timer.observe_plugin_call("A", "Filter", Code.SUCCESS, 1.0)
    assert (timer.take_seconds("0"), timer.take_seconds("1")) == ({}, {"A": 1.0})


def test_the_scheduler_measures_its_plugins_for_a_timer() -> None:
    harness = SchedulerHarness(make_node("n1"))
    timer = harness.context.attempt_history.plugin_timer = PluginTimer()
    for runtime in harness.context.runtimes.values():
        runtime.runner.add_observer(timer)
    harness.create(make_pod("web"))
    harness.run()
    (attempt,) = harness.context.attempt_history.list_attempts(5)
    assert attempt.plugin_seconds["NodeResourcesFit"] > 0.0
    assert "DefaultBinder" not in attempt.plugin_seconds
