"""The scheduling loop: when it ends, and what it does while pods wait in the queue."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from extender.client.errors import ServerError
from extender.event_loop import turn_budget
from extender.scheduler.event_handlers import ClusterEventDispatcher
from extender.scheduler.scheduler import Scheduler
from tests.build import make_node, make_pod
from tests.coroutines import check_cancellation
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


@pytest.mark.parametrize("turns", range(5))
def test_a_cancelled_loop_ends_although_it_is_woken_at_the_same_moment(turns: int) -> None:
    harness = SchedulerHarness(make_node("n1"))

    async def main() -> None:
        wake_event = asyncio.Event()
        loop_task = asyncio.create_task(harness.scheduler.run(wake_event, asyncio.Event()))
        await asyncio.sleep(0.01)
        wake_event.set()
        await check_cancellation(loop_task, turns)

    run(main())


def test_a_pod_of_high_priority_leaves_the_backoff_queue_while_other_pods_wait() -> None:
    """The backoff ends with the second after the first one, so that seven pods are attempted before.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Run;
    pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.isPodBackingoff,
    backoffQueue.waitUntilAlignedWithOrderingWindow (1.36).
    """
    harness = SchedulerHarness(make_node("n1"))
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)]
    harness.create(make_pod("high", priority=5))
    harness.run()
    harness.create(*(make_pod(f"low-{number}") for number in range(20)))
    schedule_one = harness.scheduler.schedule_one
    wake_event, stop_event = asyncio.Event(), asyncio.Event()

    async def schedule_one_in_300_ms() -> bool:
        is_scheduled = await schedule_one()
        harness.clock.seconds += 0.3
        if len(harness.api.calls_to("binding")) >= 20:
            stop_event.set()
            wake_event.set()
        return is_scheduled

    async def main() -> None:
        harness.scheduler.schedule_one = schedule_one_in_300_ms
        await harness.scheduler.run(wake_event, stop_event)
        await asyncio.gather(*harness.context.tasks)

    run(main())
    names = [api_call.name for api_call in harness.api.calls_to("binding")]
    assert names[:10] == ["high", *(f"low-{number}" for number in range(7)), "high", "low-7"]


@pytest.mark.parametrize(
    ("attempt_seconds", "answer_seconds"),
    [
        pytest.param(0.2, 0.01, id="a health probe, after a pod with many affinity terms"),
        pytest.param(2.0, 0.01, id="the TLS handshake of a health probe"),
        pytest.param(10.0, 0.9, id="a slow renewal of the lease, after a search for devices"),
    ],
)
def test_a_request_is_answered_between_two_attempts_that_block_the_event_loop(
    attempt_seconds: float, answer_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes ten turns."""
    harness = SchedulerHarness(make_node("n1"))
    harness.create(*(make_pod(f"web-{number}") for number in range(3)))
    schedule_one = harness.scheduler.schedule_one
    answered_before_attempt: list[bool] = []

    async def main() -> None:
        loop, wake_event, stop_event = current_loop(), asyncio.Event(), asyncio.Event()
        harness.context.clock = loop
        monkeypatch.setattr(turn_budget, "perf_counter", loop.time)

        async def answer() -> None:
            for _ in range(10):
                await asyncio.sleep(answer_seconds / 10)

        requests: list[asyncio.Task[None]] = []

        async def schedule_one_slowly() -> bool:
            answered_before_attempt.append(bool(requests) and requests[0].done())
            if len(answered_before_attempt) == 2:
                stop_event.set()
            loop.suspend(attempt_seconds)
            requests.append(asyncio.create_task(answer()))
            return await schedule_one()

        harness.scheduler.schedule_one = schedule_one_slowly
        await asyncio.wait_for(harness.scheduler.run(wake_event, stop_event), 60)
        await asyncio.gather(*requests)

    run(main())
    assert answered_before_attempt == [False, True]


