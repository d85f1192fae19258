"""Bindings and other writes fail in every way there is: each pod ends up on one node, once, and nothing is lost.

Source: design of operations, faults 8 to 12, 14, 15, 22 and 29.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.client.pacing import TokenBucket
from extender.sandbox.faults import Fault, Spoiled
from extender.sandbox.placing import bind
from extender.sandbox.served import BY_KIND, NODES, PODS
from tests.faults.world import LONG_LEASE, Replica, World, a_node, a_pod, run
from tests.unit.client.virtual_time import here

SLOW = Fault(Spoiled.DELAY, "create", "pods/binding", seconds=2.0, times=1)


def by_another(world: World, name: str, node: str) -> None:
    """Another scheduler binds a pod."""
    target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    bind(world.sandbox.api, "default", name, target)


def bindings(world: World, name: str) -> int:
    """How many were sent."""
    return len(world.history.requests("POST", f"/pods/{name}/binding"))


def test_a_pod_that_somebody_else_bound_meanwhile_stays_there_and_frees_our_node() -> None:
    async def trial(world: World) -> None:
        world.nodes(1, cpu="1")
        await world.leader()
        world.sandbox.faults.add(SLOW)
        world.pods("a", cpu="1")
        await world.until(lambda: bindings(world, "a") == 1)
        world.sandbox.api.add(a_node("far", cpu="1"))
        by_another(world, "a", "far")
        world.pods("b", cpu="1")
        await world.settled()
        assert (world.node_of("a"), world.node_of("b")) == ("far", "n1")
        assert bindings(world, "a") == 1

    run(trial)


def test_a_pod_made_again_under_its_name_is_bound_as_the_new_pod_it_is() -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        await world.leader()
        world.sandbox.faults.add(SLOW)
        world.pods("a")
        await world.until(lambda: bindings(world, "a") == 1)
        world.sandbox.api.remove(PODS, "default", "a")
        world.pods("a")
        await world.settled()
        assert bindings(world, "a") == 2
        assert world.history.placements() == 1

    run(trial)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(Spoiled.LOST, "create", "pods/binding", times=3),
        Fault(Spoiled.LOST, "create", "pods/binding", seconds=20, times=2),
        Fault(Spoiled.CUT, "create", "pods/binding", times=3),
        Fault(Spoiled.DELAY, "create", "pods/binding", seconds=100, times=2),
        Fault(Spoiled.STATUS, "create", "pods/binding", code=504, times=3),
        Fault(Spoiled.STATUS, "create", "pods/binding", code=500, times=8),
        Fault(Spoiled.STATUS, "create", "pods/binding", code=503, retry_after="3", times=5),
        Fault(Spoiled.STATUS, "create", "pods/binding", code=429, retry_after="3", times=5),
        Fault(Spoiled.STATUS, "create", "pods/binding", code=429, retry_after="Mon, 21 Sep 2026 14:31:00 GMT", times=5),
        Fault(Spoiled.STATUS, "create", "pods/binding", code=403, times=4),
    ],
    ids=lambda fault: f"{fault.what.value} {fault.code} {fault.seconds:g} s {fault.retry_after}",
)
@pytest.mark.parametrize("blind", [False, True], ids=["seen by the watch", "not seen by the watch"])
def test_a_binding_whose_answer_fails_is_neither_lost_nor_made_twice(fault: Fault, blind: bool) -> None:
    async def trial(world: World) -> None:
        world.nodes(2, cpu="1")
        await world.leader(**LONG_LEASE)
        world.sandbox.faults.add(fault)
        if blind:
            world.spoil(Spoiled.STALL, "watch", "pods", times=1, after=3)
        world.pods("a", "b", cpu="1")
        await world.settled()
        world.pods("c", cpu="1")
        await asyncio.sleep(60)
        assert world.unbound() == {"c"}
        world.sandbox.api.remove(PODS, "default", "a")
        await world.settled()

    run(trial)


def test_a_pod_deleted_while_it_is_bound_frees_its_room_at_once() -> None:
    async def trial(world: World) -> None:
        world.nodes(1, cpu="1")
        await world.leader()
        world.sandbox.faults.add(SLOW)
        world.pods("a", "b", cpu="1")
        await world.until(lambda: bindings(world, "a") + bindings(world, "b") == 1)
        world.sandbox.api.remove(PODS, "default", "a" if bindings(world, "a") else "b")
        assert await world.settled() < 12
        assert len(world.sandbox.api.each(PODS)) == 1

    run(trial)


@pytest.mark.parametrize("resource", ["events", "pods/status"])
def test_a_server_that_takes_no_events_or_statuses_gets_its_bindings_all_the_same(resource: str) -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        await world.leader()
        world.spoil(Spoiled.STATUS, "*", f"{resource}*", code=500)
        world.pods("large", cpu="16")
        world.pods(*(f"p{number}" for number in range(8)))
        assert await world.until(lambda: world.unbound() == {"large"}, 5) < 1
        await world.settled("large")

    run(trial)


def test_an_event_server_that_never_answers_holds_nothing_up() -> None:
    async def trial(world: World) -> None:
        world.nodes(2)
        await world.leader()
        world.spoil(Spoiled.DELAY, "create", "events*", seconds=1000)
        for number in range(8):
            world.pods(f"p{number}")
            assert await world.until(lambda: not world.unbound(), 5) < 1
        await world.settled()

    run(trial)


def test_a_scheduler_killed_between_assuming_and_binding_leaves_all_to_its_successor() -> None:
    async def trial(world: World) -> None:
        world.nodes(3, cpu="2")
        first = await world.leader()
        world.spoil(Spoiled.STATUS, "create", "pods/binding", code=503, skip=2)
        world.pods(*(f"p{number}" for number in range(6)), cpu="1")
        await asyncio.sleep(0.2)
        await first.kill()
        world.sandbox.faults.clear()
        assert len(world.unbound()) >= 3
        await world.leader()
        assert await world.settled() < 30

    run(trial)


def test_victims_whose_deletion_fails_are_asked_again_and_only_they_go() -> None:
    async def trial(world: World) -> None:
        world.sandbox.api.add(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
        )
        world.nodes(2, cpu="2")
        await world.leader()
        world.pods("a", "b", "c", "d", cpu="1")
        await world.settled()
        world.spoil(Spoiled.STATUS, "delete", "pods", code=500, times=2)
        world.spoil(Spoiled.LOST, "delete", "pods", skip=2, times=1)
        world.sandbox.api.add(a_pod("urgent", cpu="1", priorityClassName="high"))
        await world.settled()
        left = [pod["metadata"]["name"] for pod in world.sandbox.api.each(PODS)]
        assert len(left) == 4
        assert "urgent" in left

    run(trial)


CORDON = {"spec": {"unschedulable": True}}
TAINT = {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def held_back(replica: Replica) -> Callable[[], bool]:
    """Only one call in five seconds from now on: gives whether a binding waits for its turn."""
    bucket = replica.scheduler.transport._bucket = TokenBucket(0.2, 1)
    bucket.take(here().time())
    return lambda: bool(replica.scheduler.state.placed)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (None, 'node "n1" was deleted before the pod was bound to it'),
        (CORDON, 'node "n1" changed before the pod was bound to it: node(s) were unschedulable'),
        (TAINT, 'node "n1" changed before the pod was bound to it: node(s) had untolerated taint(s)'),
    ],
    ids=["deleted", "cordoned", "tainted"],
)
def test_a_node_that_goes_or_closes_while_the_binding_waits_to_be_sent_gets_no_pod(change: Any, said: str) -> None:
    async def trial(world: World) -> None:
        world.nodes(1)
        replica = await world.leader(**LONG_LEASE)
        held = held_back(replica)
        world.pods("a")
        await world.until(held)
        world.sandbox.api.add(a_node("n2"))
        if change is None:
            world.sandbox.api.remove(NODES, "", "n1")
        else:
            world.sandbox.api.patch(NODES, "", "n1", change, strategic=True)
        await world.settled()
        assert (world.node_of("a"), bindings(world, "a")) == ("n2", 1)
        assert said in [event["message"] for event in world.sandbox.api.each(BY_KIND["v1", "Event"])]

    run(trial)


def test_a_node_that_changes_in_what_does_not_matter_gets_its_pod_at_once() -> None:
    async def trial(world: World) -> None:
        world.nodes(1)
        held = held_back(await world.leader(**LONG_LEASE))
        world.pods("a")
        await world.until(held)
        world.sandbox.api.patch(NODES, "", "n1", READY, strategic=True, part="status")
        assert await world.settled() < 12
        assert (world.node_of("a"), bindings(world, "a")) == ("n1", 1)

    run(trial)
