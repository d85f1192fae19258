"""Failing bindings and other writes: each pod is bound to one node, once, and no pod is lost."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.client.rate_limit import TokenBucket
from extender.fake_apiserver.registry.pod_subresources import bind
from extender.fake_apiserver.registry.resources import NODES, PODS, RESOURCES_BY_KIND
from tests.faults.builders import LONG_LEASE, FaultHarness, Replica, make_node, make_pod, run
from tests.faulty_apiserver import Fault, FaultKind
from tests.unit.client.virtual_time import current_loop

SLOW = Fault(FaultKind.DELAY, "create", "pods/binding", delay_seconds=2.0, times=1)


def bind_by_other_scheduler(harness: FaultHarness, name: str, node: str) -> None:
    """Bind a pod as another scheduler."""
    target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    bind(harness.server.api, "default", name, target)


def count_binding_requests(harness: FaultHarness, name: str) -> int:
    """Return how many bindings were sent."""
    return len(harness.recorder.requests("POST", f"/pods/{name}/binding"))


def test_a_pod_bound_by_another_scheduler_stays_there_and_frees_our_node() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(1, cpu="1")
        await harness.start_leader()
        harness.server.faults.add(SLOW)
        harness.create_pods("a", cpu="1")
        await harness.wait_until(lambda: count_binding_requests(harness, "a") == 1)
        harness.server.api.create_from_manifest(make_node("far", cpu="1"))
        bind_by_other_scheduler(harness, "a", "far")
        harness.create_pods("b", cpu="1")
        await harness.wait_until_consistent()
        assert (harness.node_of("a"), harness.node_of("b")) == ("far", "n1")
        assert count_binding_requests(harness, "a") == 1

    run(scenario)


@pytest.mark.parametrize("blind", [False, True], ids=["seen by the watch", "not seen by the watch"])
def test_a_pod_bound_by_another_scheduler_keeps_its_condition(blind: bool) -> None:
    """kube-scheduler writes PodScheduled=False; the kubelet of the node corrects it."""

    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(1)
        if blind:  # a fault of a watch applies to watches that start after it
            harness.inject_fault(FaultKind.STALL_WATCH, "watch", "pods", times=1, after_events=1)
        await harness.start_leader()
        harness.server.faults.add(SLOW)
        harness.create_pods("a")
        await harness.wait_until(lambda: count_binding_requests(harness, "a") == 1)
        harness.server.api.create_from_manifest(make_node("far"))
        bind_by_other_scheduler(harness, "a", "far")
        await asyncio.sleep(30)
        assert harness.recorder.requests("PATCH", "/pods/a/status") == []
        await harness.wait_until_consistent()

    run(scenario)


def test_a_recreated_pod_is_bound_as_a_new_pod() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        await harness.start_leader()
        harness.server.faults.add(SLOW)
        harness.create_pods("a")
        await harness.wait_until(lambda: count_binding_requests(harness, "a") == 1)
        harness.server.api.delete_now(PODS, "default", "a")
        harness.create_pods("a")
        await harness.wait_until_consistent()
        assert count_binding_requests(harness, "a") == 2
        assert harness.recorder.binding_count() == 1

    run(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(FaultKind.TIMEOUT, "create", "pods/binding", times=3),
        Fault(FaultKind.TIMEOUT, "create", "pods/binding", delay_seconds=20, times=2),
        Fault(FaultKind.NO_RESPONSE, "create", "pods/binding", times=3),
        Fault(FaultKind.DELAY, "create", "pods/binding", delay_seconds=100, times=2),
        Fault(FaultKind.STATUS, "create", "pods/binding", code=504, times=3),
        Fault(FaultKind.STATUS, "create", "pods/binding", code=500, times=8),
        Fault(FaultKind.STATUS, "create", "pods/binding", code=503, retry_after="3", times=5),
        Fault(FaultKind.STATUS, "create", "pods/binding", code=429, retry_after="3", times=5),
        Fault(
            FaultKind.STATUS, "create", "pods/binding", code=429, retry_after="Mon, 21 Sep 2026 14:31:00 GMT", times=5
        ),
        Fault(FaultKind.STATUS, "create", "pods/binding", code=403, times=4),
    ],
    ids=lambda fault: f"{fault.kind.value} {fault.code} {fault.delay_seconds:g} s {fault.retry_after}",
)
@pytest.mark.parametrize("blind", [False, True], ids=["seen by the watch", "not seen by the watch"])
def test_a_binding_with_a_failed_response_is_neither_lost_nor_repeated(fault: Fault, blind: bool) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2, cpu="1")
        if blind:
            harness.inject_fault(FaultKind.STALL_WATCH, "watch", "pods", times=1, after_events=3)
        await harness.start_leader(**LONG_LEASE)
        harness.server.faults.add(fault)
        harness.create_pods("a", "b", cpu="1")
        await harness.wait_until_consistent()
        harness.create_pods("c", cpu="1")
        await asyncio.sleep(60)
        assert harness.unbound_names() == {"c"}
        harness.server.api.delete_now(PODS, "default", "a")
        await harness.wait_until_consistent()

    run(scenario)


def test_a_pod_deleted_during_its_binding_frees_its_node_at_once() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(1, cpu="1")
        await harness.start_leader()
        harness.server.faults.add(SLOW)
        harness.create_pods("a", "b", cpu="1")
        await harness.wait_until(
            lambda: count_binding_requests(harness, "a") + count_binding_requests(harness, "b") == 1
        )
        harness.server.api.delete_now(PODS, "default", "a" if count_binding_requests(harness, "a") else "b")
        assert await harness.wait_until_consistent() < 12
        assert len(harness.server.api.list_objects(PODS)) == 1

    run(scenario)


@pytest.mark.parametrize("resource", ["events", "pods/status"])
def test_pods_are_bound_while_the_server_rejects_events_and_statuses(resource: str) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        await harness.start_leader()
        harness.inject_fault(FaultKind.STATUS, "*", f"{resource}*", code=500)
        harness.create_pods("large", cpu="16")
        harness.create_pods(*(f"p{number}" for number in range(8)))
        assert await harness.wait_until(lambda: harness.unbound_names() == {"large"}, 5) < 1
        await harness.wait_until_consistent("large")

    run(scenario)


def test_a_condition_is_written_when_the_server_accepts_statuses_again() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(1)
        await harness.start_leader()
        harness.inject_fault(FaultKind.STATUS, "*", "pods/status*", code=403)
        harness.create_pods("large", cpu="16")
        await asyncio.sleep(60)
        harness.server.faults.clear()

        def has_condition() -> bool:
            (pod,) = harness.server.api.list_objects(PODS)
            return any(condition["type"] == "PodScheduled" for condition in pod["status"].get("conditions", ()))

        assert not has_condition()
        assert await harness.wait_until(has_condition, 40) < 35

    run(scenario)


def test_unanswered_event_requests_delay_nothing() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(2)
        await harness.start_leader()
        harness.inject_fault(FaultKind.DELAY, "create", "events*", delay_seconds=1000)
        for number in range(8):
            harness.create_pods(f"p{number}")
            assert await harness.wait_until(lambda: not harness.unbound_names(), 5) < 1
        await harness.wait_until_consistent()

    run(scenario)


def test_a_successor_binds_pods_that_a_killed_scheduler_only_assumed() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(3, cpu="2")
        first = await harness.start_leader()
        harness.inject_fault(FaultKind.STATUS, "create", "pods/binding", code=503, skip=2)
        harness.create_pods(*(f"p{number}" for number in range(6)), cpu="1")
        await asyncio.sleep(0.2)
        await first.kill()
        harness.server.faults.clear()
        assert len(harness.unbound_names()) >= 3
        await harness.start_leader()
        assert await harness.wait_until_consistent() < 30

    run(scenario)


def test_failed_victim_deletions_are_retried_and_no_other_pod_is_deleted() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.server.api.create_from_manifest(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
        )
        harness.create_nodes(2, cpu="2")
        await harness.start_leader()
        harness.create_pods("a", "b", "c", "d", cpu="1")
        await harness.wait_until_consistent()
        harness.inject_fault(FaultKind.STATUS, "delete", "pods", code=500, times=2)
        harness.inject_fault(FaultKind.TIMEOUT, "delete", "pods", skip=2, times=1)
        harness.server.api.create_from_manifest(make_pod("urgent", cpu="1", priorityClassName="high"))
        await harness.wait_until_consistent()
        left = [pod["metadata"]["name"] for pod in harness.server.api.list_objects(PODS)]
        assert len(left) == 4
        assert "urgent" in left

    run(scenario)


CORDON = {"spec": {"unschedulable": True}}
TAINT = {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def limit_request_rate(replica: Replica) -> Callable[[], bool]:
    """Allow one call per five seconds from now on; return a check whether a binding waits for the limit."""
    bucket = replica.scheduler.transport._bucket = TokenBucket(0.2, 1)
    bucket.reserve(current_loop().time())
    return lambda: bool(replica.scheduler.cache.assigned_pods)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, 'node "n1" was deleted before the pod was bound to it'),
        (CORDON, 'node "n1" changed before the pod was bound to it: node(s) were unschedulable'),
        (TAINT, 'node "n1" changed before the pod was bound to it: node(s) had untolerated taint(s)'),
    ],
    ids=["deleted", "cordoned", "tainted"],
)
def test_a_node_deleted_or_cordoned_before_the_binding_is_sent_gets_no_pod(change: Any, message: str) -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(1)
        replica = await harness.start_leader(**LONG_LEASE)
        held = limit_request_rate(replica)
        harness.create_pods("a")
        await harness.wait_until(held)
        harness.server.api.create_from_manifest(make_node("n2"))
        if change is None:
            harness.server.api.delete_now(NODES, "", "n1")
        else:
            harness.server.api.patch_strategically(NODES, "", "n1", change)
        await harness.wait_until_consistent()
        assert (harness.node_of("a"), count_binding_requests(harness, "a")) == ("n2", 1)
        assert message in [
            event["message"] for event in harness.server.api.list_objects(RESOURCES_BY_KIND["v1", "Event"])
        ]

    run(scenario)


def test_a_node_with_an_irrelevant_change_gets_its_pod_at_once() -> None:
    async def scenario(harness: FaultHarness) -> None:
        harness.create_nodes(1)
        held = limit_request_rate(await harness.start_leader(**LONG_LEASE))
        harness.create_pods("a")
        await harness.wait_until(held)
        harness.server.api.patch_strategically(NODES, "", "n1", READY, subresource="status")
        assert await harness.wait_until_consistent() < 12
        assert (harness.node_of("a"), count_binding_requests(harness, "a")) == ("n1", 1)

    run(scenario)
