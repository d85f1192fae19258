"""Cooperative iteration: other tasks run while a long list is handled."""

import asyncio
from time import perf_counter

import pytest

from extender.extender_api.cooperative_iteration import (
    MAX_BLOCKING_SECONDS,
    iterate_cooperatively,
    let_other_tasks_run,
)


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


@pytest.mark.parametrize(("count", "order"), [(4_999, ["step", "step"]), (5_000, ["step", "other", "step"])])
def test_another_task_runs_between_two_steps_over_many_items(count: int, order: list[str]) -> None:
    done: list[str] = []

    async def run_other() -> None:
        done.append("other")

    async def run_steps() -> None:
        task = asyncio.create_task(run_other())
        done.append("step")
        await let_other_tasks_run(count)
        done.append("step")
        task.cancel()

    asyncio.run(run_steps())
    assert done == order