@pytest.mark.parametrize("start", [1000.0, 1000.9])
def test_an_idle_loop_retries_at_the_end_of_the_second_in_which_the_backoff_expires(start: float) -> None:
    """Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.waitUntilAlignedWithOrderingWindow (1.36)."""
    harness = SchedulerHarness(make_node("n1"))
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)] * 2
    attempt_times: list[float] = []

    async def main() -> None:
        loop = current_loop()
        loop.suspend(start - loop.time())
        harness.context.clock = loop
        call = harness.api.call

        async def record_time(api_call: Any, *arguments: Any) -> None:
            if api_call.subresource == "binding":
                attempt_times.append(loop.time())
            await call(api_call, *arguments)

        harness.api.call = record_time
        scheduler = Scheduler(harness.context)
        harness.dispatcher = ClusterEventDispatcher(harness.cache, scheduler, ["default-scheduler"])
        wake_event, stop_event = asyncio.Event(), asyncio.Event()
        harness.create(make_pod("web"))
        loop_task = asyncio.create_task(scheduler.run(wake_event, stop_event))
        await asyncio.sleep(10)
        stop_event.set()
        wake_event.set()
        await loop_task

    run(main())
    # The backoffs are 1 and 2 seconds.
    assert attempt_times == pytest.approx([start, 1002.0, 1005.0], abs=0.001)


def test_an_idle_loop_does_not_turn_again_before_the_clock_has_moved() -> None:
    """It was woken once. A timer may fire a moment before it is due, here just before the end of a second."""
    harness = SchedulerHarness(make_node("n1"))
    flush_times: list[float] = []

    async def main() -> None:
        loop, wake_event, stop_event = current_loop(), asyncio.Event(), asyncio.Event()
        wake_event.set()
        loop.suspend(math.nextafter(1001.0, 0.0) - loop.time())
        harness.context.clock = loop
        run_periodic_tasks = harness.scheduler.run_periodic_tasks

        def record_time() -> None:
            flush_times.append(loop.time())
            run_periodic_tasks()
            if len(flush_times) == 4:
                stop_event.set()

        harness.scheduler.run_periodic_tasks = record_time
        await asyncio.wait_for(harness.scheduler.run(wake_event, stop_event), 10)

    run(main())
    assert flush_times == pytest.approx([1001.0, 1001.001, 1002.0, 1003.0], abs=1e-9)


def test_an_idle_loop_flushes_unschedulable_pods_every_thirty_seconds_and_ends_waits_on_permit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Run (1.36)."""
    harness = SchedulerHarness(make_node("n1"))
    flush_times: list[float] = []
    monkeypatch.setattr(harness.queue, "flush_unschedulable_pods_leftover", flush_times.append)

    async def main() -> None:
        loop, wake_event, stop_event = current_loop(), asyncio.Event(), asyncio.Event()
        loop.suspend(1000.0 - loop.time())
        harness.context.clock = loop
        waiting_pods = harness.context.waiting_pods
        waiting_pods.add(harness.cache.make_pod_info(make_pod("web")), "n1", {"Gate": 5.0}, loop.time())
        loop_task = asyncio.create_task(Scheduler(harness.context).run(wake_event, stop_event))
        await asyncio.sleep(4.5)
        assert len(waiting_pods) == 1
        await asyncio.sleep(90.0)
        assert len(waiting_pods) == 0
        stop_event.set()
        wake_event.set()
        await loop_task

    run(main())
    assert flush_times == pytest.approx([1030.0, 1060.0, 1090.0], abs=0.001)


WEB, PLACED = make_pod("web"), make_pod("placed", node="n1")
CHANGES: dict[str, Callable[[ClusterEventDispatcher], None]] = {
    "a new pod": lambda dispatcher: dispatcher.on_add(make_pod("new")),
    "a changed pod": lambda dispatcher: dispatcher.on_update(WEB, make_pod("web", labels={"a": "b"})),
    "a new node": lambda dispatcher: dispatcher.on_add(make_node("n2")),
    "a deleted pod on a node": lambda dispatcher: dispatcher.on_delete(PLACED),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_loop_is_woken_by(change: Callable[[ClusterEventDispatcher], None]) -> None:
    harness = SchedulerHarness(make_node("n1"), WEB, PLACED)
    woken: list[str] = []
    harness.context.wake = lambda: woken.append("now")
    change(harness.dispatcher)
    assert woken
