"""The server's lists and watches break in every way there is; afterwards what we know is what there is.

Source: design of operations, faults 1 to 7, 13 and 16; client-go's reflector.
"""

import asyncio

import pytest

from extender.objects.pod import Pod
from extender.sandbox.faults import Fault, Spoiled
from extender.sandbox.served import PODS
from tests.faults.world import LONG_LEASE, World, run

LONG = 1200.0


def names(count: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def lists(world: World, ending: str = "/pods") -> int:
    """How many lists were begun."""
    return len([each for each in world.history.requests("GET", ending) if "continue=" not in each.query])


def change(world: World) -> None:
    """Two pods come, one goes, one node goes and another comes."""
    world.pods("new-1", "new-2")
    world.sandbox.api.remove(PODS, "default", "p1")
    world.sandbox.api.add(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n9"}, "status": {"capacity": {"pods": "5"}}}
    )


def test_twenty_minutes_of_watches_that_end_in_good_order_needs_one_list_of_each_kind() -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        await world.leader(**LONG_LEASE)
        for number in range(6):
            world.pods(f"p{number}")
            await asyncio.sleep(LONG / 6)
        await world.settled()
        assert lists(world) == 1
        assert lists(world, "/nodes") == 1
        assert len(world.history.requests("GET", "/pods", watch=True)) > LONG / 60

    run(trial)


def test_a_server_that_is_away_for_a_minute_is_found_again_and_nothing_is_listed_twice() -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        replica = await world.leader(**LONG_LEASE)
        port = int(world.sandbox.url.rpartition(":")[2])
        world.pods("p1")
        await world.settled()
        await world.sandbox.stop()
        world.pods("p2")
        await asyncio.sleep(60)
        assert not replica.task.done()
        await world.sandbox.start(port)
        assert await world.settled() < 61
        assert lists(world) == 1

    run(trial)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(Spoiled.DROP, "watch"),
        Fault(Spoiled.END, "watch"),
        Fault(Spoiled.GONE, "watch"),
        Fault(Spoiled.GONE, "watch", after=1),
        Fault(Spoiled.TRUNCATE, "watch", after=1),
        Fault(Spoiled.GARBAGE, "watch", after=1),
        Fault(Spoiled.STATUS, "watch", code=500),
        Fault(Spoiled.STATUS, "watch", code=503, retry_after="2"),
        Fault(Spoiled.STATUS, "watch", code=429, retry_after="2"),
        Fault(Spoiled.STATUS, "watch", code=504),
        Fault(Spoiled.STALL, "watch", after=1),
    ],
    ids=lambda fault: f"{fault.what.value} {fault.code if fault.what is Spoiled.STATUS else ''} after {fault.after}",
)
def test_what_happened_behind_a_broken_watch_is_caught_up_with(fault: Fault) -> None:
    async def trial(world: World) -> None:
        world.nodes(3)
        replica = await world.leader()
        world.pods(*names(4))
        await world.settled()
        world.sandbox.faults.add(fault)
        for watch in list(replica.cable._open):
            watch.transport.abort()
        await asyncio.sleep(5)
        change(world)
        await asyncio.sleep(150)
        world.sandbox.faults.clear()
        await world.settled()

    run(trial)


def test_a_compaction_while_the_watch_is_broken_is_made_good_by_a_list_with_its_deletions() -> None:
    async def trial(world: World) -> None:
        world.nodes(3)
        replica = await world.leader(**LONG_LEASE)
        world.pods(*names(4))
        await world.settled()
        replica.cable.cut()
        await asyncio.sleep(1)
        change(world)
        world.sandbox.store.forget()
        await asyncio.sleep(20)
        replica.cable.mend()
        await world.settled()
        assert lists(world) == 2

    run(trial)


def test_a_list_whose_pages_expire_is_begun_again_and_never_shown_by_half() -> None:
    async def trial(world: World) -> None:
        world.nodes(40)
        for number in range(1200):
            world.pods(f"p{number}", nodeName=f"n{number % 40 + 1}", cpu="1m")
        world.spoil(Spoiled.GONE, "list", "pods", skip=1, times=1)
        replica = await world.scheduler()
        heard: set[int] = set()
        while not replica.scheduler.watches.synced:
            heard.add(len(replica.scheduler.state.placed))
            await asyncio.sleep(0)
        await world.settled()
        assert lists(world) == 2
        assert len(world.history.requests("GET", "/pods")) == 5

    run(trial)


