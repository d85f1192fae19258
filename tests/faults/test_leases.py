"""Who may act: partitions, stops, jumping clocks and meddled leases; nobody binds who does not hold the lease.

Source: design of operations, faults 17 to 21; client-go's leader election.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.sandbox.faults import Fault, Spoiled
from extender.sandbox.served import BY_KIND
from tests.faults.world import World, run
from tests.unit.client.virtual_time import here

LEASES = BY_KIND["coordination.k8s.io/v1", "Lease"]
SYSTEM = "kube-system"


def lease(world: World) -> dict[str, Any]:
    spec: dict[str, Any] = world.sandbox.api.get(LEASES, SYSTEM, "kube-scheduler")["spec"]
    return spec


@pytest.mark.parametrize("how", ["cut", "silence"])
def test_a_leader_without_its_server_ends_and_the_standby_takes_over_within_17_seconds(how: str) -> None:
    async def trial(world: World) -> None:
        world.nodes(3)
        first = await world.leader()
        second = await world.scheduler()
        world.pods("a", "b")
        await world.settled()
        getattr(first.cable, how)()
        world.pods("c", "d")
        assert await world.until(lambda: second.leads) <= 17.5
        assert first.task.result() == 1
        await world.settled()
        assert lease(world)["leaseTransitions"] == 1

    run(trial)


def test_bindings_that_wait_while_the_process_is_stopped_are_not_sent_when_it_goes_on() -> None:
    async def trial(world: World) -> None:
        world.nodes(3)
        first = await world.leader()
        world.sandbox.faults.add(Fault(Spoiled.STATUS, "create", "pods/binding", code=429, retry_after="1"))
        world.pods(*(f"p{number}" for number in range(6)))
        await world.until(lambda: len(world.history.requests("POST", "/binding")) >= 6)
        sent = len(world.history.requests("POST", "/binding"))
        world.sandbox.faults.clear()
        here().stop_the_world(30.0)
        await asyncio.sleep(0.5)
        assert len(world.history.requests("POST", "/binding")) == sent
        assert world.history.placements() == 0
        if first.task.done():
            await world.scheduler()
        await world.settled()

    run(trial)


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_wall_clock_that_jumps_changes_nothing(jump: float) -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        first = await world.leader()
        second = await world.scheduler()
        world.pods("a")
        await world.settled()
        here().wall_offset += jump
        world.pods("b")
        await asyncio.sleep(60)
        assert (first.leads, second.leads) == (True, False)
        assert lease(world)["leaseTransitions"] == 0
        await world.settled()

    run(trial)


def deleted(world: World) -> None:
    world.sandbox.api.remove(LEASES, SYSTEM, "kube-scheduler")


def touched(world: World) -> None:
    world.sandbox.api.patch(LEASES, SYSTEM, "kube-scheduler", {"metadata": {"labels": {"a": "b"}}}, strategic=False)


@pytest.mark.parametrize("meddle", [deleted, touched])
def test_a_lease_that_is_deleted_or_written_to_is_held_again_at_once(meddle: Callable[[World], None]) -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        first = await world.leader()
        meddle(world)
        await asyncio.sleep(20)
        assert first.leads
        assert lease(world)["holderIdentity"] == first.scheduler.identity
        world.pods("b")
        await world.settled()

    run(trial)


def test_a_leader_that_finds_another_in_its_lease_ends_and_takes_it_again_when_that_one_is_gone() -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        first = await world.leader()
        robbed = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 15}}
        world.sandbox.api.patch(LEASES, SYSTEM, "kube-scheduler", robbed, strategic=False)
        assert await world.until(first.task.done) <= 12.5
        assert first.task.result() == 1
        world.pods("a")
        second = await world.scheduler()
        await asyncio.sleep(10)
        assert not second.leads
        await world.settled()
        assert lease(world)["leaseTransitions"] == 1

    run(trial)


def test_a_leader_told_to_end_finishes_what_it_began_and_gives_the_lease_up() -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        first = await world.leader()
        second = await world.scheduler()
        world.sandbox.faults.add(Fault(Spoiled.DELAY, "create", "pods/binding", seconds=2, times=3))
        world.pods("a", "b", "c")
        await world.until(lambda: len(world.history.requests("POST", "/binding")) == 3)
        first.stopping.set()
        await world.until(first.task.done, 5)
        assert first.task.result() == 0
        assert world.unbound() == set()
        assert await world.until(lambda: second.leads) <= 2.5
        world.pods("d")
        await world.settled()

    run(trial)
