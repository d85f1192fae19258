"""The plugin for gangs of the plugin page, in the scheduling loop."""

import asyncio
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from extender.app import wiring
from extender.framework.plugin_inputs import protect_inputs
from extender.framework.plugin_validation import validate_plugin
from extender.plugins.default_binder import DefaultBinder
from tests.build import make_node, make_pod
from tests.unit.cycle.fakes import make_profile
from tests.unit.scheduler.builders import SchedulerHarness

PAGE = Path(__file__).resolve().parents[3] / "docs" / "plugins.md"
BLOCK = re.compile(r'^```python title="src/price_plugins/gangs\.py"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TIMED_OUT = "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Gangs."
GIVES_UP = "0/1 nodes are available: 1 another pod of its gang fits no node."


@pytest.fixture(name="gangs")
def load_gangs() -> Any:
    """Return the plugin class of the page, as it is loaded from an installed package."""
    match = re.search(
        r'^```python title="src/price_plugins/gangs\.py"\n(.*?)^```$', PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert match is not None
    module = ModuleType("price_plugins.gangs")
    exec(match.group(1), vars(module))  # noqa: S102  a block of the documentation
    assert validate_plugin(module.Gangs) == []
    return protect_inputs(module.Gangs)


def make_harness(gangs: Any, cpu: str, size: int) -> SchedulerHarness:
    """Return a scheduler with one node with *cpu*, and a gang of *size* pods with one CPU each."""
    node = make_node("n1", allocatable={"cpu": cpu, "memory": "9Gi", "pods": "9"})
    fits = wiring.build_setup().first_profile.plugins["NodeResourcesFit"]
    harness = SchedulerHarness(node, profile=make_profile(fits, gangs(), DefaultBinder()))
    labels = {"example.com/gang": "a", "example.com/gang-size": str(size)}
    harness.create(*(make_pod(f"p{number}", requests={"cpu": "1"}, labels=labels) for number in range(size)))
    return harness


def list_nodes(harness: SchedulerHarness) -> list[str]:
    """Return the nodes of the pods on the server, in their order."""
    return [pod.spec.node_name for pod in harness.api.pods.values()]


def test_a_gang_that_fits_starts_together(gangs: Any) -> None:
    harness = make_harness(gangs, "3", 3)
    harness.create(make_pod("single"))
    harness.run()
    assert list_nodes(harness) == ["n1", "n1", "n1", "n1"]


async def run_for_a_while(harness: SchedulerHarness, seconds: int) -> None:
    """Run the scheduler; a second passes whenever there is nothing to do."""
    for _ in range(seconds):
        harness.scheduler.run_periodic_tasks()
        for _ in range(50):
            await harness.scheduler.schedule_one()
            await asyncio.sleep(0)
        harness.clock.seconds += 1


def test_a_gang_that_does_not_fit_is_not_tried_again_without_an_event_and_starts_once_it_fits(gangs: Any) -> None:
    harness = make_harness(gangs, "2", 3)

    async def test() -> None:
        await run_for_a_while(harness, 100)

        failures = [(pod, note) for pod, reason, note in harness.events.recorded if reason == "FailedScheduling"]
        assert failures[0] == ("default/p2", "0/1 nodes are available: 1 Insufficient cpu.")
        assert sorted(failures[1:3]) == [("default/p0", GIVES_UP), ("default/p1", GIVES_UP)]
        assert failures[3:] == [("default/p2", TIMED_OUT)]
        assert list_nodes(harness) == ["", "", ""]
        assert dict(harness.cache.assigned_pods) == {}

        node = harness.cache.get_node("n1")
        assert node is not None
        larger_node = make_node("n1", allocatable={"cpu": "3", "memory": "9Gi", "pods": "9"})
        harness.dispatcher.on_update(node, larger_node)
        await run_for_a_while(harness, 15)
        assert list_nodes(harness) == ["n1", "n1", "n1"]

    asyncio.run(test())


def test_a_pod_that_is_lost_while_the_gang_waits_frees_the_nodes_of_the_others(gangs: Any) -> None:
    harness = make_harness(gangs, "3", 3)
    (last,) = [pod for pod in harness.api.pods.values() if pod.metadata.name == "p2"]
    harness.dispatcher.on_delete(harness.api.pods.pop(last.key))
    first = harness.api.pods["default/p0"]

    async def test() -> None:
        for _ in range(2):
            await harness.scheduler.schedule_one()
            await asyncio.sleep(0)
        assert len(harness.context.waiting_pods) == 2
        harness.dispatcher.on_delete(harness.api.pods.pop(first.key))
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(test())

    message = "0/1 nodes are available: 1 another pod of its gang lost its node."
    assert ("default/p1", "FailedScheduling", message) in harness.events.recorded
    assert dict(harness.cache.assigned_pods) == {}
