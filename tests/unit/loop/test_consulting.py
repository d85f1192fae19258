"""Pods that HTTP extenders have a say about: who is asked what, and what follows from the answer."""

import asyncio
from typing import Any

import msgspec
import pytest

from extender import wiring
from extender.client.errors import ServerError
from extender.config.model import ManagedResource
from extender.plugins.default_binder import DefaultBinder
from tests.build import a_node, a_pod
from tests.unit.client.scripted import Reply, Stream
from tests.unit.decide.stand_ins import Rating, Refusing, a_profile
from tests.unit.loop.asking import FILTER, Asking, a_world, asked, passing, reasons, scores, waiting
from tests.unit.loop.world import World

_WITH_GPU = {"name": "c", "resources": {"limits": {"example.com/gpu": "1"}}}

# -- filter


def test_an_extender_with_a_node_cache_is_asked_by_name_and_only_about_what_plugins_let_pass() -> None:
    world = a_world(Refusing("R", "n2"))
    pod = waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/filter", Reply(body=passing("n3")))
        await asking.settle()
        (body,) = asking.bodies("a/filter")
        assert set(body) == {"Pod", "Nodes", "NodeNames"}
        assert (body["Nodes"], body["NodeNames"]) == (None, ["n1", "n3"])
        assert body["Pod"]["metadata"]["uid"] == "uid-default-web"
        assert body["Pod"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
        assert asking.server.asked[0].headers["content-type"] == "application/json"

    asked(world, [FILTER], test)
    assert world.node_of(pod) == "n3"


def test_an_extender_without_a_node_cache_is_sent_whole_nodes_and_gives_them_back() -> None:
    world = a_world(names=("n1", "n2"))
    pod = waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/filter", Reply(body={"Nodes": {"items": [{"metadata": {"name": "n2"}}]}}))
        await asking.settle()
        (body,) = asking.bodies("a/filter")
        assert body["NodeNames"] is None
        assert body["Nodes"]["metadata"] == {}
        assert [node["metadata"]["name"] for node in body["Nodes"]["items"]] == ["n1", "n2"]
        assert body["Nodes"]["items"][0]["status"]["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}

    asked(world, [{"filter_verb": "filter"}], test)
    assert world.node_of(pod) == "n2"


def test_extenders_are_asked_one_after_another_those_that_may_fail_last() -> None:
    """Source: F011, F026."""
    world = a_world()
    pod = waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /b/filter", Reply(body=passing("n2", "n3")))
        asking.server.on("POST /a/filter", Reply(body=passing("n3")))
        await asking.settle()
        assert asking.bodies("b/filter")[0]["NodeNames"] == ["n1", "n2", "n3"]
        assert asking.bodies("a/filter")[0]["NodeNames"] == ["n2", "n3"]
        assert asking.calls == [("b", "filter", 200), ("a", "filter", 200)]

    asked(world, [{**FILTER, "ignorable": True}, FILTER], test)
    assert world.node_of(pod) == "n3"


def test_when_no_node_is_left_nobody_else_is_asked() -> None:
    world = a_world()
    waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/filter", Reply(body=passing()))
        await asking.settle()
        assert [letter for letter, _, _ in asking.calls] == ["a"]

    asked(world, [FILTER, FILTER], test)


def test_an_extender_is_not_asked_about_pods_without_its_resources() -> None:
    """Source: F039."""
    world = a_world(names=("n1",))
    limits = {"containers": [{"name": "c", "resources": {"limits": {"example.com/gpu": "0"}}}]}
    plain, inits = a_pod("plain"), a_pod("init", spec={"initContainers": limits["containers"]})
    overhead = a_pod("overhead", spec={"overhead": {"example.com/gpu": "1"}})
    for pod in (plain, inits, overhead, a_pod("limit", spec=limits)):
        world.create(pod)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/filter", *[Reply(body=passing("n1"))] * 2)
        await asking.settle()
        assert [body["Pod"]["metadata"]["name"] for body in asking.bodies("a/filter")] == ["init", "limit"]

    asked(world, [{**FILTER, "managed_resources": (ManagedResource("example.com/gpu"),)}], test)
    assert {world.node_of(pod) for pod in (plain, inits, overhead)} == {"n1"}


def test_while_an_extender_thinks_the_backoffs_of_others_end() -> None:
    """The event loop stands still for nobody; only the next pod waits its turn."""
    world = a_world()
    other = a_pod("other", requests={"cpu": "1"})
    world.server.faults["binding"] = [ServerError("etcd is down", 500)]
    world.create(other)

    async def test(asking: Asking) -> None:
        await asking.settle()
        assert world.queue.counts()["backoff"] == 1
        world.create(a_pod("web", requests={"cpu": "1"}, spec={"containers": [_WITH_GPU]}))
        asking.server.on("POST /a/filter", Stream([2.5, msgspec.json.encode(passing("n1"))]))
        turn = asyncio.create_task(world.scheduler.turn())
        world.clock.seconds += 20
        while not world.queue.counts()["active"]:
            assert not turn.done()
            await asyncio.sleep(0.1)
        await asking.settle()

    asked(world, [{**FILTER, "managed_resources": (ManagedResource("example.com/gpu"),)}], test)
    assert world.node_of(other)


def test_refusals_of_extenders_and_plugins_are_counted_together() -> None:
    """A word for good beats one for now (F030); a node left out without a word has no reason (F031)."""
    world = a_world(Refusing("R", "n1"), names=("n1", "n2", "n3", "n4", "n5"))
    waiting(world)

    async def test(asking: Asking) -> None:
        answer = passing(failed={"n2": "licence in use", "n3": "no licence"}, final={"n3": "never", "n4": "never"})
        asking.server.on("POST /a/filter", Reply(body=answer))
        await asking.settle()

    asked(world, [FILTER], test)
    assert reasons(world) == ["0/5 nodes are available: 1 licence in use, 1 refused by R, 2 never."]


def test_a_pod_that_extenders_refuse_is_woken_by_any_event() -> None:
    """Source: F033."""
    world = a_world(Refusing("R"), names=("n1",))
    pod = waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/filter", Reply(body=passing()), Reply(body=passing("n1")))
        await asking.settle()
        assert reasons(world) == ["0/1 nodes are available:"]
        assert world.queue.counts()["unschedulable"] == 1
        world.feed.changed(a_node("n1"), a_node("n1", labels={"any": "thing"}))
        await asking.settle(turns=2)

    asked(world, [FILTER], test)
    assert world.node_of(pod) == "n1"


def test_a_nominated_pod_is_first_tried_on_its_node_alone() -> None:
    """Source: A097, F048."""
    world = a_world()
    pod = waiting(world, status={"nominatedNodeName": "n2"})

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/filter", Reply(body=passing()), Reply(body=passing("n3")))
        await asking.settle()
        assert [body["NodeNames"] for body in asking.bodies("a/filter")] == [["n2"], ["n1", "n2", "n3"]]

    asked(world, [FILTER], test)
    assert world.node_of(pod) == "n3"


# -- prioritize

RATED = {"prioritize_verb": "prioritize", "weight": 2, "node_cache_capable": True}


@pytest.mark.parametrize(
    ("answer", "node"),
    [
        (scores(n1=0, n2=3, n3=0), "n2"),
        (scores(n1=0, n2=2, n3=0), "n1"),
        (scores(n2=-1, n1=-9), "n3"),
        (scores(n3=900), "n3"),
        (scores(unknown=10), "n1"),
        (None, "n1"),
        ([{"host": "n3", "SCORE": 10}], "n3"),
        ([{"Host": "n2", "Score": 2}, {"Host": "n2", "Score": 2}], "n2"),
        ([{"Host": "n2", "Score": 2**63}], "n1"),
    ],
    ids=[
        "a score counts ten times its weight",
        "beside those of plugins",
        "scores may be negative",
        "and beyond the range",
        "unknown hosts do not count",
        "null is an empty list",
        "keys in any case",
        "a host named twice counts twice",
        "a score beyond 64 bits is no answer",
    ],
)
def test_scores_are_added_to_those_of_plugins(answer: Any, node: str) -> None:
    """Source: F036, F020."""
    world = a_world(Rating("X", {"n1": 50, "n2": 0, "n3": 0}))
    pod = waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/prioritize", Reply(body=answer))
        await asking.settle()

    asked(world, [RATED], test)
    assert world.node_of(pod) == node


def test_extenders_are_asked_for_scores_side_by_side() -> None:
    """Both answers take two seconds, and so does the attempt (F035)."""
    world = a_world()
    pod = waiting(world)
    taken: list[float] = []

    async def test(asking: Asking) -> None:
        text = b'[{"Host": "n2", "Score": 1}]'
        asking.server.on("POST /a/prioritize", Stream([2.0, text]))
        asking.server.on("POST /b/prioritize", Stream([2.0, text]))
        await asking.settle()
        taken.extend(each.at for each in asking.server.asked)

    asked(world, [RATED, RATED], test)
    assert world.node_of(pod) == "n2"
    assert taken[0] == taken[1]


def test_the_only_node_is_not_rated() -> None:
    """Source: F035."""
    world = a_world(names=("n1",))
    pod = waiting(world)

    async def test(asking: Asking) -> None:
        await asking.settle()
        assert asking.calls == []

    asked(world, [RATED], test)
    assert world.node_of(pod) == "n1"


# -- nodes given back


def test_nodes_given_back_are_rated_as_they_were_given_and_without_pods() -> None:
    """kube-scheduler knows nothing of such nodes but what it was given (F028): n1, half full, looks empty."""
    profile = a_profile(wiring.scheduling().first.plugins["NodeResourcesFit"], DefaultBinder())
    crowd = a_pod("crowd", node="n1", requests={"cpu": "2"})
    world = World(a_node("n1", labels={"disk": "old"}), a_node("n2"), crowd, profile=profile)
    pod = waiting(world)

    async def test(asking: Asking) -> None:
        def given(name: str, cpu: str) -> dict[str, Any]:
            return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "9"}}}

        answer = {"Nodes": {"items": [given("n1", "5"), given("n2", "4")]}}
        asking.server.on("POST /a/filter", Reply(body=answer))
        await asking.settle()

    asked(world, [{"filter_verb": "filter"}], test)
    assert world.node_of(pod) == "n1"


