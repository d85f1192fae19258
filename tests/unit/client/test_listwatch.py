"""Lists in pages, and the events of a watch."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.client.errors import GoneError, InvalidResponseError, UnreachableError
from extender.client.listwatch import EventType, ListWatch, ObjectList, WatchEvent, list_all, watch
from extender.client.node_heartbeats import HeartbeatDetector
from extender.client.rest_mapping import ENDPOINTS
from extender.client.transport import Request, Transport
from tests.unit.client.builders import (
    POD_LIST_WATCH,
    PODS,
    added,
    bookmark,
    error_event,
    list_reply,
    make_pod,
    modified,
)
from tests.unit.client.scripted_server import (
    CUT,
    SILENCE,
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


def watch_pods(
    *steps: Any, version: str = "5"
) -> tuple[list[WatchEvent[Pod]], Exception | None, dict[str, str], float]:
    """Return the events of a watch, its error, its parameters, and the seconds it took."""

    async def main() -> tuple[list[WatchEvent[Pod]], Exception | None, dict[str, str], float]:
        events: list[WatchEvent[Pod]] = []
        fault: Exception | None = None
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, Stream(steps))
            start_time = current_loop().time()
            try:
                async for batch in watch(transport, POD_LIST_WATCH, version, no_jitter):
                    events += batch
            except Exception as caught:  # noqa: BLE001  the test looks at it
                fault = caught
            return events, fault, dict(server.requests[0].query), current_loop().time() - start_time

    return run(main())


def test_a_watch_requests_bookmarks_and_a_timeout_below_a_minute() -> None:
    events, fault, parameters, _ = watch_pods(added("a", 6), bookmark(9))
    assert fault is None
    assert [(event.type, event.resource_version, event.key) for event in events] == [
        (EventType.ADDED, "6", "ns/a"),
        (EventType.BOOKMARK, "9", ""),
    ]
    assert parameters == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "40",
    }


def test_events_may_arrive_in_parts_and_several_at_once() -> None:
    data = b"".join(json.dumps(event).encode() + b"\n" for event in (added("a", 6), modified("a", 7), added("b", 8)))
    events, fault, _, _ = watch_pods(data[:10], 1, data[10:300], 1, data[300:])
    assert fault is None
    assert [event.resource_version for event in events] == ["6", "7", "8"]


def test_events_are_yielded_in_batches_of_64_between_which_other_tasks_run() -> None:
    data = b"".join(json.dumps(added(f"p{number}", number)).encode() + b"\n" for number in range(6, 156))

    async def main() -> list[int | str]:
        events: list[int | str] = []
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, Stream((data,)))
            async for batch in watch(transport, POD_LIST_WATCH, "5", no_jitter):
                if batch:
                    events.append(len(batch))
                    current_loop().call_soon(events.append, "another")
        return events

    assert run(main()) == [64, "another", 64, "another", 22, "another"]


@pytest.mark.parametrize(
    ("heartbeats", "batches"),
    [(None, [0, 1, 1, 1, 1]), (HeartbeatDetector(), [0, 1, 3])],
    ids=["each at once", "heartbeats in batches"],
)
def test_a_watch_with_heartbeats_yields_the_events_of_twenty_milliseconds_together(
    heartbeats: HeartbeatDetector | None, batches: list[int]
) -> None:
    steps = [modified("a", 6), 0.006, modified("a", 7), 0.006, modified("a", 8), 0.006, modified("a", 9)]

    async def main() -> list[int]:
        list_watch = replace(POD_LIST_WATCH, heartbeats=heartbeats)
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, Stream(steps))
            return [len(batch) async for batch in watch(transport, list_watch, "5", no_jitter)]

    assert run(main()) == batches


@pytest.mark.parametrize(
    "line",
    [
        b"{\n",
        b"null\n",
        b"garbage\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"RENAMED","object":{}}\n',
        b'{"type":"ADDED","object":[]}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":7}}}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
    ],
    ids=[
        "half of it",
        "null",
        "no JSON",
        "no object",
        "an unknown type",
        "a list",
        "no object of ours",
        "no UTF-8",
        "too deep",
    ],
)
def test_fault_6_a_malformed_event_ends_the_watch_after_the_events_before_it(line: bytes) -> None:
    events, fault, _, _ = watch_pods(json.dumps(added("a", 6)).encode() + b"\n" + line, added("b", 7))
    assert isinstance(fault, InvalidResponseError)
    assert [event.resource_version for event in events] == ["6"]


@pytest.mark.parametrize("end", [[], [CUT]], ids=["an orderly end", "a reset"])
def test_fault_6_a_connection_that_ends_within_an_event_is_broken_not_malformed(end: list[Any]) -> None:
    events, fault, _, _ = watch_pods(added("a", 6), b'{"type":"ADD', 1, *end)
    assert isinstance(fault, UnreachableError)
    assert [event.resource_version for event in events] == ["6"]


def test_fault_3_an_error_event_is_raised_after_the_events_before_it() -> None:
    lines = json.dumps(added("a", 6)) + "\n" + json.dumps(error_event(410, "Expired")) + "\n"
    events, fault, _, _ = watch_pods(lines.encode())
    assert isinstance(fault, GoneError)
    assert [event.resource_version for event in events] == ["6"]


def test_fault_16_a_silent_connection_is_found_within_a_minute() -> None:
    events, fault, _, seconds = watch_pods(10, added("a", 6), SILENCE)
    assert isinstance(fault, UnreachableError)
    assert [event.resource_version for event in events] == ["6"]
    assert seconds == pytest.approx(65.0, abs=0.5)


def test_an_object_that_cannot_be_decoded_has_only_a_key() -> None:
    bad = added("bad", 6)
    bad["object"]["spec"]["priority"] = "high"
    events, fault, _, _ = watch_pods(bad, added("a", 7))
    assert fault is None
    assert [(event.key, event.object is None) for event in events] == [("ns/bad", True), ("ns/a", False)]
