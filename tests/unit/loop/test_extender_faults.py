"""Extenders that misbehave (fault 23): one that may fail is passed over, else the attempt fails with the reason."""

from typing import Any

import pytest

from extender.client.extender_calls import MAX_ANSWER
from extender.plugins.default_binder import DefaultBinder
from tests.build import a_node, a_pod
from tests.unit.client.scripted import CUT, SILENCE, Reply, Stream
from tests.unit.decide.stand_ins import Rating, a_profile
from tests.unit.loop.asking import FILTER, Asking, asked, passing
from tests.unit.loop.world import World

HUGE = Stream([b" " * (1 << 20)] * (MAX_ANSWER // (1 << 20) + 1))
DRIP = Stream([step for _ in range(100) for step in (b" ", 1.0)])

FAULTS: dict[str, tuple[Any, str]] = {
    "no answer": (
        SILENCE,
        'Post "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
    ),
    "a slow drip": (DRIP, 'Post "{url}": context deadline exceeded (Client.Timeout exceeded while reading body)'),
    "a fault of its own": (Reply(500, {"NodeNames": ["n1"]}), "failed filter with extender at URL {url}, code 500"),
    "not quite 200": (Reply(201, {"NodeNames": ["n1"]}), "failed filter with extender at URL {url}, code 201"),
    "a redirect": (
        Reply(302, {}, {"Location": "/elsewhere/filter"}),
        "failed filter with extender at URL {url}, code 302",
    ),
    "another redirect": (
        Reply(307, {}, {"Location": "/elsewhere/filter"}),
        "failed filter with extender at URL {url}, code 307",
    ),
    "garbage": (Reply(body=b"<html>"), "answer cannot be understood: JSON is malformed: invalid character (byte 0)"),
    "nothing": (Reply(body=b""), "answer cannot be understood: Input data was truncated"),
    "a wrong type": (
        Reply(body={"NodeNames": "n1"}),
        "answer cannot be understood: nodenames: Expected `array`, got `str`",
    ),
    "a body nested without end": (
        Reply(body=b'{"NodeNames": ' + b"[" * 200_000),
        "answer cannot be understood: nested too deeply",
    ),
    "a packed body": (
        Reply(body=b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"}),
        "answer cannot be understood: ",
    ),
    "a huge body": (HUGE, f'Post "{{url}}": the answer has more than {MAX_ANSWER} bytes'),
    "a connection that breaks": (CUT, 'Post "{url}": '),
    "a name it was not asked about": (
        Reply(body=passing("n1", "elsewhere")),
        'extender "{name}" claims a filtered node "elsewhere" which is not found in the input node list',
    ),
    "an error of its own": (Reply(body={"Error": "licence server is down"}), "licence server is down"),
}


def attempted(config: dict[str, Any], answer: Any) -> tuple[World, str]:
    """A pod's attempt with an extender that answers so; gives the extender's URL too."""
    world = World(a_node("n1"), profile=a_profile(DefaultBinder()))
    world.create(a_pod("web"))
    name = ""

    async def test(asking: Asking) -> None:
        nonlocal name
        name = asking.world.desk.extenders[0].name
        asking.server.on("POST /a/filter", answer)
        await asking.settle()
        assert len(asking.server.asked) == 1  # neither repeated nor redirected

    asked(world, [config], test)
    return world, name


@pytest.mark.parametrize(("answer", "says"), FAULTS.values(), ids=FAULTS)
def test_the_attempt_fails_with_the_reason(answer: Any, says: str) -> None:
    world, name = attempted(FILTER, answer)
    ((_, reason, note),) = world.events.told
    assert reason == "FailedScheduling"
    assert note.startswith(says.format(name=name, url=f"{name}filter"))
    (patch,) = world.server.said("status")
    assert patch.body["status"]["conditions"][0]["reason"] == "SchedulerError"
    assert world.queue.counts()["backoff"] == 1


@pytest.mark.parametrize(("answer", "says"), FAULTS.values(), ids=FAULTS)
def test_an_extender_that_may_fail_is_passed_over(answer: Any, says: str) -> None:
    world, _ = attempted({**FILTER, "ignorable": True}, answer)
    assert [reason for _, reason, _ in world.events.told] == ["Scheduled"]


@pytest.mark.parametrize(
    "answer",
    [b'{"NodeNames": ["n1"]} and more', b'{"nodenames": ["n1"], "NODES": null, "failednodes": null, "new": {}}\n'],
    ids=["text behind the document", "keys in any case, nulls, and some that nobody knows"],
)
def test_what_go_understands_is_understood(answer: bytes) -> None:
    """Source: F015, F016."""
    world, _ = attempted(FILTER, Reply(body=answer))
    assert [reason for _, reason, _ in world.events.told] == ["Scheduled"]


def test_an_answer_of_null_lets_no_node_pass() -> None:
    world, _ = attempted(FILTER, Reply(body=b"null"))
    assert [note for _, _, note in world.events.told] == ["0/1 nodes are available:"]


@pytest.mark.parametrize("ignorable", [False, True], ids=["it may not fail", "it may fail"])
@pytest.mark.parametrize(
    "answer",
    [SILENCE, Reply(500), Reply(body=b"[{"), Reply(body={"n1": 1}), Reply(302), DRIP],
    ids=["no answer", "a fault of its own", "garbage", "an object", "a redirect", "a slow drip"],
)
def test_scores_that_do_not_come_are_done_without(answer: Any, ignorable: bool) -> None:
    """Source: F037."""
    profile = a_profile(Rating("X", {"n1": 1, "n2": 2}), DefaultBinder())
    world = World(a_node("n1"), a_node("n2"), profile=profile)
    pod = a_pod("web")
    world.create(pod)

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/prioritize", answer)
        await asking.settle()

    asked(world, [{"prioritize_verb": "prioritize", "weight": 1, "ignorable": ignorable}], test)
    assert world.node_of(pod) == "n2"


def test_a_timeout_of_zero_means_five_seconds() -> None:
    """Source: F006."""
    world = World(a_node("n1"), profile=a_profile(DefaultBinder()))
    world.create(a_pod("web"))

    async def test(asking: Asking) -> None:
        asking.server.on("POST /a/filter", Stream([4.9, b'{"NodeNames": ["n1"]}']), Stream([5.1, b"{}"]))
        await asking.settle()
        assert [reason for _, reason, _ in world.events.told] == ["Scheduled"]
        world.create(a_pod("later"))
        await asking.settle()

    asked(world, [FILTER], test)
    assert [reason for _, reason, _ in world.events.told] == ["Scheduled", "FailedScheduling"]
