"""Failing lists and watches: afterwards the cache equals the server's objects.

Source: client-go's reflector.
"""

import asyncio

import pytest

from extender.api.kinds.pod import Pod
from extender.fake_apiserver.registry.resources import PODS
from tests.faults.builders import LONG_LEASE, FaultHarness, run
from tests.faulty_apiserver import Fault, FaultKind

LONG = 1200.0


def names(count: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def count_lists(harness: FaultHarness, ending: str = "/pods") -> int:
    """Return how many lists were started, without the lists of one object that only read the resource version."""
    queries = [each.query for each in harness.recorder.requests("GET", ending)]
    return len([query for query in queries if "continue=" not in query and "limit=1" not in query.split("&")])


def change_objects(harness: FaultHarness) -> None:
    """Create two pods and a node, delete a pod and a node."""
    harness.create_pods("new-1", "new-2")
    harness.server.api.delete_now(PODS, "default", "p1")
    harness.server.api.create_from_manifest(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n9"}, "status": {"capacity": {"pods": "5"}}}
    )


def test_watches_that_end_normally_need_one_list_per_kind() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        await harness.start_leader(**LONG_LEASE)
        for number in range(6):
            harness.create_pods(f"p{number}")
            await asyncio.sleep(LONG / 6)
        await harness.wait_until_consistent()
        assert count_lists(harness) == 1
        assert count_lists(harness, "/nodes") == 1
        assert len(harness.recorder.requests("GET", "/pods", watch=True)) > LONG / 60

    run(scenario)


def test_watches_resume_without_a_list_after_a_minute_of_downtime() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        replica = await harness.start_leader(**LONG_LEASE)
        port = int(harness.server.url.rpartition(":")[2])
        harness.create_pods("p1")
        await harness.wait_until_consistent()
        await harness.server.stop()
        harness.create_pods("p2")
        await asyncio.sleep(60)
        assert not replica.task.done()
        await harness.server.start(port)
        assert await harness.wait_until_consistent() < 61
        assert count_lists(harness) == 1

    run(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(FaultKind.BREAK_WATCH, "watch"),
        Fault(FaultKind.END_WATCH, "watch"),
        Fault(FaultKind.GONE, "watch"),
        Fault(FaultKind.GONE, "watch", after_events=1),
        Fault(FaultKind.TRUNCATE_EVENT, "watch", after_events=1),
        Fault(FaultKind.INVALID_JSON, "watch", after_events=1),
        Fault(FaultKind.STATUS, "watch", code=500),
        Fault(FaultKind.STATUS, "watch", code=503, retry_after="2"),
        Fault(FaultKind.STATUS, "watch", code=429, retry_after="2"),
        Fault(FaultKind.STATUS, "watch", code=504),
        Fault(FaultKind.STALL_WATCH, "watch", after_events=1),
    ],
    ids=lambda fault: (
        f"{fault.kind.value} {fault.code if fault.kind is FaultKind.STATUS else ''} after {fault.after_events}"
    ),
)
def test_events_during_a_broken_watch_are_caught_up(fault: Fault) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(3)
        replica = await harness.start_leader()
        harness.create_pods(*names(4))
        await harness.wait_until_consistent()
        harness.server.faults.add(fault)
        for watch in list(replica.proxy._writers):
            watch.transport.abort()
        await asyncio.sleep(5)
        change_objects(harness)
        await asyncio.sleep(150)
        harness.server.faults.clear()
        await harness.wait_until_consistent()

    run(scenario)


def test_a_compaction_during_a_broken_watch_causes_a_list_that_detects_deletions() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(3)
        replica = await harness.start_leader(**LONG_LEASE)
        harness.create_pods(*names(4))
        await harness.wait_until_consistent()
        replica.proxy.cut()
        await asyncio.sleep(1)
        change_objects(harness)
        harness.server.store.compact()
        await asyncio.sleep(20)
        replica.proxy.restore()
        await harness.wait_until_consistent()
        assert count_lists(harness) == 2

    run(scenario)


def test_a_list_with_expired_pages_restarts_and_is_never_applied_in_part() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(40)
        for number in range(1200):
            harness.create_pods(f"p{number}", nodeName=f"n{number % 40 + 1}", cpu="1m")
        harness.inject_fault(FaultKind.GONE, "list", "pods", skip=1, times=1)
        replica = await harness.start_scheduler()
        delivered: set[int] = set()
        while not replica.scheduler.informers.synced:
            delivered.add(len(replica.scheduler.cache.assigned_pods))
            await asyncio.sleep(0)
        await harness.wait_until_consistent()
        assert count_lists(harness) == 2
        assert len(harness.recorder.requests("GET", "/pods")) == 5

    run(scenario)


