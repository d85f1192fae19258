"""Other tasks run while a pod group is scheduled."""

import asyncio
from typing import Any

import pytest

from extender.cycle.scheduling_cycle import schedule_without_extenders
from extender.scheduler import pod_groups
from tests.build import make_node
from tests.pod_group_builders import make_pod_group
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.test_pod_groups import GANG_GATES, make_profile, members
from tests.unit.turn_clock import TurnClock


def test_other_tasks_run_after_10_ms_between_the_members_of_a_group(
    turn_clock: TurnClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bindings start in one turn: then Permit is decided when they run, and no pod gets a nomination."""
    harness = SchedulerHarness(make_node("n1"), make_pod_group(min_count=3), profile=make_profile(*GANG_GATES))
    harness.create(*members("abc"))
    order: list[str] = []

    def record(name: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            order.append(name)
            turn_clock.seconds += 0.005
            return function(*args)

        return call

    schedule, bind = schedule_without_extenders, pod_groups.PodGroupScheduler._bind_member
    monkeypatch.setattr(pod_groups, "schedule_without_extenders", record("schedule", schedule))
    monkeypatch.setattr(pod_groups.PodGroupScheduler, "_bind_member", record("bind", bind))

    async def run_other_task() -> None:
        while True:
            await asyncio.sleep(0)
            order.append("other task")

    async def main() -> None:
        other_task = asyncio.create_task(run_other_task())
        await harness.scheduler.schedule_one()
        other_task.cancel()
        await asyncio.gather(*harness.context.tasks)

    asyncio.run(main())
    first, last = order.index("schedule"), len(order) - order[::-1].index("bind")
    assert [api_call.kind for api_call in harness.api.calls_to("status")] == ["PodGroup"]
    assert order[first:last] == [
        *("schedule", "schedule", "other task"),
        *("schedule", "bind", "bind", "bind"),
    ]


def test_requests_complete_after_a_member_of_a_second(turn_clock: TurnClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewal of the lease takes several turns: it failed if the members of a group took ten seconds each."""
    harness = SchedulerHarness(make_node("n1"), make_pod_group(min_count=2), profile=make_profile(*GANG_GATES))
    harness.create(*members("ab"))
    order: list[str] = []
    schedule = schedule_without_extenders

    def schedule_slowly(*args: Any) -> Any:
        order.append("schedule")
        turn_clock.seconds += 1.0
        return schedule(*args)

    monkeypatch.setattr(pod_groups, "schedule_without_extenders", schedule_slowly)

    async def run_request() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        order.append("response")

    async def main() -> None:
        request = asyncio.create_task(run_request())
        await harness.scheduler.schedule_one()
        await asyncio.gather(request, *harness.context.tasks)

    asyncio.run(main())
    assert order == ["schedule", "response", "schedule"]
