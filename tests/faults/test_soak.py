"""Thousands of pod lifecycles: the process does not grow.

`make soak` runs a million lifecycles of the loop in memory and twenty thousand over HTTP.
"""

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.client.connections import MAX_CONCURRENT_REQUESTS
from extender.client.event_broadcaster import SENDER_COUNT
from extender.fake_apiserver.kubelets import KubeletTiming
from extender.fake_apiserver.registry.resources import PODS
from extender.fake_apiserver.registry.store import Store
from tests.build import make_node as a_bare_node
from tests.build import make_pod as a_bare_pod
from tests.faults.builders import FaultHarness, run
from tests.unit.scheduler.builders import SchedulerHarness as Memory

IN_MEMORY = int(os.environ.get("SOAK", "20000"))
OVER_HTTP = max(1000, IN_MEMORY // 50)
ROUND = 150
MEGABYTE = 2**20
CONNECTION_TOLERANCE = 2 * (MAX_CONCURRENT_REQUESTS + SENDER_COUNT)
"""How many open connections may differ between rounds.

Each is a file and a task at both ends. A round has more pods than this, so one leaked file per pod would show.
"""
FILES = Path("/proc/self/fd")
STATUS = Path("/proc/self/statm")

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="the size of a process is read from /proc")


def measure_process() -> tuple[int, int, int]:
    """Return resident bytes, open files and threads."""
    gc.collect()
    resident = int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident, len(list(FILES.iterdir())), threading.active_count()


class ProcessSizes:
    """Measurements after every tenth of the work; the first third is the warm-up."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int, int]] = []

    def growth(self) -> tuple[int, int, int]:
        """Return by how much the maximum of the last third exceeds that of the second."""
        third = len(self.taken) // 3
        middle, end = self.taken[third : 2 * third], self.taken[2 * third :]
        largest = [[max(each[at] for each in part) for at in range(3)] for part in (middle, end)]
        return (largest[1][0] - largest[0][0], largest[1][1] - largest[0][1], largest[1][2] - largest[0][2])


def run_and_measure(sizes: ProcessSizes, rounds: int, work: Callable[[int], None]) -> None:
    """Do the work and measure in between."""
    every = max(1, rounds // 12)
    for number in range(rounds):
        work(number)
        if number % every == every - 1:
            sizes.taken.append(measure_process())


def test_the_loop_leaks_no_memory_of_deleted_pods() -> None:
    memory = Memory(*(a_bare_node(f"n{number}") for number in range(10)))

    def lifecycles(number: int) -> None:
        pods = [a_bare_pod(f"p{number}-{at}", labels={"app": f"a{at % 7}"}) for at in range(ROUND)]
        memory.create(*pods)
        memory.run()
        assert all(memory.node_of(pod) for pod in pods)
        for key in list(memory.api.pods):
            memory.api.notify(memory.api.pods.pop(key), None)
        memory.api.calls.clear()
        memory.events.recorded.clear()

    sizes = ProcessSizes()
    run_and_measure(sizes, IN_MEMORY // ROUND, lifecycles)
    resident, files, threads = sizes.growth()
    assert (memory.cache.assigned_pods, memory.cache.pending_pods) == ({}, {})
    assert files <= 0
    assert threads <= 0
    assert resident < 2 * MEGABYTE, sizes.taken


def test_a_scheduler_over_http_leaks_no_memory_of_deleted_pods() -> None:
    sizes, tasks = ProcessSizes(), []

    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(5, cpu="100", pods="200")
        replica = await harness.start_leader()
        rounds = OVER_HTTP // ROUND
        for number in range(rounds):
            harness.create_pods(*(f"p{number}-{at}" for at in range(ROUND)), cpu="1m")
            await harness.wait_until(lambda: not harness.unbound_names())
            for pod in harness.server.api.list_objects(PODS):
                harness.server.api.delete_now(PODS, "default", pod["metadata"]["name"])
            await harness.wait_until(lambda: not replica.scheduler.cache.assigned_pods)
            await asyncio.sleep(1)
            harness.recorder.clear()
            harness.server.store.compact()
            sizes.taken.append(measure_process())
            tasks.append(len(asyncio.all_tasks()))
        assert len(replica.scheduler.queue.in_flight_events) == 0
        assert replica.scheduler.context.tasks == set()

    run(scenario, kubelet_timing=KubeletTiming(), store=Store(history_limit=2_000))
    resident, files, threads = sizes.growth()
    assert files <= CONNECTION_TOLERANCE
    assert threads <= 0
    assert max(tasks[len(tasks) // 2 :]) <= max(tasks[: len(tasks) // 2]) + CONNECTION_TOLERANCE
    assert resident < 8 * MEGABYTE, sizes.taken
