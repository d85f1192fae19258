"""Tests of watches over HTTP."""

import asyncio

import pytest

from extender.sandbox.served import PODS as POD_KIND
from extender.sandbox.server import Sandbox
from tests.unit.sandbox.calls import PODS, Client, a_binding, a_node, a_pod, run, told


def test_a_watch_from_a_version_tells_what_came_after_it() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        sandbox.api.add(a_pod("before"))
        version = (await client.get(PODS))["metadata"]["resourceVersion"]
        sandbox.api.add(a_pod("between"))
        async with client.watch(f"{PODS}?watch=true&resourceVersion={version}") as events:
            sandbox.api.add(a_pod("after"))
            assert told(await anext(events)) == ("ADDED", "between")
            assert told(await anext(events)) == ("ADDED", "after")
            await client.ask("POST", f"{PODS}/after/binding", a_binding("n1", "after"))
            await client.ask("DELETE", f"{PODS}/between")
            changed, deleted = await anext(events), await anext(events)
            assert (told(changed), changed["object"]["spec"]["nodeName"]) == (("MODIFIED", "after"), "n1")
            assert told(deleted) == ("DELETED", "between")
            assert deleted["object"]["metadata"]["resourceVersion"] == str(sandbox.store.version)

    run(scenario)


@pytest.mark.parametrize("query", ["watch=true", "watch=1&resourceVersion=0"])
def test_a_watch_without_a_version_begins_with_what_there_is(query: str) -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        sandbox.api.add(a_pod("b"))
        sandbox.api.add(a_pod("a"))
        async with client.watch(f"{PODS}?{query}") as events:
            assert [told(await anext(events)) for _ in "ab"] == [("ADDED", "a"), ("ADDED", "b")]
            sandbox.api.add(a_pod("c"))
            assert told(await anext(events)) == ("ADDED", "c")

    run(scenario)


def test_a_selector_turns_changes_into_comings_and_goings() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        version = sandbox.api.add(a_pod())["metadata"]["resourceVersion"]
        query = f"watch=true&resourceVersion={version}&fieldSelector=spec.nodeName"
        async with client.watch(f"{PODS}?{query}%3D") as waiting, client.watch(f"{PODS}?{query}%3Dn1") as bound:
            await client.ask("POST", f"{PODS}/web/binding", a_binding("n1"))
            left, came = await anext(waiting), await anext(bound)
            assert (told(left), told(came)) == (("DELETED", "web"), ("ADDED", "web"))
            assert "nodeName" not in left["object"]["spec"]
            assert left["object"]["metadata"]["resourceVersion"] == came["object"]["metadata"]["resourceVersion"]

    run(scenario)


def test_a_watch_from_a_forgotten_version_says_gone_in_its_stream() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        version = (await client.get(PODS))["metadata"]["resourceVersion"]
        sandbox.api.add(a_pod())
        sandbox.store.forget()
        (event,) = await client.watched(f"{PODS}?watch=true&resourceVersion={version}")
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert event["object"]["message"] == "too old resource version: 7 (8)"

    run(scenario)


def test_bookmarks_carry_the_version_of_the_whole_server() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        version = sandbox.store.version
        path = f"{PODS}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        async with client.watch(path) as events:
            sandbox.api.add(a_node())
            mark = await anext(events)
            while mark["object"]["metadata"]["resourceVersion"] != str(sandbox.store.version):
                mark = await anext(events)
            assert (mark["type"], mark["object"]["kind"]) == ("BOOKMARK", "Pod")

    run(scenario, bookmarks=0.01)


def test_a_watch_ends_in_good_order_when_its_time_is_up() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        path = f"{PODS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={sandbox.store.version}"
        events = await client.watched(path)
        assert [event["type"] for event in events] == ["BOOKMARK"]

    run(scenario)


def test_a_streamed_list_ends_with_a_bookmark_that_says_so() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        sandbox.api.add(a_pod("a"))
        query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        async with client.watch(f"{PODS}?{query}") as events:
            assert told(await anext(events)) == ("ADDED", "a")
            mark = await anext(events)
            assert mark["type"] == "BOOKMARK"
            assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            sandbox.api.add(a_pod("b"))
            assert told(await anext(events)) == ("ADDED", "b")
        refused = await client.ask("GET", f"{PODS}?watch=true&sendInitialEvents=true")
        assert refused.code == 422

    run(scenario)


def test_one_object_can_be_watched() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        version = sandbox.api.add(a_pod("a"))["metadata"]["resourceVersion"]
        async with client.watch(
            f"{PODS}?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3Da"
        ) as events:
            sandbox.api.add(a_pod("b"))
            sandbox.api.delete(POD_KIND, "default", "a")
            assert told(await anext(events)) == ("DELETED", "a")

    run(scenario)


def test_a_watch_of_the_future_is_refused() -> None:
    async def scenario(_: Sandbox, client: Client) -> None:
        answer = await client.ask("GET", f"{PODS}?watch=true&resourceVersion=99")
        assert (answer.code, answer.headers["Retry-After"]) == (504, "1")
        assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"

    run(scenario)


def test_stopping_the_sandbox_ends_its_watches() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        watching = asyncio.create_task(client.watched(f"{PODS}?watch=true"))
        async with client.watch(f"{PODS}?watch=true"):
            await sandbox.stop()
        assert await watching == []

    run(scenario)
