"""Cooperative iteration: other tasks run while a long list is handled."""

import asyncio
from collections.abc import Iterator
from time import perf_counter

import pytest

from extender.event_loop.cooperative_iteration import (
    MAX_BLOCKING_SECONDS,
    iterate_cooperatively,
    iterate_in_turns,
    let_other_tasks_run,
)
from extender.event_loop.turn_budget import TURN_SECONDS, wait_for_turn
from tests.unit.turn_clock import TurnClock


def test_all_items_are_yielded_in_order() -> None:
    async def collect() -> list[int]:
        return [item async for item in iterate_cooperatively(range(1000))]

    assert asyncio.run(collect()) == list(range(1000))


def test_another_task_runs_after_each_slow_item() -> None:
    turns: list[int] = []

    async def count_turns() -> None:
        while True:
            turns.append(len(turns))
            await asyncio.sleep(0)

    async def handle_slow_items() -> None:
        task = asyncio.get_running_loop().create_task(count_turns())
        async for _ in iterate_cooperatively(range(5)):
            item_end = perf_counter() + MAX_BLOCKING_SECONDS
            while perf_counter() < item_end:
                pass
        task.cancel()

    asyncio.run(handle_slow_items())
    assert len(turns) == 5 * 8


def test_a_task_of_several_steps_ends_between_two_slow_items() -> None:
    done: list[str] = []

    async def answer_probe() -> None:
        for _ in range(6):
            await asyncio.sleep(0)
        done.append("probe")

    async def handle_slow_items() -> None:
        task = asyncio.create_task(answer_probe())
        async for item in iterate_cooperatively(range(2)):
            done.append(f"item {item}")
            item_end = perf_counter() + MAX_BLOCKING_SECONDS
            while perf_counter() < item_end:
                pass
        await task

    asyncio.run(handle_slow_items())
    assert done == ["item 0", "probe", "item 1"]


@pytest.mark.parametrize(
    ("count", "step_seconds", "order"),
    [
        (49_999, 0.0, ["step", "step"]),
        (49_999, 0.009, ["step", "step"]),
        (49_999, 0.010, ["step", "other", "step"]),
        (50_000, 0.0, ["step", "other", "step"]),
    ],
)
def test_another_task_runs_between_two_steps_over_many_items_or_of_a_long_time(
    count: int, step_seconds: float, order: list[str], turn_clock: TurnClock
) -> None:
    done: list[str] = []

    async def run_other() -> None:
        done.append("other")

    async def run_steps() -> None:
        await wait_for_turn()
        task = asyncio.create_task(run_other())
        done.append("step")
        turn_clock.seconds += step_seconds
        await let_other_tasks_run(count)
        done.append("step")
        task.cancel()

    asyncio.run(run_steps())
    assert done == order


def test_each_item_is_computed_in_a_turn_with_time_left(turn_clock: TurnClock) -> None:
    done: list[str] = []

    def make_items() -> Iterator[int]:
        for item in range(3):
            done.append(f"item {item}")
            turn_clock.seconds += 0.6 * TURN_SECONDS
            yield item

    async def count_turns() -> None:
        while True:
            await asyncio.sleep(0)
            done.append("turn")

    async def main() -> list[int]:
        task = asyncio.create_task(count_turns())
        await asyncio.sleep(0)
        items = [item async for item in iterate_in_turns(make_items())]
        task.cancel()
        return items

    assert asyncio.run(main()) == [0, 1, 2]
    assert done == ["item 0", "item 1", "turn", "item 2"]
