"""The pauses after attempts: a tenth of the time for which an attempt blocks the event loop."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from extender.cache.tables.arrays import IntArray
from extender.cycle.scheduling_cycle import schedule_without_extenders
from extender.event_loop import turn_budget
from extender.framework.status import Rejection
from extender.scheduler import pod_groups
from tests.build import make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.client.scripted_server import Stream
from tests.unit.client.virtual_time import current_loop, run
from tests.unit.cycle.fakes import FakeScore
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.extender_harness import (
    FILTER,
    ExtenderHarness,
    filter_response,
    make_harness,
    run_with_extenders,
)
from tests.unit.scheduler.test_pod_groups import GANG_GATES, make_profile


async def record_start_times(harness: SchedulerHarness, count: int, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Run the scheduling loop. Return the seconds after which each of *count* attempts starts."""
    loop, wake_event, stop_event = current_loop(), asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(turn_budget, "perf_counter", loop.time)
    harness.context.clock = loop
    schedule_one, start_times = harness.scheduler.schedule_one, list[float]()

    async def record_and_schedule() -> bool:
        start_times.append(loop.time())
        if len(start_times) == count:
            stop_event.set()
        return await schedule_one()

    monkeypatch.setattr(harness.scheduler, "schedule_one", record_and_schedule)
    await harness.scheduler.run(wake_event, stop_event)
    await asyncio.gather(*harness.context.tasks)
    return [time - start_times[0] for time in start_times]


class BlockingPlugin(FakeScore):
    """Blocks the event loop for some seconds in Filter, and for some in Score."""

    def __init__(self, filter_seconds: float, score_seconds: float) -> None:
        super().__init__("Blocking", {"n1": 1, "n2": 2})
        self.filter_seconds, self.score_seconds = filter_seconds, score_seconds

    def filter(self, _pod: Any, _nodes: Any, _state: Any) -> Sequence[Rejection]:
        current_loop().suspend(self.filter_seconds)
        return ()

    def score(self, pod: Any, nodes: Any, state: Any) -> IntArray:
        current_loop().suspend(self.score_seconds)
        return super().score(pod, nodes, state)


@pytest.mark.parametrize(
    ("filter_seconds", "response_seconds", "score_seconds", "start_times"),
    [
        pytest.param(0.0, 4.0, 0.0, [0.0, 4.0, 8.0], id="the extender takes long"),
        pytest.param(3.0, 0.0, 0.0, [0.0, 3.3, 6.6], id="Filter takes long, before the request"),
        pytest.param(0.0, 0.0, 2.0, [0.0, 2.2, 4.4], id="Score takes long, after the response"),
        pytest.param(3.0, 4.0, 2.0, [0.0, 9.5, 19.0], id="all take long"),
    ],
)
def test_an_attempt_with_an_extender_pauses_for_a_tenth_of_the_time_without_the_wait(
    filter_seconds: float,
    response_seconds: float,
    score_seconds: float,
    start_times: Sequence[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other tasks run while the response is awaited."""
    harness = make_harness(BlockingPlugin(filter_seconds, score_seconds), names=("n1", "n2"))
    harness.create(*(make_pod(f"web-{number}") for number in range(3)))

    async def test(extender_harness: ExtenderHarness) -> None:
        response = Stream([response_seconds, filter_response("n1", "n2")])
        extender_harness.server.respond("POST /a/filter", *[response] * 3)
        assert await record_start_times(harness, 3, monkeypatch) == pytest.approx(start_times, abs=0.05)
        assert [harness.node_of(pod) for pod in harness.api.pods.values()] == ["n2"] * 3

    run_with_extenders(harness, [FILTER], test)


def test_the_pauses_after_the_members_of_a_group_are_not_repeated_after_the_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = [make_pod_group(name, min_count=3) for name in ("first", "second")]
    harness = SchedulerHarness(make_node("n1"), *groups, profile=make_profile(*GANG_GATES))
    for group in ("first", "second"):
        harness.create(*(make_group_member(f"{group}-{number}", group=group) for number in range(3)))

    def block_and_schedule(*arguments: Any) -> Any:
        current_loop().suspend(0.3)
        return schedule_without_extenders(*arguments)

    monkeypatch.setattr(pod_groups, "schedule_without_extenders", block_and_schedule)
    start_times = run(record_start_times(harness, 2, monkeypatch))
    assert start_times == pytest.approx([0.0, 0.99], abs=0.005), "three members of 0.3 s, each with a pause of 0.03 s"
