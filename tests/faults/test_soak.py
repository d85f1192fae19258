"""Days of work in a minute: pods come, run and go by the thousand, and the process stays as small as it was.

`make soak` runs a million lifecycles of the loop in memory and twenty thousand over HTTP. Source: design of operations,
fault 31 and invariant I6.
"""

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.client.recorder import SENDERS
from extender.client.transport import MOST_AT_ONCE
from extender.sandbox.nodes import Pace
from extender.sandbox.served import PODS
from tests.build import a_node as a_bare_node
from tests.build import a_pod as a_bare_pod
from tests.faults.world import World, run
from tests.unit.loop.world import World as Memory

IN_MEMORY = int(os.environ.get("SOAK", "20000"))
OVER_HTTP = max(1000, IN_MEMORY // 50)
ROUND = 100
MEGABYTE = 2**20
SPREAD = 2 * (MOST_AT_ONCE + SENDERS)
"""By how many the connections that happen to be open may differ from one round to the next.

Each is a file and a task at both ends. A round has more pods than this: one file lost a pod would show.
"""
FILES = Path("/proc/self/fd")
STATUS = Path("/proc/self/statm")

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="the size of a process is read from /proc")


def figures() -> tuple[int, int, int]:
    """Resident bytes, open files, threads."""
    gc.collect()
    resident = int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident, len(list(FILES.iterdir())), threading.active_count()


class Sizes:
    """Figures taken after every tenth of the work; the first third is for warming up."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int, int]] = []

    def grown(self) -> tuple[int, int, int]:
        """By how much the last third is above the second, at their largest."""
        third = len(self.taken) // 3
        middle, end = self.taken[third : 2 * third], self.taken[2 * third :]
        largest = [[max(each[at] for each in part) for at in range(3)] for part in (middle, end)]
        return (largest[1][0] - largest[0][0], largest[1][1] - largest[0][1], largest[1][2] - largest[0][2])


def worked(sizes: Sizes, rounds: int, work: Callable[[int], None]) -> None:
    """Do the work, and take the figures on the way."""
    every = max(1, rounds // 12)
    for number in range(rounds):
        work(number)
        if number % every == every - 1:
            sizes.taken.append(figures())


def test_the_loop_keeps_nothing_of_pods_that_are_gone() -> None:
    memory = Memory(*(a_bare_node(f"n{number}") for number in range(10)))

    def lifecycles(number: int) -> None:
        pods = [a_bare_pod(f"p{number}-{at}", labels={"app": f"a{at % 7}"}) for at in range(ROUND)]
        memory.create(*pods)
        memory.run()
        assert all(memory.node_of(pod) for pod in pods)
        for key in list(memory.server.pods):
            memory.server.tell(memory.server.pods.pop(key), None)
        memory.server.writes.clear()
        memory.events.told.clear()

    sizes = Sizes()
    worked(sizes, IN_MEMORY // ROUND, lifecycles)
    resident, files, threads = sizes.grown()
    assert (memory.state.placed, memory.state.waiting) == ({}, {})
    assert files <= 0
    assert threads <= 0
    assert resident < 2 * MEGABYTE, sizes.taken


def test_a_scheduler_over_http_keeps_nothing_of_pods_that_are_gone() -> None:
    sizes, tasks = Sizes(), []

    async def trial(world: World) -> None:
        world.nodes(5, cpu="100", pods="200")
        replica = await world.leader()
        rounds = OVER_HTTP // ROUND
        for number in range(rounds):
            world.pods(*(f"p{number}-{at}" for at in range(ROUND)), cpu="1m")
            await world.until(lambda: not world.unbound())
            for pod in world.sandbox.api.each(PODS):
                world.sandbox.api.remove(PODS, "default", pod["metadata"]["name"])
            await world.until(lambda: not replica.scheduler.state.placed)
            await asyncio.sleep(1)
            world.history.forget()
            world.sandbox.store.forget()
            sizes.taken.append(figures())
            tasks.append(len(asyncio.all_tasks()))
        assert len(replica.scheduler.queue.in_flight) == 0
        assert replica.scheduler.desk.jobs == set()

    run(trial, pace=Pace(), history=2_000)
    resident, files, threads = sizes.grown()
    assert files <= SPREAD
    assert threads <= 0
    assert max(tasks[len(tasks) // 2 :]) <= max(tasks[: len(tasks) // 2]) + SPREAD
    assert resident < 8 * MEGABYTE, sizes.taken
