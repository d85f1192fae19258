"""Leader election with partitions, stopped processes, clock jumps and overwritten leases: only the leader binds.

Source: client-go's leader election.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from extender.config.model import Extender
from extender.fake_apiserver.registry.resources import RESOURCES_BY_KIND
from extender.framework.api_plan import ApiPlan
from extender.framework.binding_points import PermitResult
from extender.framework.status import Code, Status
from tests.faults.builders import FaultHarness, run
from tests.faults.tcp_proxy import TcpProxy
from tests.faulty_apiserver import Fault, FaultKind
from tests.unit.client.virtual_time import current_loop

LEASES = RESOURCES_BY_KIND["coordination.k8s.io/v1", "Lease"]
SYSTEM = "kube-system"


def lease(harness: FaultHarness) -> dict[str, Any]:
    spec: dict[str, Any] = harness.server.api.get(LEASES, SYSTEM, "kube-scheduler")["spec"]
    return spec


@pytest.mark.parametrize("how", ["cut", "stall"])
def test_a_disconnected_leader_ends_and_the_standby_takes_over_within_17_seconds(how: str) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(3)
        first = await harness.start_leader()
        second = await harness.start_scheduler()
        harness.create_pods("a", "b")
        await harness.wait_until_consistent()
        getattr(first.proxy, how)()
        harness.create_pods("c", "d")
        assert await harness.wait_until(lambda: second.is_leader) <= 17.5
        assert first.task.result() == 1
        await harness.wait_until_consistent()
        assert lease(harness)["leaseTransitions"] == 1

    run(scenario)


def test_bindings_that_wait_while_the_process_is_stopped_are_not_sent_when_it_continues() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(3)
        first = await harness.start_leader()
        harness.server.faults.add(Fault(FaultKind.STATUS, "create", "pods/binding", code=429, retry_after="1"))
        harness.create_pods(*(f"p{number}" for number in range(6)))
        await harness.wait_until(lambda: len(harness.recorder.requests("POST", "/binding")) >= 6)
        sent = len(harness.recorder.requests("POST", "/binding"))
        harness.server.faults.clear()
        current_loop().suspend(30.0)
        await asyncio.sleep(0.5)
        assert len(harness.recorder.requests("POST", "/binding")) == sent
        assert harness.recorder.binding_count() == 0
        if first.task.done():
            await harness.start_scheduler()
        await harness.wait_until_consistent()

    run(scenario)


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_wall_clock_that_jumps_changes_nothing(jump: float) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        first = await harness.start_leader()
        second = await harness.start_scheduler()
        harness.create_pods("a")
        await harness.wait_until_consistent()
        current_loop().wall_offset += jump
        harness.create_pods("b")
        await asyncio.sleep(60)
        assert (first.is_leader, second.is_leader) == (True, False)
        assert lease(harness)["leaseTransitions"] == 0
        await harness.wait_until_consistent()

    run(scenario)


def deleted(harness: FaultHarness) -> None:
    harness.server.api.delete_now(LEASES, SYSTEM, "kube-scheduler")


def touched(harness: FaultHarness) -> None:
    harness.server.api.patch(LEASES, SYSTEM, "kube-scheduler", {"metadata": {"labels": {"a": "b"}}})


@pytest.mark.parametrize("meddle", [deleted, touched])
def test_a_deleted_or_overwritten_lease_is_reacquired_at_once(meddle: Callable[[FaultHarness], None]) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        first = await harness.start_leader()
        meddle(harness)
        await asyncio.sleep(20)
        assert first.is_leader
        assert lease(harness)["holderIdentity"] == first.scheduler.identity
        harness.create_pods("b")
        await harness.wait_until_consistent()

    run(scenario)


def test_a_leader_that_finds_another_holder_ends_and_reacquires_the_lease_later() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        first = await harness.start_leader()
        robbed = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 15}}
        harness.server.api.patch(LEASES, SYSTEM, "kube-scheduler", robbed)
        assert await harness.wait_until(first.task.done) <= 12.5
        assert first.task.result() == 1
        harness.create_pods("a")
        second = await harness.start_scheduler()
        await asyncio.sleep(10)
        assert not second.is_leader
        await harness.wait_until_consistent()
        assert lease(harness)["leaseTransitions"] == 1

    run(scenario)


def test_a_terminating_leader_finishes_its_work_and_releases_the_lease() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        first = await harness.start_leader()
        second = await harness.start_scheduler()
        harness.server.faults.add(Fault(FaultKind.DELAY, "create", "pods/binding", delay_seconds=2, times=3))
        harness.create_pods("a", "b", "c")
        await harness.wait_until(lambda: len(harness.recorder.requests("POST", "/binding")) == 3)
        first.stopping.set()
        await harness.wait_until(first.task.done, 5)
        assert first.task.result() == 0
        assert harness.unbound_names() == set()
        assert await harness.wait_until(lambda: second.is_leader) <= 2.5
        harness.create_pods("d")
        await harness.wait_until_consistent()

    run(scenario)


class Waits:
    """Has each pod wait on Permit or in PreBind."""

    name = "Waits"

    def permit(self, *_: Any) -> PermitResult:
        return PermitResult(Status(Code.WAIT), timeout=600.0)

    def pre_bind(self, *_: Any) -> ApiPlan:
        return ApiPlan((), lambda _: None, timeout=600.0)


@pytest.mark.parametrize("point", ["permit_plugins", "pre_bind_plugins"])
def test_a_terminating_leader_does_not_wait_for_a_gang_or_a_volume(point: str) -> None:
    """The next leader schedules the pod. kube-scheduler does not wait either."""

    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        first = await harness.start_leader()
        second = await harness.start_scheduler()
        context = first.scheduler.context
        (profile,) = context.profiles.values()
        context.profiles = {profile.scheduler_name: replace(profile, **dict[str, Any]({point: (Waits(),)}))}
        harness.create_pods("a")
        await harness.wait_until(lambda: len(context.waiting_pods) + len(context.pre_bind_cancel_functions) == 1)
        first.stopping.set()
        assert await harness.wait_until(first.task.done) <= 0.25
        assert first.task.result() == 0
        assert await harness.wait_until(lambda: second.is_leader) <= 2.5
        await harness.wait_until_consistent()

    run(scenario)


def test_a_terminating_leader_waits_ten_seconds_for_an_extender_and_releases_the_lease() -> None:
    async def scenario(harness: FaultHarness) -> None:
        hanging = TcpProxy(int(harness.server.url.rpartition(":")[2]))
        await hanging.start()
        hanging.stall()
        try:
            harness.create_nodes(2)
            extender = Extender(url_prefix=hanging.url, filter_verb="filter", http_timeout=300.0)
            first = await harness.start_leader(extenders=(extender,))
            second = await harness.start_scheduler()
            harness.create_pods("a")
            await harness.wait_until(lambda: len(first.scheduler.queue.in_flight_events) > 0)
            await asyncio.sleep(1)
            first.stopping.set()
            assert 10 <= await harness.wait_until(first.task.done) <= 11
            assert first.task.result() == 0
            assert await harness.wait_until(lambda: second.is_leader) <= 2.5
            await harness.wait_until_consistent()
        finally:
            await hanging.stop()

    run(scenario)
