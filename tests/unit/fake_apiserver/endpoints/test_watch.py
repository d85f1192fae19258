"""Watches over HTTP: events, selectors, bookmarks and errors."""

import asyncio

import pytest

from extender.fake_apiserver.registry.resources import PODS as POD_KIND
from extender.fake_apiserver.server import FakeApiServer
from tests.unit.fake_apiserver.api_client import PODS, Client, event_summary, run
from tests.unit.fake_apiserver.builders import make_binding, make_node, make_pod


def test_a_watch_from_a_resource_version_has_the_later_changes() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod("before"))
        version = (await client.get(PODS))["metadata"]["resourceVersion"]
        server.api.create_from_manifest(make_pod("between"))
        async with client.watch(f"{PODS}?watch=true&resourceVersion={version}") as events:
            server.api.create_from_manifest(make_pod("after"))
            assert event_summary(await anext(events)) == ("ADDED", "between")
            assert event_summary(await anext(events)) == ("ADDED", "after")
            await client.request("POST", f"{PODS}/after/binding", make_binding("n1", "after"))
            await client.request("DELETE", f"{PODS}/between")
            changed, deleted = await anext(events), await anext(events)
            assert (event_summary(changed), changed["object"]["spec"]["nodeName"]) == (("MODIFIED", "after"), "n1")
            assert event_summary(deleted) == ("DELETED", "between")
            assert deleted["object"]["metadata"]["resourceVersion"] == str(server.store.resource_version)

    run(scenario)


@pytest.mark.parametrize("query", ["watch=true", "watch=1&resourceVersion=0"])
def test_a_watch_without_a_resource_version_starts_with_the_current_objects(query: str) -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod("b"))
        server.api.create_from_manifest(make_pod("a"))
        async with client.watch(f"{PODS}?{query}") as events:
            assert [event_summary(await anext(events)) for _ in "ab"] == [("ADDED", "a"), ("ADDED", "b")]
            server.api.create_from_manifest(make_pod("c"))
            assert event_summary(await anext(events)) == ("ADDED", "c")

    run(scenario)


def test_a_selector_turns_updates_into_additions_and_deletions() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        version = server.api.create_from_manifest(make_pod())["metadata"]["resourceVersion"]
        query = f"watch=true&resourceVersion={version}&fieldSelector=spec.nodeName"
        async with client.watch(f"{PODS}?{query}%3D") as waiting, client.watch(f"{PODS}?{query}%3Dn1") as bound:
            await client.request("POST", f"{PODS}/web/binding", make_binding("n1"))
            deleted, added = await anext(waiting), await anext(bound)
            assert (event_summary(deleted), event_summary(added)) == (("DELETED", "web"), ("ADDED", "web"))
            assert "nodeName" not in deleted["object"]["spec"]
            assert deleted["object"]["metadata"]["resourceVersion"] == added["object"]["metadata"]["resourceVersion"]

    run(scenario)


def test_a_watch_from_a_compacted_version_has_an_expired_error() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        version = (await client.get(PODS))["metadata"]["resourceVersion"]
        server.api.create_from_manifest(make_pod())
        server.store.compact()
        (event,) = await client.watch_all(f"{PODS}?watch=true&resourceVersion={version}")
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert event["object"]["message"] == "too old resource version: 7 (8)"

    run(scenario)


def test_bookmarks_have_the_resource_version_of_the_whole_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        version = server.store.resource_version
        path = f"{PODS}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        async with client.watch(path) as events:
            server.api.create_from_manifest(make_node())
            bookmark = await anext(events)
            while bookmark["object"]["metadata"]["resourceVersion"] != str(server.store.resource_version):
                bookmark = await anext(events)
            assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "Pod")

    monkeypatch.setattr("extender.fake_apiserver.endpoints.watch.BOOKMARK_SECONDS", 0.01)
    run(scenario)


def test_a_watch_ends_with_a_bookmark_at_its_timeout() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        version = server.store.resource_version
        path = f"{PODS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={version}"
        events = await client.watch_all(path)
        assert [event["type"] for event in events] == ["BOOKMARK"]

    run(scenario)


def test_initial_events_end_with_an_annotated_bookmark() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod("a"))
        query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        async with client.watch(f"{PODS}?{query}") as events:
            assert event_summary(await anext(events)) == ("ADDED", "a")
            bookmark = await anext(events)
            assert bookmark["type"] == "BOOKMARK"
            assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            server.api.create_from_manifest(make_pod("b"))
            assert event_summary(await anext(events)) == ("ADDED", "b")
        error = await client.request("GET", f"{PODS}?watch=true&sendInitialEvents=true")
        assert error.code == 422

    run(scenario)


def test_a_single_object_can_be_watched() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        version = server.api.create_from_manifest(make_pod("a"))["metadata"]["resourceVersion"]
        async with client.watch(
            f"{PODS}?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3Da"
        ) as events:
            server.api.create_from_manifest(make_pod("b"))
            server.api.delete(POD_KIND, "default", "a")
            assert event_summary(await anext(events)) == ("DELETED", "a")

    run(scenario)


def test_a_watch_from_a_future_version_is_rejected() -> None:
    async def scenario(_: FakeApiServer, client: Client) -> None:
        response = await client.request("GET", f"{PODS}?watch=true&resourceVersion=99")
        assert (response.code, response.headers["Retry-After"]) == (504, "1")
        assert response.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"

    run(scenario)


def test_stopping_the_server_ends_its_watches() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        watching = asyncio.create_task(client.watch_all(f"{PODS}?watch=true"))
        async with client.watch(f"{PODS}?watch=true"):
            await server.stop()
        assert await watching == []

    run(scenario)