def test_the_next_extender_is_sent_the_nodes_as_the_one_before_gave_them_back() -> None:
    world = a_world()
    waiting(world)

    async def test(asking: Asking) -> None:
        node = {"metadata": {"name": "n2"}, "unknown": [1]}
        asking.server.on("POST /a/filter", Reply(body={"Nodes": {"items": [node]}}))
        asking.server.on("POST /b/filter", Reply(body={"Nodes": {"items": [node]}}))
        await asking.settle()
        assert asking.bodies("b/filter")[0]["Nodes"]["items"] == [node]

    asked(world, [{"filter_verb": "filter"}] * 2, test)


def test_names_from_an_extender_without_a_node_cache_are_no_nodes() -> None:
    """Source: F029."""
    world = a_world()
    waiting(world)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/filter", Reply(body=passing("n1", failed={"n1": "no"})))
        await asking.settle()

    asked(world, [{"filter_verb": "filter"}], test)
    assert reasons(world) == ["0/3 nodes are available: 1 no."]


# -- the world goes on


def meanwhile(world: World, happens: Any, *, passes: tuple[str, ...], rates: dict[str, int] | None = None) -> None:
    """An extender lets nodes pass, and before its answer arrives something *happens*."""

    async def test(asking: Asking) -> None:
        async def answer_late() -> None:
            while not asking.server.asked:
                await asyncio.sleep(0)
            happens()

        late = asyncio.create_task(answer_late())
        text = msgspec.json.encode(passing(*passes))
        asking.server.on("POST /a/filter", Stream([1.0, text]))
        if rates:
            asking.server.on("POST /a/prioritize", Reply(body=scores(**rates)))
        await asking.settle()
        await late

    asked(world, [{**FILTER, **RATED} if rates else FILTER], test)