@pytest.mark.parametrize("what", [Spoiled.DUPLICATE, Spoiled.REPLAY])
def test_events_that_come_twice_or_late_change_nothing(what: Spoiled) -> None:
    async def trial(world: World) -> None:
        world.nodes(3)
        for after in range(60):
            world.spoil(what, "watch", after=after)
        await world.leader()
        for number in range(10):
            world.pods(f"p{number}")
            await asyncio.sleep(0.5)
            if number % 3 == 2:
                world.sandbox.api.remove(PODS, "default", f"p{number - 1}")
        await world.settled()
        assert lists(world) == 1

    run(trial)


def test_a_connection_that_falls_silent_is_found_out_within_a_minute() -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        replica = await world.leader(**LONG_LEASE)
        replica.cable.silence()
        world.pods("p1")
        await asyncio.sleep(90)
        assert "pods" in "".join(filter(None, (each.trouble for each in replica.scheduler.watches.reflectors.values())))
        replica.cable.mend()
        assert await world.settled() < 61

    run(trial)


def test_a_kind_that_we_may_not_watch_keeps_us_from_starting_and_is_not_asked_for_in_a_hurry() -> None:
    async def trial(world: World) -> None:
        world.nodes(1)
        world.pods("p1")
        world.spoil(Spoiled.STATUS, "list", "nodes", code=403)
        replica = await world.scheduler()
        await asyncio.sleep(300)
        assert not replica.scheduler.watches.synced
        assert "Node not listed yet (nodes: spoiled on purpose: 403)" in replica.scheduler.watches.stale()
        assert lists(world, "/nodes") < 25
        world.sandbox.faults.clear()
        assert await world.settled() < 61

    run(trial)


def test_a_right_that_is_taken_away_makes_us_unready_at_once_and_is_not_asked_for_in_a_hurry() -> None:
    async def trial(world: World) -> None:
        world.nodes(1)
        replica = await world.leader(**LONG_LEASE)
        world.spoil(Spoiled.STATUS, "watch", "nodes", code=403)
        before = len(world.history.requests("GET", "/nodes", watch=True))
        await world.until(lambda: replica.scheduler.watches.stale() != "", 51)
        assert replica.scheduler.watches.stale() == "Node may not be read: nodes: spoiled on purpose: 403"
        await asyncio.sleep(300)
        assert len(world.history.requests("GET", "/nodes", watch=True)) - before < 25
        assert not replica.task.done()
        world.sandbox.faults.clear()
        await world.until(lambda: replica.scheduler.watches.stale() == "", 61)
        assert lists(world, "/nodes") == 1
        world.pods("p1")
        await world.settled()

    run(trial)


@pytest.mark.parametrize("what", ["list", "lease"])
def test_a_watch_that_dies_before_we_lead_ends_us_with_its_fault(what: str) -> None:
    async def trial(world: World) -> None:
        world.spoil(Spoiled.STATUS, "*", "nodes" if what == "list" else "leases", code=500)
        replica = await world.scheduler()
        await world.until(lambda: Pod in replica.scheduler.watches.reflectors)
        reflector = replica.scheduler.watches.reflectors[Pod]
        await world.until(reflector.synced.is_set)

        def broken(changes: object) -> None:
            raise RuntimeError(f"cannot take in {changes}")

        reflector.deliver = broken
        world.pods("p1")
        await asyncio.wait({replica.task}, timeout=5)
        fault = replica.task.exception()
        assert isinstance(fault, BaseExceptionGroup)
        assert str(fault.exceptions[0]).startswith("cannot take in ")

    run(trial)


def test_a_token_that_is_refused_for_a_while_stops_nothing_for_good() -> None:
    async def trial(world: World) -> None:
        world.nodes(1)
        replica = await world.leader(**LONG_LEASE)
        world.spoil(Spoiled.STATUS, code=401)
        world.pods("p1")
        await asyncio.sleep(60)
        assert world.node_of("p1") == ""
        world.sandbox.faults.clear()
        await world.settled()
        assert not replica.task.done()

    run(trial)
