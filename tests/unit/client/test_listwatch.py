"""Lists in pages, with limits."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from extender.api.kinds.devices import ResourceClaim
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.pod_signature import SignatureCache
from extender.cache.tables.symbols import Symbols
from extender.client.errors import InvalidResponseError
from extender.client.listwatch import ListWatch, ObjectList, list_all, read_resource_version
from extender.client.rest_mapping import ENDPOINTS, get_endpoint
from extender.client.transport import Request, Transport
from extender.client.watch import watch
from extender.config.releases import DEFAULT_RELEASE
from tests.unit.client.builders import (
    POD_LIST_WATCH,
    PODS,
    added,
    list_reply,
    make_pod,
    modified,
)
from tests.unit.client.scripted_server import (
    Reply,
    ScriptedServer,
    Stream,
    failure_reply,
    no_jitter,
    open_transport,
)
from tests.unit.client.virtual_time import current_loop, run


def list_pods(
    *replies: Reply, list_watch: ListWatch[Pod] = POD_LIST_WATCH
) -> tuple[ObjectList[Pod], list[dict[str, str]]]:
    """Return the list, and the parameters of each request."""

    async def main() -> tuple[ObjectList[Pod], list[dict[str, str]]]:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, *replies)
            return await list_all(transport, list_watch), [dict(parameters.query) for parameters in server.requests]

    return run(main())


def test_a_list_is_read_page_by_page() -> None:
    found, parameters = list_pods(
        list_reply(5, make_pod("a", 1), make_pod("b", 2), more="t1"),
        list_reply(5, make_pod("c", 3), more="t2"),
        list_reply(5),
    )
    assert found.resource_version == "5"
    assert list(found.items) == ["ns/a", "ns/b", "ns/c"]
    assert parameters == [{"limit": "500"}, {"limit": "500", "continue": "t1"}, {"limit": "500", "continue": "t2"}]


def test_the_next_page_is_requested_before_the_last_one_is_decoded() -> None:
    order: list[str] = []
    pages = [list_reply(5, make_pod("a", 1), more="t1"), list_reply(5, make_pod("b", 2))]

    class RecordingTransport:
        async def call(self, request: Request) -> bytes:
            order.append(f"request {request.query.get('continue', 'the first')}")
            return json.dumps(pages.pop(0).body).encode()

    list_watch = replace(POD_LIST_WATCH, on_raw=lambda pod, _: order.append(f"read {pod.metadata.name}"))
    run(list_all(cast("Transport", RecordingTransport()), list_watch))
    assert order == ["request the first", "request t1", "read a", "read b"]


def test_pods_of_a_list_share_their_parts_even_if_many_other_pods_are_between_them() -> None:
    """The cache itself retains 353 such signatures without pods."""
    templates = [{f"key-{at}": f"value-{template}-{at}" for at in range(100)} for template in range(500)]
    pages = []
    for copy, token in (("a", "t1"), ("b", "")):
        pods = [make_pod(f"{copy}-{number}", 1) for number in range(500)]
        for pod, labels in zip(pods, templates, strict=True):
            pod["metadata"]["labels"] = labels
        pages.append(list_reply(5, *pods, more=token))
    found, _ = list_pods(*pages, list_watch=replace(POD_LIST_WATCH, deduplicate=SignatureCache(Symbols()).deduplicate))
    found_labels = [pod.metadata.labels for pod in found.items.values()]
    assert found_labels == templates * 2
    assert all(first is second for first, second in zip(found_labels[:500], found_labels[500:], strict=True))


def test_selectors_go_with_every_page() -> None:
    list_watch = ListWatch(Pod, ENDPOINTS["Pod"], "", "status.phase!=Failed", "app in (a,b)")
    _, parameters = list_pods(list_reply(5, more="t"), list_reply(5), list_watch=list_watch)
    selectors = {"fieldSelector": "status.phase!=Failed", "labelSelector": "app in (a,b)"}
    assert parameters == [{**selectors, "limit": "500"}, {**selectors, "limit": "500", "continue": "t"}]


def test_fault_5_an_expired_continue_token_restarts_the_list() -> None:
    gone = failure_reply(410, "Expired")
    found, parameters = list_pods(
        list_reply(5, make_pod("old", 1), more="t"), gone, list_reply(9, make_pod("new", 8), more="u"), list_reply(9)
    )
    assert (found.resource_version, list(found.items)) == ("9", ["ns/new"])
    assert [page.get("continue") for page in parameters] == [None, "t", None, "u"]


def test_fault_5_a_list_that_expired_twice_is_requested_without_pages() -> None:
    gone = failure_reply(410, "Expired")
    found, parameters = list_pods(
        list_reply(5, more="t"), gone, list_reply(6, more="u"), gone, list_reply(7, make_pod("a", 1))
    )
    assert (found.resource_version, list(found.items)) == ("7", ["ns/a"])
    assert parameters[-1] == {}


def test_on_raw_gets_the_json_of_each_object() -> None:
    events: list[tuple[str, Any]] = []
    list_watch = ListWatch(
        Pod, ENDPOINTS["Pod"], on_raw=lambda item, text: events.append((item.metadata.name, json.loads(text)))
    )
    gone = modified("b", 8) | {"type": "DELETED"}

    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, list_reply(5, make_pod("a", 1)), Stream([added("b", 6), modified("b", 7), gone]))
            await list_all(transport, list_watch)
            async for _ in watch(transport, list_watch, "5", no_jitter):
                pass

    run(main())
    assert events == [("a", make_pod("a", 1)), ("b", added("b", 6)["object"]), ("b", modified("b", 7)["object"])]


def test_the_items_of_a_list_may_be_null() -> None:
    found, _ = list_pods(Reply(body={"metadata": {"resourceVersion": "3"}, "items": None}))
    assert (found.resource_version, found.items) == ("3", {})


def test_nulls_in_an_object_are_empty_as_in_go() -> None:
    pod = make_pod("a", 1)
    pod["spec"]["nodeSelector"] = None
    found, _ = list_pods(list_reply(5, pod))
    assert found.items["ns/a"].spec.node_selector == {}


def test_an_object_that_cannot_be_decoded_is_left_out_and_counted() -> None:
    bad = make_pod("bad", 1)
    bad["spec"]["priority"] = "high"
    found, _ = list_pods(list_reply(5, make_pod("a", 1), bad, make_pod("b", 2)))
    assert (list(found.items), found.unreadable_count) == (["ns/a", "ns/b"], 1)


def test_an_object_without_a_name_is_left_out_and_counted() -> None:
    """As a node, pods would be bound to it."""
    found, _ = list_pods(list_reply(5, make_pod("a", 1), {}))
    assert (list(found.items), found.unreadable_count) == (["ns/a"], 1)


def test_an_object_that_is_nested_too_deeply_is_left_out_and_counted() -> None:
    """The API server allows 10,000 levels. One claim of any user stopped the list of all claims."""
    claims: list[dict[str, Any]] = [
        {"metadata": {"name": name, "namespace": "ns", "resourceVersion": "1"}} for name in "abc"
    ]
    claims[1]["metadata"]["managedFields"] = "levels"
    claims[2]["spec"] = {"devices": {"config": [{"opaque": {"driver": "gpu", "parameters": {"x": "levels"}}}]}}
    body = json.dumps(list_reply(5, *claims).body).encode().replace(b'"levels"', b"[" * 5_000 + b"]" * 5_000)

    async def main() -> ObjectList[ResourceClaim]:
        async with ScriptedServer() as server, open_transport(server) as transport:
            endpoint = get_endpoint("ResourceClaim", DEFAULT_RELEASE)
            server.respond(f"GET {endpoint.build_path('')}", Reply(body=body))
            return await list_all(transport, ListWatch(ResourceClaim, endpoint))

    found = run(main())
    assert (found.resource_version, list(found.items), found.unreadable_count) == ("5", ["ns/a", "ns/b"], 1)


@pytest.mark.parametrize(
    "body",
    [b'{"metadata": {"resourceVersion": "1"}, "items": [', b"[]", b"<html>", b'{"kind": "Table"}', b""],
    ids=["cut short", "no object", "no JSON", "another kind of answer", "nothing"],
)
def test_a_response_that_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(InvalidResponseError):
        list_pods(Reply(body=body))


def test_the_key_of_a_cluster_scoped_object_is_its_name() -> None:
    async def main() -> list[str]:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("GET /api/v1/nodes", list_reply(5, {"metadata": {"name": "n1", "resourceVersion": "2"}}))
            return list((await list_all(transport, ListWatch(Node, ENDPOINTS["Node"]))).items)

    assert run(main()) == ["n1"]


def test_a_list_with_a_repeated_continue_token_ends_with_an_error() -> None:
    with pytest.raises(InvalidResponseError, match="the list of Pod does not end: the continue token does not change"):
        list_pods(list_reply(5, make_pod("a", 1), more="t"), list_reply(5, make_pod("b", 2), more="t"))


@pytest.mark.parametrize("pods", [[], [make_pod("a", 1)]], ids=["no pods", "the same pod"])
def test_a_list_with_too_many_pages_without_a_new_object_ends_with_an_error(pods: list[Any]) -> None:
    first_page = list_reply(5, make_pod("a", 1), more="first")
    pages = [list_reply(5, *pods, more=f"t{number % 2}") for number in range(101)]
    with pytest.raises(InvalidResponseError, match="the list of Pod does not end: 101 pages have no new object"):
        list_pods(first_page, *pages)


def test_a_list_of_more_than_100_pages_with_new_objects_is_read() -> None:
    pages = [list_reply(5, make_pod(f"p{number}", 1), more=f"t{number}") for number in range(150)]
    found, _ = list_pods(*pages, list_reply(5))
    assert len(found.items) == 150


def test_a_list_of_too_many_objects_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.client.listwatch.MAX_LIST_OBJECTS", 10)
    pages = [list_reply(5, make_pod(f"p{number}", 1), more=f"t{number}") for number in range(11)]
    with pytest.raises(InvalidResponseError, match="the list of Pod has more than 10 objects"):
        list_pods(*pages)


def test_a_list_of_too_many_bytes_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.client.listwatch.MAX_LIST_BYTES", 1000)
    pages = [list_reply(5, make_pod(f"p{number}", 1), more=f"t{number}") for number in range(20)]
    with pytest.raises(InvalidResponseError, match="the list of Pod has more than 1000 bytes"):
        list_pods(*pages)


def test_a_list_in_one_page_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.client.listwatch.MAX_LIST_BYTES", 1000)
    expired = failure_reply(410, "Expired")
    with pytest.raises(InvalidResponseError, match="GET /api/v1/pods: a response of more than 1000 bytes"):
        list_pods(expired, expired, Reply(body=b" " * 1001))


def test_a_page_of_too_many_bytes_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.client.listwatch.MAX_PAGE_BYTES", 1000)
    with pytest.raises(InvalidResponseError, match="GET /api/v1/pods: a response of more than 1000 bytes"):
        list_pods(*[Reply(body=b" " * 1001)] * 3)


def test_the_resource_version_of_the_server_is_read_without_a_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server, qps=0.001, burst=1) as transport:
            start_time = current_loop().time()
            server.respond("GET /livez", Reply())
            await transport.call(Request("GET", "/livez"))
            server.resource_version = "17"
            assert await read_resource_version(transport, POD_LIST_WATCH) == "17"
            monkeypatch.setattr("extender.client.listwatch.MAX_RESPONSE_BYTES", 10)
            with pytest.raises(InvalidResponseError, match="GET /api/v1/pods: a response of more than 10 bytes"):
                await read_resource_version(transport, POD_LIST_WATCH)
            assert current_loop().time() < start_time + 1.0

    run(main())


def test_a_page_of_too_many_bytes_is_read_again_in_smaller_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.client.listwatch.MAX_PAGE_BYTES", 20_000)
    too_large = Reply(body=b" " * 20_001)
    large = make_pod("a", 1)
    large["metadata"]["annotations"] = {"large": "x" * 10_000}
    object_list, queries = list_pods(
        too_large, too_large, list_reply(5, large, more="t"), list_reply(5, make_pod("b", 1), more="u"), list_reply(5)
    )
    assert list(object_list.items) == ["ns/a", "ns/b"]
    assert [(query["limit"], query.get("continue", "")) for query in queries] == [
        ("500", ""),
        ("62", ""),
        ("7", ""),
        ("7", "t"),
        ("56", "u"),
    ]
