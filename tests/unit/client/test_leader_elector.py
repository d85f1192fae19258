"""Candidates for one lease with separate connections: partitions, stopped and killed processes, clock jumps."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from extender.client.leader_election import Election
from extender.client.leader_elector import LeaderElector
from extender.client.writer import Writer
from extender.config.model import LeaderElection
from tests.unit.client.scripted_server import (
    SILENCE,
    ReceivedRequest,
    Reply,
    ScriptedResponse,
    ScriptedServer,
    failure_reply,
    open_transport,
)
from tests.unit.client.virtual_time import current_loop, run

NAME = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


class Leases:
    """The server's lease, with optimistic concurrency."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.holders: list[str] = []

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    def edit(self, holder: str) -> None:
        """Change the holder by hand."""
        self.put({**self.spec, "holderIdentity": holder})

    def put(self, spec: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        metadata = {"name": "kube-scheduler", "namespace": "kube-system", "resourceVersion": str(self.version)}
        self.lease = {"metadata": metadata, "spec": spec}
        self.holders.append(spec["holderIdentity"])
        return self.lease

    def __call__(self, request: ReceivedRequest) -> ScriptedResponse:
        if request.method == "POST":
            return failure_reply(409, "AlreadyExists") if self.lease else Reply(201, self.put(request.body["spec"]))
        assert request.path == NAME
        if self.lease is None:
            return failure_reply(404, "NotFound")
        if request.method == "PUT":
            if request.body["metadata"]["resourceVersion"] != str(self.version):
                return failure_reply(409, "Conflict")
            return Reply(body=self.put(request.body["spec"]))
        return Reply(body=self.lease)


@dataclass
class Candidate:
    """A leader elector, its server connection, and its result."""

    elector: LeaderElector
    server: ScriptedServer
    end_reason: str = ""
    led_since: float = 0.0
    new_leaders: list[str] = field(default_factory=list)
    task: "asyncio.Task[None] | None" = None

    async def run(self) -> None:
        await self.elector.acquire()
        self.led_since = current_loop().time()
        self.end_reason = await self.elector.renew()

    def start(self) -> None:
        self.task = asyncio.create_task(self.run())

    async def kill(self) -> None:
        """End without cleanup, like `kill -9`."""
        assert self.task is not None
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@asynccontextmanager
async def candidates(leases: Leases, *names: str, seed: int = 1) -> AsyncIterator[list[Candidate]]:
    """Create candidates that have not started yet."""
    async with asyncio.TaskGroup() as group:
        candidates_: list[Candidate] = []
        stop_requested = asyncio.Event()

        async def candidate(name: str, ready: asyncio.Event) -> None:
            jitter = random.Random(f"{seed}{name}").random
            async with ScriptedServer(leases) as server, open_transport(server) as transport:
                candidate = Candidate(
                    LeaderElector(Election(LeaderElection(), name), Writer(transport), current_loop(), jitter), server
                )
                candidate.elector.on_new_leader = candidate.new_leaders.append
                candidates_.append(candidate)
                ready.set()
                await stop_requested.wait()
                if candidate.task is not None:
                    await candidate.kill()

        for name in names:
            ready = asyncio.Event()
            group.create_task(candidate(name, ready))
            await ready.wait()
        try:
            yield candidates_
        finally:
            stop_requested.set()


@asynccontextmanager
async def leader(leases: Leases, *, seconds: float = 10) -> AsyncIterator[Candidate]:
    """A candidate that started *seconds* ago and holds the lease."""
    async with candidates(leases, "one") as (candidate,):
        candidate.start()
        await asyncio.sleep(seconds)
        yield candidate


@asynccontextmanager
async def leader_and_rival(leases: Leases, *, seed: int = 1) -> AsyncIterator[list[Candidate]]:
    """A candidate that holds the lease, and one that has just started."""
    async with candidates(leases, "one", "two", seed=seed) as (candidate, two):
        candidate.start()
        await asyncio.sleep(0.1)
        two.start()
        yield [candidate, two]


async def assert_never_two_leaders(candidates_: list[Candidate], seconds: float) -> None:
    """Let time pass, and assert that two candidates never may act at once."""
    end = current_loop().time() + seconds
    while current_loop().time() < end:
        assert sum(candidate.elector.may_act() for candidate in candidates_) <= 1
        await asyncio.sleep(0.1)


def test_one_candidate_leads_and_renews_while_the_other_waits() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases) as (candidate, two):
            await assert_never_two_leaders([candidate, two], 60)
            assert (candidate.elector.may_act(), two.elector.may_act()) == (True, False)
            assert leases.spec["leaseTransitions"] == 0
            assert (candidate.new_leaders, two.new_leaders) == (["one"], ["one"])
            # A renewal is one request; the lease is looked at once, before it is made.
            assert [request.method for request in candidate.server.requests].count("GET") == 1

    run(main())


@pytest.mark.parametrize("seed", range(5))
def test_fault_22_after_a_kill_the_other_leads_within_17_seconds(seed: int) -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases, seed=seed) as (candidate, two):
            await asyncio.sleep(20 + random.Random(seed).random() * 4)
            await candidate.kill()
            killed = current_loop().time()
            await asyncio.sleep(20)
            assert two.led_since - killed <= 17.0
            assert two.elector.may_act()
            assert leases.spec["leaseTransitions"] == 1
            assert two.new_leaders == ["one", "two"]

    run(main())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("silent", [False, True], ids=["connections are refused", "nothing ever answers"])
