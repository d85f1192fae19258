"""Candidates for one lease, each with its own way to the server; ways break, processes stop and die, clocks jump."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from extender.client.elector import Elector
from extender.client.lease import Election
from extender.client.writes import Writer
from extender.config.model import LeaderElection
from tests.unit.client.scripted import SILENCE, Answer, Asked, Reply, Server, failure, talking
from tests.unit.client.virtual_time import here, run

NAME = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


class Leases:
    """The server's side: one lease, with optimistic concurrency."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.holders: list[str] = []

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        found: dict[str, Any] = self.lease["spec"]
        return found

    def edit(self, holder: str) -> None:
        """Somebody edits the lease by hand."""
        self.put({**self.spec, "holderIdentity": holder})

    def put(self, spec: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        metadata = {"name": "kube-scheduler", "namespace": "kube-system", "resourceVersion": str(self.version)}
        self.lease = {"metadata": metadata, "spec": spec}
        self.holders.append(spec["holderIdentity"])
        return self.lease

    def __call__(self, asked: Asked) -> Answer:
        if asked.method == "POST":
            return failure(409, "AlreadyExists") if self.lease else Reply(201, self.put(asked.body["spec"]))
        assert asked.path == NAME
        if self.lease is None:
            return failure(404, "NotFound")
        if asked.method == "PUT":
            if asked.body["metadata"]["resourceVersion"] != str(self.version):
                return failure(409, "Conflict")
            return Reply(body=self.put(asked.body["spec"]))
        return Reply(body=self.lease)


@dataclass
class Candidate:
    """An elector, its way to the server, and what became of it."""

    elector: Elector
    server: Server
    ended: str = ""
    led_since: float = 0.0
    seen: list[str] = field(default_factory=list)
    task: "asyncio.Task[None] | None" = None

    async def live(self) -> None:
        await self.elector.acquire()
        self.led_since = here().time()
        self.ended = await self.elector.hold()

    def start(self) -> None:
        self.task = asyncio.create_task(self.live())

    async def kill(self) -> None:
        """What `kill -9` does: it just ends."""
        assert self.task is not None
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@asynccontextmanager
async def candidates(leases: Leases, *names: str, seed: int = 1) -> AsyncIterator[list[Candidate]]:
    """Candidates that have not started yet."""
    async with asyncio.TaskGroup() as group:
        found: list[Candidate] = []
        leave = asyncio.Event()

        async def one(name: str, ready: asyncio.Event) -> None:
            chance = random.Random(f"{seed}{name}").random
            async with Server(leases) as server, talking(server) as transport:
                candidate = Candidate(
                    Elector(Election(LeaderElection(), name), Writer(transport), here(), chance), server
                )
                candidate.elector.on_holder = candidate.seen.append
                found.append(candidate)
                ready.set()
                await leave.wait()
                if candidate.task is not None:
                    await candidate.kill()

        for name in names:
            ready = asyncio.Event()
            group.create_task(one(name, ready))
            await ready.wait()
        try:
            yield found
        finally:
            leave.set()


@asynccontextmanager
async def leader(leases: Leases, *, seconds: float = 10) -> AsyncIterator[Candidate]:
    """A candidate that has the lease since it started *seconds* ago."""
    async with candidates(leases, "one") as (one,):
        one.start()
        await asyncio.sleep(seconds)
        yield one


@asynccontextmanager
async def leader_and_rival(leases: Leases, *, seed: int = 1) -> AsyncIterator[list[Candidate]]:
    """A candidate that has the lease, and one that has just started."""
    async with candidates(leases, "one", "two", seed=seed) as (one, two):
        one.start()
        await asyncio.sleep(0.1)
        two.start()
        yield [one, two]


async def never_two(found: list[Candidate], seconds: float) -> None:
    """Time passes, and at no moment may two act."""
    end = here().time() + seconds
    while here().time() < end:
        assert sum(candidate.elector.may_act() for candidate in found) <= 1
        await asyncio.sleep(0.1)


def test_one_leads_and_renews_while_the_other_waits() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases) as (one, two):
            await never_two([one, two], 60)
            assert (one.elector.may_act(), two.elector.may_act()) == (True, False)
            assert leases.spec["leaseTransitions"] == 0
            assert (one.seen, two.seen) == (["one"], ["one"])
            # A renewal is one request; the lease is looked at once, before it is made.
            assert [asked.method for asked in one.server.asked].count("GET") == 1

    run(main())


