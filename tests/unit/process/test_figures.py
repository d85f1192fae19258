"""What a scheduler's pages are told: sizes, who rejected whom, why a pod waits, usage only while leading."""

import asyncio
import json
from collections.abc import Callable
from typing import TypeVar

import pytest

from extender.basics.clock import SystemClock
from extender.client.kubeconfig import Place
from extender.config.gates import FeatureGates
from extender.process.figures import cached, explain, figures, in_flight, rejected, running, usage
from extender.standalone import Standalone, Watching
from extender.wiring import engine, scheduling
from tests.build import a_node, a_pod
from tests.groups import a_group, a_member

T = TypeVar("T")
PROFILE = "default-scheduler"


def with_scheduler(look: Callable[[Standalone], T]) -> T:
    """What *look* finds at a scheduler with one node, a pod on it, an assumed one, and two that wait: one rejected."""

    async def go() -> T:
        scheduler = Standalone(scheduling(), Place(), SystemClock(), Watching(), max_parked=300.0)
        state = scheduler.state
        state.put_node(a_node("n1"))
        state.put_pod(a_pod("placed", node="n1", requests={"cpu": "1"}))
        state.put_pod(a_pod("assumed"))
        state.assume(a_pod("assumed"), "n1")
        for name in ("big", "small"):
            pod = a_pod(name, requests={"cpu": "40" if name == "big" else "1"})
            state.put_pod(pod)
            scheduler.queue.add(state.snapshot().query(pod), 0.0)
        tried = scheduler.queue.pop()
        assert tried is not None
        tried.rejectors = frozenset(("NodeResourcesFit", "NodeAffinity"))
        scheduler.queue.came_back(tried, 0.0)
        return look(scheduler)

    return asyncio.run(go())


def test_sizes_tell_assumed_pods_apart() -> None:
    """Source: H017."""
    assert with_scheduler(cached) == {"nodes": 1, "pods": 2, "assumed_pods": 1}


def test_a_waiting_pod_counts_for_each_plugin_that_rejected_it() -> None:
    """Source: H018."""
    assert with_scheduler(rejected) == {("NodeResourcesFit", PROFILE): 1, ("NodeAffinity", PROFILE): 1}


def test_pods_in_flight_count_among_the_events() -> None:
    """Source: H021."""

    def look(scheduler: Standalone) -> object:
        scheduler.queue.pop()
        return in_flight(scheduler)

    assert with_scheduler(look) == {"PodPopped": 1}


def test_pending_pods_are_told_by_queue() -> None:
    """Source: H006."""
    told = with_scheduler(lambda scheduler: figures(scheduler).pending())
    assert told == {"active": 1, "backoff": 0, "unschedulable": 1, "gated": 0}


def test_tasks_are_told_by_what_they_do() -> None:
    """Source: H019."""

    async def bind() -> None:
        await asyncio.Event().wait()

    async def go() -> object:
        tasks = [asyncio.create_task(bind()) for _ in range(2)]
        await asyncio.sleep(0)
        found = running()
        for task in tasks:
            task.cancel()
        return found

    assert asyncio.run(go()) == {"binding": 2, "DefaultPreemption": 0, "prioritizing_extender": 0, "status": 0}


@pytest.mark.parametrize(("leading", "told"), [(True, True), (False, False)])
def test_usage_is_told_by_the_leader_alone(leading: bool, told: bool) -> None:
    """Source: H039."""
    page = with_scheduler(lambda scheduler: "".join(usage(scheduler, leading=leading)))
    assert ('node="n1",pod="placed"' in page) is told
    assert bool(page) is told


@pytest.mark.parametrize(
    ("pod", "begin"),
    [
        ("big", "Pod default/big\n  fits on none of 1 node\n  0/1 nodes are available: 1 Insufficient cpu."),
        ("small", "Pod default/small\n  fits on"),
        ("placed", "Pod default/placed\n  is on node n1\n"),
    ],
)
def test_a_pod_is_explained(pod: str, begin: str) -> None:
    text = with_scheduler(lambda scheduler: explain(scheduler, {PROFILE: engine()}, "default", pod, as_json=False))
    assert text is not None
    assert text.startswith(begin)


def test_an_explanation_as_json_holds_all_that_was_found_out() -> None:
    told = with_scheduler(lambda scheduler: explain(scheduler, {PROFILE: engine()}, "default", "big", as_json=True))
    assert told is not None
    assert json.loads(told)["nodes"]["n1"]["filters"]["NodeResourcesFit"]["reasons"] == ["Insufficient cpu"]


def test_a_pod_nobody_knows_is_not_explained() -> None:
    assert with_scheduler(lambda scheduler: explain(scheduler, {}, "default", "nope", as_json=False)) is None


def with_a_gang(look: Callable[[Standalone], T]) -> T:
    """As `with_scheduler`, with a gang of two of which one fits."""

    async def go() -> T:
        gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
        scheduler = Standalone(scheduling(gates=gates), Place(), SystemClock(), Watching(), max_parked=300.0)
        scheduler.state.put_node(a_node("n1", allocatable={"cpu": "1", "pods": "9"}))
        scheduler.state.put_object(a_group(min_count=2))
        for name in "ab":
            scheduler.state.put_pod(a_member(name, requests={"cpu": "1"}))
        return look(scheduler)

    return asyncio.run(go())


def test_a_member_of_a_gang_is_explained_with_its_gang() -> None:
    """Source: A144 to A150."""

    def look(scheduler: Standalone) -> list[str | None]:
        return [explain(scheduler, {PROFILE: engine()}, "default", "a", as_json=each) for each in (False, True)]

    text, told = with_a_gang(look)
    assert text is not None
    assert told is not None
    assert "As a member of pod group default/ring, decided together with 1 other pod\n    it goes nowhere" in text
    group = json.loads(told)["podGroup"]
    assert (group["name"], group["members"], group["scheduled"], group["node"]) == ("default/ring", 2, False, None)
