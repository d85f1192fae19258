"""The fake API server with injected faults: the effect of each kind of fault, and the random shares."""

import json
from functools import partial

import aiohttp
import msgspec
import pytest

from tests.faulty_apiserver import Fault, FaultInjector, FaultKind, FaultyApiServer
from tests.unit.fake_apiserver.api_client import PODS, Client, event_summary
from tests.unit.fake_apiserver.api_client import run as run_with_server
from tests.unit.fake_apiserver.builders import make_binding, make_pod

run = partial(run_with_server, server_type=FaultyApiServer)
WATCH = f"{PODS}?watch=true&resourceVersion=0&timeoutSeconds=1"


def test_a_status_fault_replaces_the_request() -> None:
    async def scenario(server: FaultyApiServer, client: Client) -> None:
        response = await client.request("POST", PODS, make_pod())
        assert (response.code, response.headers["Retry-After"]) == (429, "3")
        assert response.body["reason"] == "TooManyRequests"
        assert server.store.count("pods") == 0
        assert (await client.request("POST", PODS, make_pod())).code == 201

    run(scenario, faults=[Fault(FaultKind.STATUS, verb="create", resource="pods", code=429, retry_after="3", times=1)])


def test_a_successful_binding_can_time_out() -> None:
    async def scenario(server: FaultyApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod())
        response = await client.request("POST", f"{PODS}/web/binding", make_binding("n1"))
        assert (response.code, response.body["reason"]) == (504, "Timeout")
        pod = server.store.get("pods", "default", "web")
        assert pod is not None
        assert pod["spec"]["nodeName"] == "n1"

    run(scenario, faults=[Fault(FaultKind.TIMEOUT, resource="pods/binding")])


def test_a_connection_can_be_closed_without_a_response() -> None:
    async def scenario(server: FaultyApiServer, client: Client) -> None:
        with pytest.raises(aiohttp.ClientError):
            await client.request("POST", PODS, make_pod())
        assert server.store.count("pods") == 1

    run(scenario, faults=[Fault(FaultKind.NO_RESPONSE, verb="create")])


def test_a_delayed_request_succeeds() -> None:
    async def scenario(_: FaultyApiServer, client: Client) -> None:
        assert (await client.request("POST", PODS, make_pod())).code == 201

    run(scenario, faults=[Fault(FaultKind.DELAY, delay_seconds=0.01)])


def test_a_list_can_fail_with_410() -> None:
    async def scenario(_: FaultyApiServer, client: Client) -> None:
        assert (await client.request("GET", PODS)).code == 410
        assert (await client.request("GET", "/api/v1/nodes")).code == 200

    run(scenario, faults=[Fault(FaultKind.GONE, verb="list", resource="pods")])


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(FaultKind.END_WATCH, after_events=1), [("ADDED", "a")]),
        (
            Fault(FaultKind.DUPLICATE_EVENT, after_events=1),
            [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "b"), ("ADDED", "c")],
        ),
        (
            Fault(FaultKind.REPLAY_EVENT, after_events=1),
            [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "a"), ("ADDED", "c")],
        ),
        (Fault(FaultKind.GONE, after_events=2), [("ADDED", "a"), ("ADDED", "b"), ("ERROR", "")]),
        (Fault(FaultKind.GONE), [("ERROR", "")]),
        (Fault(FaultKind.END_WATCH, resource="nodes"), [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]),
    ],
    ids=["ends", "tells twice", "tells an older event again", "is gone later", "is gone at once", "is left alone"],
)
def test_a_watch(fault: Fault, expected: list[tuple[str, str]]) -> None:
    async def scenario(server: FaultyApiServer, client: Client) -> None:
        for name in "abc":
            server.api.create_from_manifest(make_pod(name))
        assert [event_summary(event) for event in await client.watch_all(WATCH)] == expected

    run(scenario, faults=[fault])


@pytest.mark.parametrize(
    ("what", "ends_with"),
    [(FaultKind.BREAK_WATCH, b"\n"), (FaultKind.TRUNCATE_EVENT, b"")],
    ids=["between two events", "in the middle of an event"],
)
def test_a_watch_can_break(what: FaultKind, ends_with: bytes) -> None:
    async def scenario(server: FaultyApiServer, client: Client) -> None:
        for name in "ab":
            server.api.create_from_manifest(make_pod(name))
        got = b""
        with pytest.raises(aiohttp.ClientError):  # noqa: PT012  what comes before the break counts
            async with client.session.get(client.url + WATCH) as response:
                async for piece in response.content.iter_any():
                    got += piece
        first, _, rest = got.partition(b"\n")
        assert event_summary(json.loads(first)) == ("ADDED", "a")
        assert got.endswith(ends_with)
        assert bool(rest) is (what is FaultKind.TRUNCATE_EVENT)

    run(scenario, faults=[Fault(what, verb="watch", after_events=1)])


def test_a_watch_can_say_what_is_not_json() -> None:
    async def scenario(server: FaultyApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod())
        with pytest.raises(json.JSONDecodeError):
            await client.watch_all(WATCH)

    run(scenario, faults=[Fault(FaultKind.INVALID_JSON, verb="watch")])


def test_a_stalled_watch_stays_open_without_events() -> None:
    async def scenario(server: FaultyApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod("a"))
        async with client.watch(f"{PODS}?watch=true") as events:
            assert event_summary(await anext(events)) == ("ADDED", "a")
            server.api.create_from_manifest(make_pod("b"))
            await client.get(PODS)
            await server.stop()
            assert [event async for event in events] == []

    run(scenario, faults=[Fault(FaultKind.STALL_WATCH, verb="watch", after_events=1)])


def test_the_seed_selects_the_requests_with_faults() -> None:
    def draw(seed: int, *other_faults: Fault) -> str:
        faults = FaultInjector([*other_faults, Fault(FaultKind.STATUS, verb="get", probability=0.5)], seed)
        return "".join("x" if faults.match("get", "pods") else "." for _ in range(40))

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert 10 < draw(1).count("x") < 30


def test_a_fault_has_a_number_of_skipped_and_of_failing_requests() -> None:
    faults = FaultInjector([Fault(FaultKind.STATUS, resource="pods/*", skip=1, times=2)])
    seen = [bool(faults.match("create", "pods/binding")) for _ in range(5)]
    assert seen == [False, True, True, False, False]
    assert faults.match("create", "pods") == []


def test_a_fault_matches_the_name_of_the_object() -> None:
    faults = FaultInjector([Fault(FaultKind.STATUS, name="web-*")])
    assert [bool(faults.match("get", "pods", name)) for name in ("web-1", "db-1")] == [True, False]
    faults.clear()
    assert faults.match("get", "pods", "web-1") == []


def test_faults_are_decoded_from_json() -> None:
    text = b'[{"kind": "status", "resource": "pods/binding", "code": 503, "retryAfter": "1", "times": 2}]'
    expected = Fault(FaultKind.STATUS, resource="pods/binding", code=503, retry_after="1", times=2)
    assert msgspec.json.decode(text, type=list[Fault]) == [expected]
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value 'explode'"):
        msgspec.json.decode(b'[{"kind": "explode"}]', type=list[Fault])