@pytest.mark.parametrize("seed", range(5))
def test_fault_22_after_a_kill_the_other_leads_within_17_seconds(seed: int) -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases, seed=seed) as (one, two):
            await asyncio.sleep(20 + random.Random(seed).random() * 4)
            await one.kill()
            killed = here().time()
            await asyncio.sleep(20)
            assert two.led_since - killed <= 17.0
            assert two.elector.may_act()
            assert leases.spec["leaseTransitions"] == 1
            assert two.seen == ["one", "two"]

    run(main())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("silent", [False, True], ids=["connections are refused", "nothing ever answers"])
def test_fault_17_a_leader_cut_off_stops_before_the_other_begins(seed: int, silent: bool) -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases, seed=seed) as (one, two):
            await never_two([one, two], 20 + random.Random(seed).random() * 4)
            if silent:
                one.server.handler = lambda asked: SILENCE
            else:
                await one.server.stop()
            cut = here().time()
            await never_two([one, two], 20)
            assert one.ended == "the lease could not be renewed within 10 s"
            assert two.elector.may_act()
            assert two.led_since - cut <= 17.0
            if not silent:
                await one.server.start()

    run(main())


def test_a_server_away_for_less_than_the_deadline_costs_no_lead() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as one:
            await one.server.stop()
            await asyncio.sleep(7)
            await one.server.start()
            await asyncio.sleep(10)
            assert one.elector.may_act()
            assert (one.ended, leases.spec["leaseTransitions"]) == ("", 0)

    run(main())


def test_fault_18_a_stopped_leader_may_not_act_when_it_goes_on_and_steps_down() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases, seconds=10.05) as one:
            assert one.elector.may_act()
            # While the process stands still, someone else takes the lease over.
            here().stop_the_world(30)
            leases.edit("other")
            assert not one.elector.may_act()
            await asyncio.sleep(5)
            assert one.ended == "the lease is held by other"
            assert not one.elector.may_act()

    run(main())


@pytest.mark.parametrize("jump", [3600.0, -3600.0], ids=["an hour on", "an hour back"])
def test_fault_19_a_wall_clock_that_jumps_moves_no_lead(jump: float) -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases) as (one, two):
            await never_two([one, two], 20)
            here().wall_offset += jump
            await never_two([one, two], 60)
            assert one.elector.may_act()
            assert set(leases.holders) == {"one"}

    run(main())


def test_fault_20_a_deleted_lease_is_made_again() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as one:
            leases.lease = None
            await asyncio.sleep(5)
            assert one.elector.may_act()
            assert leases.spec["holderIdentity"] == "one"

    run(main())


def test_fault_20_a_conflict_on_renewal_is_looked_into_and_the_lead_kept() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as one:
            leases.put(leases.spec)
            await asyncio.sleep(5)
            assert one.elector.may_act()
            assert one.ended == ""

    run(main())


def test_fault_20_a_holder_edited_by_hand_ends_the_lead() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as one:
            leases.edit("other")
            await asyncio.sleep(5)
            assert one.ended == "the lease is held by other"
            assert leases.spec["holderIdentity"] == "other"

    run(main())


def test_fault_21_a_released_lease_is_taken_over_within_the_retry_period() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases) as (one, two):
            await asyncio.sleep(10)
            await one.kill()
            assert await one.elector.release()
            released = here().time()
            assert not one.elector.may_act()
            assert leases.spec["holderIdentity"] == ""
            await asyncio.sleep(3)
            assert two.led_since - released <= 2.1
            assert leases.holders[-1] == "two"

    run(main())


def test_a_release_that_fails_says_so_and_takes_no_longer_than_the_renew_deadline() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as one:
            await one.kill()
            one.server.handler = lambda asked: SILENCE
            began = here().time()
            assert not await one.elector.release()
            assert here().time() - began <= 10.0
            assert not one.elector.may_act()

    run(main())
