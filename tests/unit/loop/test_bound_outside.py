"""Extenders that bind: instead of the Bind plugins, unless they fail and may."""

import asyncio

from tests.build import a_pod
from tests.unit.client.scripted import SILENCE, Reply
from tests.unit.loop.asking import Asking, a_world, asked, reasons, waiting

BINDS = {"bind_verb": "bind"}


def test_an_extender_that_binds_does_so_instead_of_the_plugin() -> None:
    """Source: F041."""
    world = a_world(names=("n1",))
    waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/bind", Reply(body={"Error": ""}))
        await asking.settle()
        (body,) = asking.bodies("a/bind")
        assert body == {"PodName": "web", "PodNamespace": "default", "PodUID": "uid-default-web", "Node": "n1"}

    asked(world, [BINDS], test)
    assert world.server.said("binding") == []
    assert world.events.told == [("default/web", "Scheduled", "Successfully assigned default/web to n1")]


def test_a_binding_that_an_extender_refuses_is_undone() -> None:
    world = a_world(names=("n1",))
    waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/bind", Reply(body={"Error": "out of licences"}))
        await asking.settle()

    asked(world, [BINDS], test)
    assert reasons(world) == ["out of licences"]
    assert dict(world.state.placed) == {}
    assert world.queue.counts()["backoff"] == 1


def test_if_it_may_fail_the_plugin_binds() -> None:
    """Source: F042."""
    world = a_world(names=("n1",))
    pod = waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/bind", Reply(body={"error": "out of licences"}))
        await asking.settle()

    asked(world, [{**BINDS, "ignorable": True}], test)
    assert world.node_of(pod) == "n1"


def test_a_binding_whose_answer_is_lost_stands_if_the_watch_has_told_of_it() -> None:
    """Source: F043."""
    world = a_world(names=("n1", "n2"))
    pod = waiting(world)

    async def test(asking: Asking) -> None:
        async def bound() -> None:
            while not asking.server.asked:
                await asyncio.sleep(0)
            world.feed.changed(pod, a_pod("web", node=asking.bodies("a/bind")[0]["Node"], requests={"cpu": "1"}))

        late = asyncio.create_task(bound())
        asking.server.on("POST /a/bind", SILENCE)
        await asking.settle()
        await late

    asked(world, [{**BINDS, "http_timeout": 1.0}], test)
    assert [reason for _, reason, _ in world.events.told] == ["Scheduled"]
    assert len(world.state.placed) == 1
