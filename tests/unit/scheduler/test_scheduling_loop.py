"""The scheduling loop: when it ends."""

import asyncio

from tests.build import make_node, make_pod
from tests.unit.client.virtual_time import current_loop, run
from tests.unit.scheduler.builders import SchedulerHarness


def test_the_loop_ends_at_once_if_it_is_stopped_between_two_pods() -> None:
    harness = SchedulerHarness(make_node("n1"))
    harness.create(*(make_pod(f"web-{number}") for number in range(3)))

    async def main() -> None:
        wake_event, stop_event = asyncio.Event(), asyncio.Event()
        start_time = current_loop().time()
        loop_task = asyncio.create_task(harness.scheduler.run(wake_event, stop_event))
        await asyncio.sleep(0)
        stop_event.set()
        wake_event.set()
        await loop_task
        assert current_loop().time() == start_time
        assert len(harness.cache.assigned_pods) == 1
        await asyncio.gather(*harness.context.tasks)

    run(main())