def test_fault_17_a_partitioned_leader_stops_before_the_other_starts(seed: int, silent: bool) -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases, seed=seed) as (candidate, two):
            await assert_never_two_leaders([candidate, two], 20 + random.Random(seed).random() * 4)
            if silent:
                candidate.server.handler = lambda request: SILENCE
            else:
                await candidate.server.stop()
            cut = current_loop().time()
            await assert_never_two_leaders([candidate, two], 20)
            assert candidate.end_reason == "the lease could not be renewed within 10 s"
            assert two.elector.may_act()
            assert two.led_since - cut <= 17.0
            if not silent:
                await candidate.server.start()

    run(main())


def test_every_failed_renewal_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with leader(Leases()) as candidate:
            candidate.server.handler = lambda request: SILENCE if request.method == "GET" else failure_reply(500)
            await asyncio.sleep(20)
            assert candidate.end_reason == "the lease could not be renewed within 10 s"

    run(main())
    failures = [record for record in caplog.records if record.getMessage() == "Failed to update the lease"]
    assert [getattr(record, "err", "") for record in failures] == [
        f"GET {NAME}: no response in time",
        "no response before the renew deadline",
    ]


def test_an_outage_shorter_than_the_renew_deadline_keeps_the_lead() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as candidate:
            await candidate.server.stop()
            await asyncio.sleep(7)
            await candidate.server.start()
            await asyncio.sleep(10)
            assert candidate.elector.may_act()
            assert (candidate.end_reason, leases.spec["leaseTransitions"]) == ("", 0)

    run(main())


def test_fault_18_a_leader_that_was_stopped_may_not_act_and_steps_down() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases, seconds=10.05) as candidate:
            assert candidate.elector.may_act()
            # While the process stands still, someone else takes the lease over.
            current_loop().suspend(30)
            leases.edit("other")
            assert not candidate.elector.may_act()
            await asyncio.sleep(5)
            assert candidate.end_reason == "the lease is held by other"
            assert not candidate.elector.may_act()

    run(main())


@pytest.mark.parametrize("jump", [3600.0, -3600.0], ids=["an hour on", "an hour back"])
def test_fault_19_a_wall_clock_that_jumps_does_not_change_the_leader(jump: float) -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases) as (candidate, two):
            await assert_never_two_leaders([candidate, two], 20)
            current_loop().wall_offset += jump
            await assert_never_two_leaders([candidate, two], 60)
            assert candidate.elector.may_act()
            assert set(leases.holders) == {"one"}

    run(main())


def test_fault_20_a_deleted_lease_is_created_again() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as candidate:
            leases.lease = None
            await asyncio.sleep(5)
            assert candidate.elector.may_act()
            assert leases.spec["holderIdentity"] == "one"

    run(main())


def test_fault_20_after_a_conflict_on_renewal_the_lease_is_read_and_the_lead_continues() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as candidate:
            leases.put(leases.spec)
            await asyncio.sleep(5)
            assert candidate.elector.may_act()
            assert candidate.end_reason == ""

    run(main())


def test_fault_20_a_holder_edited_by_hand_ends_the_lead() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as candidate:
            leases.edit("other")
            await asyncio.sleep(5)
            assert candidate.end_reason == "the lease is held by other"
            assert leases.spec["holderIdentity"] == "other"

    run(main())


def test_fault_21_a_released_lease_is_taken_over_within_the_retry_period() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases) as (candidate, two):
            await asyncio.sleep(10)
            await candidate.kill()
            assert await candidate.elector.release()
            released = current_loop().time()
            assert not candidate.elector.may_act()
            assert leases.spec["holderIdentity"] == ""
            await asyncio.sleep(3)
            assert two.led_since - released <= 2.1
            assert leases.holders[-1] == "two"

    run(main())


def test_a_failed_release_returns_false_within_the_renew_deadline() -> None:
    async def main() -> None:
        leases = Leases()
        async with leader(leases) as candidate:
            await candidate.kill()
            candidate.server.handler = lambda request: SILENCE
            start_time = current_loop().time()
            assert not await candidate.elector.release()
            assert current_loop().time() - start_time <= 10.0
            assert not candidate.elector.may_act()

    run(main())


@pytest.mark.parametrize(
    "body",
    [
        {"message": "please log in"},
        {"spec": "x"},
        {"spec": []},
        b'{"metadata":{"a":' + b"[" * 100_000,
        b"\xff",
        b"<html>",
    ],
    ids=lambda body: str(body)[:30],
)
def test_a_response_that_is_no_lease_gives_nobody_the_lead(body: Any) -> None:
    """A proxy answers with status 200 in the place of the API server."""

    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases) as (_, rival):
            rival.server.handler = lambda _: Reply(body=body)
            await asyncio.sleep(60)
            assert not rival.elector.may_act()
            assert {request.method for request in rival.server.requests} == {"GET"}

    run(main())


def test_a_response_that_names_another_holder_gives_nobody_the_lead() -> None:
    """A proxy answers each request with the same free lease, so that no write reaches the API server."""

    async def main() -> None:
        leases = Leases()
        async with leader_and_rival(leases) as (_, rival):
            free_lease = {"metadata": {"resourceVersion": "5"}, "spec": {}}
            rival.server.handler = lambda _: Reply(body=free_lease)
            await asyncio.sleep(60)
            assert not rival.elector.may_act()
            assert {request.method for request in rival.server.requests} == {"GET", "PUT"}

    run(main())
