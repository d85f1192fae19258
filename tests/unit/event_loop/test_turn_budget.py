"""The steps of many tasks are spread over several turns of the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import chain, pairwise, repeat

import pytest
import uvloop

from extender.event_loop import turn_budget
from extender.event_loop.turn_budget import TURN_SECONDS, begin_step, wait_for_turn
from tests.unit.turn_clock import TurnClock


def run_steps(task_count: int, step: Callable[[int], None]) -> list[tuple[int, int]]:
    """Run one step in each of *task_count* tasks that are due together; return (turn, task) of each step."""
    steps: list[tuple[int, int]] = []

    async def run_task(number: int, turns: list[None]) -> None:
        await wait_for_turn()
        steps.append((len(turns), number))
        step(number)

    async def main() -> None:
        turns: list[None] = []

        async def count_turns() -> None:
            while True:
                turns.append(None)
                await asyncio.sleep(0)

        counter = asyncio.create_task(count_turns())
        await asyncio.gather(*(run_task(number, turns) for number in range(task_count)))
        counter.cancel()

    asyncio.run(main())
    return steps


def test_the_steps_of_many_tasks_are_spread_over_turns(turn_clock: TurnClock) -> None:
    def take_a_quarter_of_a_turn(_: int) -> None:
        turn_clock.seconds += TURN_SECONDS / 4

    assert run_steps(10, take_a_quarter_of_a_turn) == [
        *((1, number) for number in range(4)),
        *((2, number) for number in range(4, 8)),
        *((3, number) for number in range(8, 10)),
    ]


def test_steps_that_take_no_time_are_in_one_turn(turn_clock: TurnClock) -> None:
    assert turn_clock.seconds == 0.0
    assert run_steps(100, lambda _: None) == [(1, number) for number in range(100)]


def test_a_step_that_is_longer_than_a_turn_has_a_turn_of_its_own(turn_clock: TurnClock) -> None:
    def take_three_turns(_: int) -> None:
        turn_clock.seconds += 3 * TURN_SECONDS

    assert run_steps(3, take_three_turns) == [(1, 0), (2, 1), (3, 2)]


def test_the_time_between_two_turns_does_not_count(turn_clock: TurnClock) -> None:
    async def main() -> list[bool]:
        waited: list[bool] = []
        for _ in range(3):
            turn_clock.seconds += 10.0  # the loop waits for sockets
            waited.append(await yields_to_other_tasks(wait_for_turn))
            await asyncio.sleep(0)
        return waited

    assert asyncio.run(main()) == [False, False, False]


def test_a_loop_that_ends_in_a_long_turn_does_not_delay_the_next_loop(turn_clock: TurnClock) -> None:
    async def main() -> bool:
        has_waited = await yields_to_other_tasks(wait_for_turn)
        turn_clock.seconds += 10.0
        return has_waited

    assert [asyncio.run(main()) for _ in range(2)] == [False, False]


async def yields_to_other_tasks(wait: Callable[[], Awaitable[None]]) -> bool:
    """Return whether another task runs while *wait* is awaited."""
    order: list[str] = []

    async def run_other() -> None:
        order.append("other")

    task = asyncio.create_task(run_other())
    await wait()
    order.append("this")
    await task
    return order == ["other", "this"]


def test_waiting_tasks_continue_in_their_order(turn_clock: TurnClock) -> None:
    def take_half_a_turn(_: int) -> None:
        turn_clock.seconds += TURN_SECONDS / 2

    steps = run_steps(20, take_half_a_turn)
    assert all(one < other for one, other in pairwise(steps))
    assert [number for _, number in steps] == list(range(20))


def test_a_task_that_yields_before_each_step_is_not_delayed_for_ever(turn_clock: TurnClock) -> None:
    """Such a task is due before the call that ends the turn, and would always find the turn of others."""
    steps = {"long": 0, "short": 0}

    async def take_long_steps() -> None:
        while True:
            await wait_for_turn()
            steps["long"] += 1
            turn_clock.seconds += TURN_SECONDS

    async def take_short_steps() -> None:
        while steps["short"] < 10:
            await asyncio.sleep(0)
            await wait_for_turn()
            steps["short"] += 1

    async def main() -> None:
        long_task = asyncio.create_task(take_long_steps())
        short_task = asyncio.create_task(take_short_steps())
        for _ in range(200):
            await asyncio.sleep(0)
        long_task.cancel()
        short_task.cancel()

    asyncio.run(main())
    assert steps["short"] == 10
    assert steps["long"] >= 40


def test_a_cancelled_task_does_not_end_the_wait_of_the_others(turn_clock: TurnClock) -> None:
    done: list[int] = []

    async def take_step(number: int) -> None:
        await wait_for_turn()
        done.append(number)
        turn_clock.seconds += TURN_SECONDS

    async def main() -> None:
        tasks = [asyncio.create_task(take_step(number)) for number in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)

    asyncio.run(main())
    assert done == [0, 2, 3]


def test_steps_that_do_not_wait_delay_the_others_for_two_turns_at_most(turn_clock: TurnClock) -> None:
    turns = 0
    turns_of_steps: list[int] = []

    async def take_whole_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            begin_step()
            turn_clock.seconds += TURN_SECONDS
            await asyncio.sleep(0)

    async def take_steps() -> None:
        for _ in range(5):
            await wait_for_turn()
            turns_of_steps.append(turns)

    async def main() -> None:
        hog = asyncio.create_task(take_whole_turns())
        await asyncio.create_task(take_steps())
        hog.cancel()

    asyncio.run(main())
    assert [after - before for before, after in pairwise([1, *turns_of_steps])] == [2, 2, 2, 2, 2]


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_lag_of_a_timer_is_the_time_after_its_delay(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer of 50 ms that starts at 10.0 is 30 ms late at 10.08; one that is early has no lag."""
    times = chain([10.0, 10.08, 20.0, 20.049, 30.0, 30.051], repeat(40.0))
    monkeypatch.setattr(turn_budget, "perf_counter", lambda: next(times))
    samples: list[float] = []

    async def measure() -> None:
        enough = asyncio.Event()

        def observe(seconds: float) -> None:
            samples.append(seconds)
            if len(samples) == 3:
                enough.set()

        task = asyncio.create_task(turn_budget.observe_lag(observe))
        await enough.wait()
        task.cancel()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(measure())
    assert samples == pytest.approx([0.03, 0.0, 0.001])
