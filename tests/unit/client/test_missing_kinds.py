"""Whether the API server serves a kind, which a response 403 does not tell."""

import asyncio
from typing import Any

import pytest

from extender.client.listwatch import is_served
from extender.client.rest_mapping import Endpoint
from tests.unit.client.builders import PODS, error_event, list_reply, make_pod, run_reflector
from tests.unit.client.scripted_server import SILENCE, Reply, ScriptedServer, Stream, failure_reply, open_transport
from tests.unit.client.virtual_time import run

DISCOVERY = "GET /api/v1"
DENIED = failure_reply(403, "Forbidden", 'pods is forbidden: User "x" cannot list resource "pods"')
RESOURCES = {
    "with pods": Reply(200, b'{"kind": "APIResourceList", "resources": [{"name": "nodes"}, {"name": "pods"}]}'),
    "without pods": Reply(200, b'{"kind": "APIResourceList", "resources": [{"name": "nodes"}]}'),
    "not served": failure_reply(404, "NotFound", "the server could not find the requested resource"),
    "not allowed": failure_reply(403, "Forbidden", "not allowed"),
    "not a list": Reply(200, b"<html>"),
}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("with pods", True),
        ("without pods", False),
        ("not served", False),
        ("not allowed", True),
        ("not a list", True),
    ],
)
def test_a_kind_counts_as_served_unless_the_api_server_denies_it(answer: str, expected: bool) -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(DISCOVERY, RESOURCES[answer])
            async with open_transport(server) as transport:
                assert await is_served(transport, Endpoint("v1", "pods")) is expected

    run(main())


def test_a_missing_optional_kind_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, *[RESOURCES["not served"]] * 7, list_reply(5), Stream([SILENCE]))
            async with run_reflector(server) as (reflector, _):
                reflector.is_optional = True
                await asyncio.sleep(60)
                assert (reflector.last_error, len(server.requests)) == ("", 7)

    with caplog.at_level("INFO", "extender.client.reflector"):
        run(main())
    text = "The API server does not serve a kind; it counts as one without such objects"
    assert [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"] == [text]


def test_the_objects_of_an_optional_kind_that_is_no_longer_served_are_deleted() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 5)), Stream([error_event(410, "Expired")]))
            server.respond(PODS, *[RESOURCES["not served"]] * 3)
            async with run_reflector(server) as (reflector, recorded):
                reflector.is_optional = True
                await asyncio.sleep(3)
                assert (recorded.deltas, reflector.last_error) == (["+a@5", "-a@5?"], "")

    run(main())


def test_known_objects_can_stay_if_their_kind_is_no_longer_served() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 5)), Stream([error_event(410, "Expired")]))
            server.respond(PODS, *[RESOURCES["not served"]] * 3)
            async with run_reflector(server) as (reflector, recorded):
                reflector.is_optional = reflector.retains_objects = True
                await asyncio.sleep(3)
                error = "pods: the server could not find the requested resource"
                assert (recorded.deltas, reflector.last_error) == (["+a@5"], error)

    run(main())


def test_a_kind_with_objects_that_can_stay_has_none_until_it_is_served() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, *[RESOURCES["not served"]] * 3, list_reply(5, make_pod("a", 5)), Stream([SILENCE]))
            async with run_reflector(server) as (reflector, recorded):
                reflector.is_optional = reflector.retains_objects = True
                await asyncio.sleep(0.5)
                assert (reflector.synced.is_set(), recorded.deltas, reflector.last_error) == (True, [], "")
                await asyncio.sleep(30)
                assert recorded.deltas == ["+a@5"]

    run(main())


@pytest.mark.parametrize(("answer", "is_synced"), [("with pods", False), ("without pods", True)])
def test_an_optional_kind_without_permission_has_no_objects_only_if_it_is_not_served(
    answer: str, is_synced: bool
) -> None:
    """An API server of 1.36 does not serve devicetaintrules of v1; its role of kube-scheduler has no rule for them."""

    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, *[DENIED] * 7, list_reply(5, make_pod("a", 5)), Stream([SILENCE]))
            server.respond(DISCOVERY, *[RESOURCES[answer]] * 7)
            async with run_reflector(server) as (reflector, recorded):
                reflector.is_optional = True
                await asyncio.sleep(60)
                found: tuple[Any, ...] = (reflector.synced.is_set(), reflector.forbidden, recorded.deltas)
                assert found == (is_synced, not is_synced, [])
                await asyncio.sleep(30)
                assert (reflector.synced.is_set(), recorded.deltas, reflector.last_error) == (True, ["+a@5"], "")

    run(main())
