"""A scheduler in memory that asks HTTP extenders on loopback, which answer as a test tells them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from extender.client.extenders import in_order
from extender.config.model import Extender
from extender.decide.sampling import Search
from extender.objects.pod import Pod
from extender.plugins.default_binder import DefaultBinder
from tests.build import a_node, a_pod
from tests.unit.client.scripted import Server
from tests.unit.client.virtual_time import run
from tests.unit.decide.stand_ins import a_profile
from tests.unit.loop.world import World

NAMES = ("n1", "n2", "n3")
FILTER = {"filter_verb": "filter", "node_cache_capable": True}


def a_world(*plugins: Any, names: tuple[str, ...] = NAMES, **more: Any) -> World:
    """Nodes of these names, and a profile of these plugins."""
    return World(*map(a_node, names), profile=a_profile(*plugins, DefaultBinder(), **more))


def waiting(world: World, **given: Any) -> Pod:
    """A pod that waits."""
    pod = a_pod("web", requests={"cpu": "1"}, **given)
    world.create(pod)
    return pod


def reasons(world: World) -> list[str]:
    """Why attempts failed."""
    return [note for _, reason, note in world.events.told if reason == "FailedScheduling"]


def passing(*names: str, failed: dict[str, str] | None = None, final: dict[str, str] | None = None) -> dict[str, Any]:
    """The answer of a filter with a node cache that lets these nodes pass."""
    return {"NodeNames": list(names), "FailedNodes": failed or {}, "FailedAndUnresolvableNodes": final}


def scores(**by_node: int) -> list[dict[str, Any]]:
    """The answer of prioritize."""
    return [{"Host": node, "Score": score} for node, score in by_node.items()]


class Asking:
    """A world with extenders. The first is at `/a`, the second at `/b` of one server."""

    def __init__(self, world: World, server: Server, calls: list[tuple[str, str, int]]) -> None:
        self.world, self.server, self.calls = world, server, calls

    async def settle(self, turns: int = 1) -> None:
        """Let the scheduler work until nothing is left to do; *turns* times, two seconds apart."""
        for turn in range(turns):
            if turn:
                self.world.clock.seconds += 2
                self.world.scheduler.tick()
            while await self.world.scheduler.turn():
                pass
            while len(self.world.queue.in_flight):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)

    def bodies(self, what: str) -> list[Any]:
        """What was sent to a verb, such as `a/filter`."""
        return [asked.body for asked in self.server.of(f"POST /{what}")]


def asked(world: World, configs: list[dict[str, Any]], test: Callable[[Asking], Coroutine[Any, Any, None]]) -> None:
    """Run *test* on *world* with extenders configured like that, in virtual time."""

    async def main() -> None:
        calls: list[tuple[str, str, int]] = []
        async with Server() as server:
            configured = [
                Extender(url_prefix=f"{server.url}/{letter}/", **config)
                for letter, config in zip("abc", configs, strict=False)
            ]
            extenders = in_order(configured, observe=lambda name, verb, code, _: calls.append((name[-2], verb, code)))
            world.desk.extenders = extenders
            world.desk.search = Search(compares=True)
            try:
                await test(Asking(world, server, calls))
            finally:
                for extender in extenders:
                    await extender.close()

    run(main())
