"""No pod is scheduled while many requests are pending; pods are scheduled while many calls wait before a retry."""

import asyncio

from tests.faults.builders import LONG_LEASE, FaultHarness, run
from tests.faulty_apiserver import Fault, FaultKind


def test_no_pod_is_scheduled_while_64_requests_are_pending() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(20)
        replica = await harness.start_leader(**LONG_LEASE)
        harness.inject_fault(FaultKind.DELAY, "create", "pods/binding", delay_seconds=4)
        harness.create_pods(*(f"p{number}" for number in range(150)), cpu="10m")
        counts = []
        for seconds in (2, 4, 4, 4):
            await asyncio.sleep(seconds)
            bound_count = 150 - len(harness.unbound_names())
            counts.append((len(replica.scheduler.cache.assigned_pods), bound_count))
        assert counts == [(64, 0), (96, 32), (128, 64), (150, 96)]
        await harness.wait_until_consistent()

    run(scenario)


def test_a_pod_is_bound_while_64_bindings_wait_as_the_server_demands() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(20)
        await harness.start_leader(**LONG_LEASE)
        rejection = Fault(FaultKind.STATUS, "create", "pods/binding", code=429, retry_after="10", times=64)
        harness.server.faults.add(rejection)
        rejected_names = [f"rejected-{number}" for number in range(64)]
        harness.create_pods(*rejected_names, cpu="10m")
        await harness.wait_until(lambda: len(harness.recorder.requests("POST", "/binding")) == 64)
        harness.create_pods("new", cpu="10m")
        assert await harness.wait_until(lambda: bool(harness.node_of("new"))) < 1
        assert harness.unbound_names() == set(rejected_names)
        await harness.wait_until_consistent()

    run(scenario)