def test_a_node_that_fills_up_meanwhile_is_not_taken() -> None:
    world = World(a_node("n1"), a_node("n2"), a_node("n3"))
    pod = waiting(world)
    other = a_pod("other", node="n2", requests={"cpu": "4"})

    meanwhile(world, lambda: world.feed.added(other), passes=("n2", "n3"), rates={"n2": 10, "n3": 9})

    assert world.node_of(pod) == "n3"


def test_if_no_node_is_left_the_pod_is_tried_again_soon() -> None:
    world = World(a_node("n1"), a_node("n2"))
    pod = waiting(world)

    meanwhile(world, lambda: world.feed.removed(a_node("n2")), passes=("n2",))

    assert world.node_of(pod) == ""
    assert reasons(world) == [
        "the cluster changed while extenders were asked, and no node that they let pass takes the pod any more"
    ]
    assert world.queue.counts()["backoff"] == 1


def test_a_pod_that_is_deleted_meanwhile_is_let_go() -> None:
    world = World(a_node("n1"))
    pod = waiting(world)

    meanwhile(world, lambda: world.feed.removed(pod), passes=("n1",))

    assert world.events.told == []
    assert (dict(world.state.placed), sum(world.queue.counts().values())) == ({}, 0)


def test_a_pod_that_somebody_else_binds_meanwhile_is_let_go() -> None:
    world = World(a_node("n1"), a_node("n2"))
    pod = waiting(world)
    bound = a_pod("web", node="n2", requests={"cpu": "1"})

    meanwhile(world, lambda: world.feed.changed(pod, bound), passes=("n1",))

    assert world.server.said("binding") == []
    assert world.state.placed[pod.metadata.uid].node_name == "n2"
