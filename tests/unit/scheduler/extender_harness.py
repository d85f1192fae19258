"""A scheduler in memory with HTTP extenders on loopback."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from extender.api.kinds.pod import Pod
from extender.client.extender import build_extenders
from extender.config.model import Extender
from extender.cycle.node_sampling import NodeSampler
from extender.plugins.default_binder import DefaultBinder
from tests.build import make_node, make_pod
from tests.unit.client.scripted_server import ScriptedServer
from tests.unit.client.virtual_time import run
from tests.unit.cycle.fakes import make_profile
from tests.unit.scheduler.builders import SchedulerHarness

NAMES = ("n1", "n2", "n3")
FILTER = {"filter_verb": "filter", "node_cache_capable": True}


def make_harness(*plugins: Any, names: tuple[str, ...] = NAMES, **more: Any) -> SchedulerHarness:
    """Make a scheduler with nodes of these names and a profile of these plugins."""
    return SchedulerHarness(*map(make_node, names), profile=make_profile(*plugins, DefaultBinder(), **more))


def create_pending_pod(harness: SchedulerHarness, **given: Any) -> Pod:
    """Create a pending pod."""
    pod = make_pod("web", requests={"cpu": "1"}, **given)
    harness.create(pod)
    return pod


def failure_messages(harness: SchedulerHarness) -> list[str]:
    """Return the messages of failed attempts."""
    return [note for _, reason, note in harness.events.recorded if reason == "FailedScheduling"]


def filter_response(
    *names: str, failed: dict[str, str] | None = None, final: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the response of a filter verb with a node cache that passes these nodes."""
    return {"NodeNames": list(names), "FailedNodes": failed or {}, "FailedAndUnresolvableNodes": final}


def prioritize_response(**by_node: int) -> list[dict[str, Any]]:
    """Return the response of a prioritize verb."""
    return [{"Host": node, "Score": score} for node, score in by_node.items()]


class ExtenderHarness:
    """A scheduler with extenders. The first is at `/a`, the second at `/b` of one server."""

    def __init__(self, harness: SchedulerHarness, server: ScriptedServer) -> None:
        self.harness, self.server = harness, server

    @property
    def calls(self) -> list[str]:
        """The extender and the verb of each call so far, such as `a/filter`."""
        return [request.path.removeprefix("/") for request in self.server.requests]

    async def run_until_idle(self, turns: int = 1) -> None:
        """Run the scheduler until it is idle; *turns* times, two seconds apart."""
        for turn in range(turns):
            if turn:
                self.harness.clock.seconds += 2
                self.harness.scheduler.run_periodic_tasks()
            while await self.harness.scheduler.schedule_one():
                pass
            while len(self.harness.queue.in_flight_events):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)

    def request_bodies(self, what: str) -> list[Any]:
        """Return the request bodies of a verb, such as `a/filter`."""
        return [request.body for request in self.server.requests_to(f"POST /{what}")]


def run_with_extenders(
    harness: SchedulerHarness,
    configs: list[dict[str, Any]],
    test: Callable[[ExtenderHarness], Coroutine[Any, Any, None]],
) -> None:
    """Run *test* with these extender configurations in virtual time."""

    async def main() -> None:
        async with ScriptedServer() as server:
            configurations = [
                Extender(url_prefix=f"{server.url}/{letter}/", **config)
                for letter, config in zip("abc", configs, strict=False)
            ]
            extenders = build_extenders(configurations)
            harness.context.extenders = extenders
            harness.context.node_sampler = NodeSampler(has_extenders=True)
            try:
                await test(ExtenderHarness(harness, server))
            finally:
                for extender in extenders:
                    await extender.close()

    run(main())
