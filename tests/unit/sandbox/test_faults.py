"""Tests of faults: each does what its name says, and chance follows the seed."""

import json

import aiohttp
import msgspec
import pytest

from extender.sandbox.faults import Fault, Faults, Spoiled
from extender.sandbox.server import Sandbox
from tests.unit.sandbox.calls import PODS, Client, a_binding, a_pod, run, told

WATCH = f"{PODS}?watch=true&resourceVersion=0&timeoutSeconds=1"


def test_a_status_is_answered_and_nothing_done() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        answer = await client.ask("POST", PODS, a_pod())
        assert (answer.code, answer.headers["Retry-After"]) == (429, "3")
        assert answer.body["reason"] == "TooManyRequests"
        assert sandbox.store.count("pods") == 0
        assert (await client.ask("POST", PODS, a_pod())).code == 201

    run(scenario, faults=[Fault(Spoiled.STATUS, verb="create", resource="pods", code=429, retry_after="3", times=1)])


def test_a_binding_that_succeeds_can_answer_a_time_out() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        sandbox.api.add(a_pod())
        answer = await client.ask("POST", f"{PODS}/web/binding", a_binding("n1"))
        assert (answer.code, answer.body["reason"]) == (504, "Timeout")
        pod = sandbox.store.get("pods", "default", "web")
        assert pod is not None
        assert pod["spec"]["nodeName"] == "n1"

    run(scenario, faults=[Fault(Spoiled.LOST, resource="pods/binding")])


def test_a_connection_can_end_instead_of_an_answer() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        with pytest.raises(aiohttp.ClientError):
            await client.ask("POST", PODS, a_pod())
        assert sandbox.store.count("pods") == 1

    run(scenario, faults=[Fault(Spoiled.CUT, verb="create")])


def test_a_delayed_answer_comes_all_the_same() -> None:
    async def scenario(_: Sandbox, client: Client) -> None:
        assert (await client.ask("POST", PODS, a_pod())).code == 201

    run(scenario, faults=[Fault(Spoiled.DELAY, seconds=0.01)])


def test_a_list_can_be_gone() -> None:
    async def scenario(_: Sandbox, client: Client) -> None:
        assert (await client.ask("GET", PODS)).code == 410
        assert (await client.ask("GET", "/api/v1/nodes")).code == 200

    run(scenario, faults=[Fault(Spoiled.GONE, verb="list", resource="pods")])


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(Spoiled.END, after=1), [("ADDED", "a")]),
        (Fault(Spoiled.DUPLICATE, after=1), [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "b"), ("ADDED", "c")]),
        (Fault(Spoiled.REPLAY, after=1), [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "a"), ("ADDED", "c")]),
        (Fault(Spoiled.GONE, after=2), [("ADDED", "a"), ("ADDED", "b"), ("ERROR", "")]),
        (Fault(Spoiled.GONE), [("ERROR", "")]),
        (Fault(Spoiled.END, resource="nodes"), [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]),
    ],
    ids=["ends", "tells twice", "tells an older event again", "is gone later", "is gone at once", "is left alone"],
)
def test_a_watch(fault: Fault, expected: list[tuple[str, str]]) -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        for name in "abc":
            sandbox.api.add(a_pod(name))
        assert [told(event) for event in await client.watched(WATCH)] == expected

    run(scenario, faults=[fault])


@pytest.mark.parametrize(
    ("what", "ends_with"),
    [(Spoiled.DROP, b"\n"), (Spoiled.TRUNCATE, b"")],
    ids=["between two events", "in the middle of an event"],
)
def test_a_watch_can_break(what: Spoiled, ends_with: bytes) -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        for name in "ab":
            sandbox.api.add(a_pod(name))
        got = b""
        with pytest.raises(aiohttp.ClientError):  # noqa: PT012  what comes before the break counts
            async with client.session.get(client.url + WATCH) as answer:
                async for piece in answer.content.iter_any():
                    got += piece
        first, _, rest = got.partition(b"\n")
        assert told(json.loads(first)) == ("ADDED", "a")
        assert got.endswith(ends_with)
        assert bool(rest) is (what is Spoiled.TRUNCATE)

    run(scenario, faults=[Fault(what, verb="watch", after=1)])


def test_a_watch_can_say_what_is_not_json() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        sandbox.api.add(a_pod())
        with pytest.raises(json.JSONDecodeError):
            await client.watched(WATCH)

    run(scenario, faults=[Fault(Spoiled.GARBAGE, verb="watch")])


def test_a_watch_can_fall_silent_and_stay() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        sandbox.api.add(a_pod("a"))
        async with client.watch(f"{PODS}?watch=true") as events:
            assert told(await anext(events)) == ("ADDED", "a")
            sandbox.api.add(a_pod("b"))
            await client.get(PODS)
            await sandbox.stop()
            assert [event async for event in events] == []

    run(scenario, faults=[Fault(Spoiled.STALL, verb="watch", after=1)])


def test_the_seed_decides_which_requests_are_spoiled() -> None:
    def drawn(seed: int, *before: Fault) -> str:
        faults = Faults([*before, Fault(Spoiled.STATUS, verb="get", share=0.5)], seed)
        return "".join("x" if faults.due("get", "pods") else "." for _ in range(40))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert 10 < drawn(1).count("x") < 30


def test_a_fault_skips_the_first_and_ends_after_its_number() -> None:
    faults = Faults([Fault(Spoiled.STATUS, resource="pods/*", skip=1, times=2)])
    seen = [bool(faults.due("create", "pods/binding")) for _ in range(5)]
    assert seen == [False, True, True, False, False]
    assert faults.due("create", "pods") == []


def test_a_fault_is_for_the_object_of_its_name() -> None:
    faults = Faults([Fault(Spoiled.STATUS, name="web-*")])
    assert [bool(faults.due("get", "pods", name)) for name in ("web-1", "db-1")] == [True, False]
    faults.clear()
    assert faults.due("get", "pods", "web-1") == []


def test_a_list_of_faults_can_be_read_from_a_file() -> None:
    text = b'[{"what": "status", "resource": "pods/binding", "code": 503, "retryAfter": "1", "times": 2}]'
    expected = Fault(Spoiled.STATUS, resource="pods/binding", code=503, retry_after="1", times=2)
    assert msgspec.json.decode(text, type=list[Fault]) == [expected]
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value 'explode'"):
        msgspec.json.decode(b'[{"what": "explode"}]', type=list[Fault])