@pytest.mark.parametrize("what", [FaultKind.DUPLICATE_EVENT, FaultKind.REPLAY_EVENT])
def test_duplicate_and_late_events_change_nothing(what: FaultKind) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(3)
        for after in range(60):
            harness.inject_fault(what, "watch", after_events=after)
        await harness.start_leader()
        for number in range(10):
            harness.create_pods(f"p{number}")
            await asyncio.sleep(0.5)
            if number % 3 == 2:
                harness.server.api.delete_now(PODS, "default", f"p{number - 1}")
        await harness.wait_until_consistent()
        assert count_lists(harness) == 1

    run(scenario)


def test_a_stalled_connection_is_detected_within_a_minute() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        replica = await harness.start_leader(**LONG_LEASE)
        replica.proxy.stall()
        harness.create_pods("p1")
        await asyncio.sleep(90)
        assert "pods" in "".join(
            filter(None, (each.last_error for each in replica.scheduler.informers.reflectors.values()))
        )
        replica.proxy.restore()
        assert await harness.wait_until_consistent() < 61

    run(scenario)


def test_a_forbidden_kind_prevents_the_start_and_is_retried_with_backoff() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(1)
        harness.create_pods("p1")
        harness.inject_fault(FaultKind.STATUS, "list", "nodes", code=403)
        replica = await harness.start_scheduler()
        await asyncio.sleep(300)
        assert not replica.scheduler.informers.synced
        assert "Node not listed yet (nodes: injected fault: 403)" in replica.scheduler.informers.describe_staleness()
        assert count_lists(harness, "/nodes") < 25
        harness.server.faults.clear()
        assert await harness.wait_until_consistent() < 61

    run(scenario)


def test_a_revoked_permission_makes_the_scheduler_unready_and_is_retried_with_backoff() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(1)
        replica = await harness.start_leader(**LONG_LEASE)
        harness.inject_fault(FaultKind.STATUS, "watch", "nodes", code=403)
        before = len(harness.recorder.requests("GET", "/nodes", watch=True))
        await harness.wait_until(lambda: replica.scheduler.informers.describe_staleness() != "", 51)
        assert (
            replica.scheduler.informers.describe_staleness() == "reading Node is forbidden: nodes: injected fault: 403"
        )
        await asyncio.sleep(300)
        assert len(harness.recorder.requests("GET", "/nodes", watch=True)) - before < 25
        assert not replica.task.done()
        harness.server.faults.clear()
        await harness.wait_until(lambda: replica.scheduler.informers.describe_staleness() == "", 61)
        assert count_lists(harness, "/nodes") == 1
        harness.create_pods("p1")
        await harness.wait_until_consistent()

    run(scenario)


@pytest.mark.parametrize("what", ["list", "lease"])
def test_a_watch_error_before_leading_ends_the_scheduler(what: str) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.inject_fault(FaultKind.STATUS, "*", "nodes" if what == "list" else "leases", code=500)
        replica = await harness.start_scheduler()
        await harness.wait_until(lambda: Pod in replica.scheduler.informers.reflectors)
        reflector = replica.scheduler.informers.reflectors[Pod]
        await harness.wait_until(reflector.synced.is_set)

        def broken(changes: object) -> None:
            raise RuntimeError(f"cannot take in {changes}")

        reflector.deliver = broken
        harness.create_pods("p1")
        await asyncio.wait({replica.task}, timeout=5)
        fault = replica.task.exception()
        assert isinstance(fault, BaseExceptionGroup)
        assert str(fault.exceptions[0]).startswith("cannot take in ")

    run(scenario)


def test_a_temporarily_rejected_token_stops_nothing_for_good() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(1)
        replica = await harness.start_leader(**LONG_LEASE)
        harness.inject_fault(FaultKind.STATUS, code=401)
        harness.create_pods("p1")
        await asyncio.sleep(60)
        assert harness.node_of("p1") == ""
        harness.server.faults.clear()
        await harness.wait_until_consistent()
        assert not replica.task.done()

    run(scenario)


@pytest.mark.parametrize("retry_after", ["", "7"])
def test_after_a_server_rejected_all_requests_as_too_many_everything_recovers(retry_after: str) -> None:
    """API priority and fairness rejects requests with 429, and often says when to try again."""

    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        harness.inject_fault(FaultKind.STATUS, code=429, retry_after=retry_after)
        await harness.start_scheduler(**LONG_LEASE)
        await asyncio.sleep(60)
        harness.server.faults.clear()
        await harness.wait_until(lambda: harness.replicas[0].is_leader, 130)
        harness.inject_fault(FaultKind.STATUS, code=429, retry_after=retry_after)
        harness.create_pods("p1")
        change_objects(harness)
        await asyncio.sleep(120)
        harness.server.faults.clear()
        await harness.wait_until_consistent()

    run(scenario)
